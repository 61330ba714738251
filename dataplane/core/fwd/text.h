#pragma once

#include <string>
#include <string_view>

#include "dataplane/core/fwd/forwarding_table.h"

namespace sluice::core {

struct TextOptions {
  /// Print slots, endpoint ids, generation and epoch. They depend on history; without them two
  /// tables of equal meaning have equal text.
  bool ids = false;
};

/// Stable text of a whole table, one fact a line, sorted by name: for goldens, dumps and tests.
[[nodiscard]] std::string to_text(const ForwardingTable& table, TextOptions options = {});
[[nodiscard]] std::string to_text(const ServicePort& block, TextOptions options = {});

[[nodiscard]] std::string_view name_of(TrafficPolicy policy) noexcept;    ///< "Cluster", "Local"
[[nodiscard]] std::string_view name_of(SchedulerKind kind) noexcept;      ///< "random", "rr", ...
[[nodiscard]] std::string_view name_of(ForwardingMode mode) noexcept;     ///< "by-rule", "nat", ...
[[nodiscard]] std::string_view name_of(FrontendKind kind) noexcept;       ///< "cluster-ip", ...
[[nodiscard]] std::string_view name_of(EmptyVerdict verdict) noexcept;    ///< "reject", "drop"

}  // namespace sluice::core
