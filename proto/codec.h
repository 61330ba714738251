#pragma once

#include <optional>
#include <string>
#include <vector>

#include "control/model/model.h"
#include "sluice/v1/objects.pb.h"

namespace sluice::codec {

/// What is wrong with one object. One line: "object: field: message".
struct FieldError {
  std::string object;   ///< "service ns/name", "endpointslice ns/name", "node name", ...
  std::string field;    ///< "spec.ports[1].port"; may be empty
  std::string message;  ///< what is wrong and what is expected
  /// The rule book skips such a value and goes on (a garbage external IP): the object is given all
  /// the same; only a strict request refuses it.
  bool tolerated = false;
  bool operator==(const FieldError&) const = default;
};
[[nodiscard]] std::string to_string(const FieldError& error);

/// Message to model, validated: names present, enums known, numbers in range, addresses readable,
/// annotations of ours known and well formed (their values fill the typed fields). Nothing is
/// defaulted. Every error found is appended; the result is empty if there was one that is not
/// tolerated. Thread: any.
[[nodiscard]] std::optional<model::Service> decode(const v1::Service& in,
                                                   std::vector<FieldError>& errors);
[[nodiscard]] std::optional<model::EndpointSlice> decode(const v1::EndpointSlice& in,
                                                         std::vector<FieldError>& errors);
[[nodiscard]] std::optional<model::Node> decode(const v1::NodeObject& in,
                                                std::vector<FieldError>& errors);
[[nodiscard]] std::optional<model::ServiceCidr> decode(const v1::ServiceCIDR& in,
                                                       std::vector<FieldError>& errors);

/// Model to message; decode(encode(x)) == x for every valid x.
[[nodiscard]] v1::Service encode(const model::Service& in);
[[nodiscard]] v1::EndpointSlice encode(const model::EndpointSlice& in);
[[nodiscard]] v1::NodeObject encode(const model::Node& in);
[[nodiscard]] v1::ServiceCIDR encode(const model::ServiceCidr& in);

/// "service ns/name" and so on: how messages name an object.
[[nodiscard]] std::string object_text(std::string_view kind, const v1::ObjectMeta& meta);

}  // namespace sluice::codec
