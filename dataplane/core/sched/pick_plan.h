#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "dataplane/core/fwd/forwarding_table.h"

namespace sluice::core {

/// One column of an alias table (wrandom.h): keep the column when a uniform 32-bit number is below
/// `keep`, else take `other`.
struct AliasColumn {
  std::uint32_t keep = 0;
  std::uint32_t other = 0;
  bool operator==(const AliasColumn&) const = default;
};

/// What a scheduler needs of one candidate list beyond the list itself, worked out once when the
/// table is built so that a pick divides and allocates nothing. A "place" is an index into the
/// list. Only what the Service's scheduler reads is filled. Immutable, shared by generations.
struct PickPlan {
  std::vector<std::uint16_t> weights;  ///< by place, 1..65535: wrr, wlc, sed, nq, lblc, lblcr
  std::vector<EndpointId> ids;         ///< by place: those that count connections
  std::uint16_t heaviest = 0;          ///< wrr
  std::uint16_t step = 0;              ///< wrr: greatest common divisor of the weights
  std::vector<std::uint16_t> slots;    ///< mh, sh, dh: places
  std::vector<AliasColumn> alias;      ///< wrandom: by place
  bool operator==(const PickPlan&) const = default;
};

/// The scheduler chooses by hashing: the same client gets the same endpoint on every node.
[[nodiscard]] constexpr bool picks_by_hash(SchedulerKind kind) noexcept {
  return kind == SchedulerKind::kMh || kind == SchedulerKind::kSh || kind == SchedulerKind::kDh;
}
/// The scheduler looks at how many connections endpoints have.
[[nodiscard]] constexpr bool picks_by_load(SchedulerKind kind) noexcept {
  return kind == SchedulerKind::kLc || kind == SchedulerKind::kWlc || kind == SchedulerKind::kSed ||
         kind == SchedulerKind::kNq || kind == SchedulerKind::kLblc ||
         kind == SchedulerKind::kLblcr;
}
/// Weights beyond 0 and not 0 matter to the scheduler.
[[nodiscard]] constexpr bool picks_by_weight(SchedulerKind kind) noexcept {
  return kind != SchedulerKind::kRandom && kind != SchedulerKind::kRr &&
         kind != SchedulerKind::kLc && kind != SchedulerKind::kDh;
}

/// Slots of a table of this block.
[[nodiscard]] std::uint32_t maglev_size_of(const ServicePort& service) noexcept;

/// Works out the plans of both candidate lists of a block. Not on the fast path: a table of slots
/// takes 0.2 to 10 ms.
/// @param before the block it replaces; nullptr: none. Plans that would come out equal are shared.
void plan_picks(ServicePort& service, const ServicePort* before);

}  // namespace sluice::core
