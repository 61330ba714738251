#pragma once

#include <cstdint>

#include "bench/section.h"
#include "bench/targets.h"
#include "bench/turns.h"

namespace sluice::bench {

/// What measure_established() leaves out.
struct EstablishedOptions {
  bool only_nat4 = false;     ///< all but IPv4 nat, and the bare probe beside it
  bool no_parts = false;      ///< what each part of the worker takes, but all of IPv4's in one
  bool only_targets = false;  ///< fullnat, handed over and parts of IPv6
};

/// Heads the table whose rows measure_established() prints.
void print_established_head(const EstablishedOptions& options);

/// Cycles per packet of established flows of both families, no I/O: bare probe, nat, fullnat,
/// handed over, and the product's parts. One row of low quantiles and one of medians for each
/// family; figures and what compares them into `results`: "nat4_64k", "nat6_64k/nat4_64k".
/// What targets and their floors compare is measured in the same turns; so is the rest of IPv6
/// beside its nat and probe.
/// @param section  the only figure that is measured, without rows.
/// @return false: something failed, told on standard error.
[[nodiscard]] bool measure_established(const TurnsConfig& turns, std::uint32_t flows,
                                       const EstablishedOptions& options, const Section& section,
                                       Results& results);

}  // namespace sluice::bench
