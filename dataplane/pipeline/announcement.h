#pragma once

#include <cstdint>

#include "dataplane/core/conn/entry.h"
#include "dataplane/core/net/address.h"

namespace sluice::pipeline {

/// Addresses that appeared in the views (after, upto], to be announced in rounds.
struct Announcement {
  std::uint64_t after = 0;
  std::uint64_t upto = 0;
  std::uint32_t rounds = 0;  ///< still to go; 0: free
  core::Tick next_round = 0;
  bool begun = false;  ///< in a round that has come as far as `last`
  core::IpAddress last;
};

}  // namespace sluice::pipeline
