#pragma once

#include <string>
#include <vector>

#include "control/model/model.h"
#include "proto/codec.h"

namespace sluice::codec {

inline constexpr std::string_view kAnnotationPrefix = "sluice.dev/";

/// Fills the typed fields of `service` from its annotations sluice.dev/... An unknown one, a value
/// that does not parse and one that contradicts the typed field are errors.
void read_annotations(model::Service& service, const std::string& object,
                      std::vector<FieldError>& errors);

/// Objects without annotations of ours: one that begins with sluice.dev/ is an error.
void refuse_annotations(const std::map<std::string, std::string>& annotations,
                        const std::string& object, std::vector<FieldError>& errors);

/// Checks the typed fields themselves (set by field or by annotation).
void check_options(const model::Service& service, const std::string& object,
                   std::vector<FieldError>& errors);

}  // namespace sluice::codec
