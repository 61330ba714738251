#pragma once

#include <vector>

#include "control/compile/compile.h"

namespace sluice::compile {

// What a strict request must refuse: one line per fault, with the object and its field path. Empty:
// the object is good. What the rule book treats leniently (a garbage external IP, a garbage source
// range, an EndpointSlice of type FQDN) is no fault; compile reports it as a warning. The same
// normalisation code runs here and in compile, so both see the same faults. Thread: any; pure.

[[nodiscard]] std::vector<ReportLine> validate(const model::Service& service);
[[nodiscard]] std::vector<ReportLine> validate(const model::EndpointSlice& slice);
[[nodiscard]] std::vector<ReportLine> validate(const model::Node& node);
[[nodiscard]] std::vector<ReportLine> validate(const model::ServiceCidr& cidr);

}  // namespace sluice::compile
