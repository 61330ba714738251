#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

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

/// A printed name (M-3) as a comment of a rule may have it: whatever could end a comment or a line is
/// replaced. @param most  bytes that are kept.
[[nodiscard]] std::string safe_name(std::string_view name, std::size_t most);

[[nodiscard]] std::string_view name_of(TrafficPolicy policy) noexcept;    ///< "Cluster", "Local"
[[nodiscard]] std::string_view name_of(SchedulerKind kind) noexcept;      ///< "random", "rr", ...
/// Names of a scheduler's flags, in a stable order: "mh-port", "mh-fallback".
[[nodiscard]] std::vector<std::string_view> flag_names(SchedulerKind kind, std::uint8_t flags);
/// "wrr", "mh(mh-port,mh-fallback)".
[[nodiscard]] std::string scheduler_text(const ServicePort& block);
/// Nothing: no such name.
[[nodiscard]] std::optional<SchedulerKind> scheduler_by_name(std::string_view name) noexcept;
/// "random, wrandom, rr, ...": for messages.
[[nodiscard]] std::string scheduler_names();
[[nodiscard]] std::string_view name_of(ForwardingMode mode) noexcept;     ///< "by-rule", "nat", ...
[[nodiscard]] std::string_view name_of(FrontendKind kind) noexcept;       ///< "cluster-ip", ...
[[nodiscard]] std::string_view name_of(EmptyVerdict verdict) noexcept;    ///< "reject", "drop"

}  // namespace sluice::core
