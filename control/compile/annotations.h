#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "control/compile/reporter.h"

namespace sluice::compile {

/// What a Service asks of us beyond Kubernetes: annotations sluice.dev/..., or the typed fields that
/// mean the same.
struct Extensions {
  core::SchedulerKind scheduler = core::SchedulerKind::kRandom;
  std::uint8_t scheduler_flags = 0;
  core::ForwardingMode mode = core::ForwardingMode::kByRule;
  std::uint32_t maglev_size = 0;  ///< 0: default
  /// Key: canonical endpoint address, or "ip:port".
  std::map<std::string, std::uint16_t> weights;
};

/// @return nullopt: something of ours is wrong (each fault is reported); the Service is then
/// skipped as a whole, because what it asked for must not be replaced by a default in silence.
[[nodiscard]] std::optional<Extensions> extensions_of(const model::Service& service,
                                                      core::SchedulerKind default_scheduler,
                                                      Reporter& report);

/// None of ours belongs on an EndpointSlice: each is a fault.
void check_annotations_of_slice(const model::EndpointSlice& slice, Reporter& report);

/// 0..65535, the range of IPVS weights that fits a table.
[[nodiscard]] bool is_weight(std::int64_t value);

/// Weight of one endpoint: "ip:port" before "ip" of the Service, then the slice's, then 1.
[[nodiscard]] std::uint16_t weight_of(const Extensions& extensions, const core::IpAddress& address,
                                      std::uint16_t port,
                                      const std::optional<std::int64_t>& slice_weight);

/// "nat", "fullnat", "dr", "ipip"
[[nodiscard]] std::optional<core::ForwardingMode> mode_by_name(std::string_view name);

}  // namespace sluice::compile
