#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include "dataplane/pipeline/next_hop_directory.h"
#include "dataplane/pipeline/snapshot_cell.h"

namespace sluice::pipeline {

// Who gets a place in the directory
//
// An address that is vouched for (a backend, the gateway of a route) comes from the configuration,
// and gets its place when a worker asks for it. Any other comes from a packet, whose sender may
// have made it up: it gets a place only once it has answered, and never one of the last quarter. So
// no flood from addresses that do not exist takes a place, and none at all keeps a backend from
// one.
//
// A neighbour that the mirror gives up is marked. When an eighth of all places is, they are taken
// out of the directory, the entries of the workers are made to look for their next hops anew (by a
// new epoch), and once every worker has read that, the places are free.

/// Fills the directory. Thread: the one that mirrors neighbours.
class NextHopPlaces {
 public:
  explicit NextHopPlaces(NextHopDirectory& hops) noexcept : hops_(hops) {}

  /// A worker asks for a neighbour. @return false: it would need a place and there is none.
  bool request(const NeighbourRequest& wanted) {
    return !wanted.vouched || hops_.add(wanted.port, wanted.address) != NextHopIndex::kNone;
  }

  /// What has become of a neighbour that a worker asked for. @return false: it would need a place
  /// and there is none.
  bool set(PortIndex port, const core::IpAddress& address, const core::MacAddress& mac,
           NeighbourState state) {
    const bool answered = state == NeighbourState::kReachable || state == NeighbourState::kHost;
    const NextHopIndex index =
        answered ? hops_.add(port, address, hops_.size() / kKeptBack) : hops_.find(port, address);
    if (index == NextHopIndex::kNone) {
      return !answered;
    }
    hops_.write(index, NextHopWord::make(mac, port, state));
    return true;
  }

  /// It does not answer and nobody asks for it any more.
  void forget(PortIndex port, const core::IpAddress& address) { hops_.forget(port, address); }

  /// One step of giving the places of forgotten addresses to others; to be called now and then.
  /// @param renew_epoch  () -> sequence: publishes a view with a new epoch.
  template <class Tables, class RenewEpoch>
  void turn_over(const SnapshotCell<Tables>& cell, RenewEpoch&& renew_epoch) {
    if (!hops_.has_retired()) {
      if (hops_.should_retire()) {
        hops_.retire();
        retired_at_ = renew_epoch();
      }
    } else if (cell.oldest_seen() >= retired_at_) {
      hops_.recycle();
    }
  }

 private:
  static constexpr std::size_t kKeptBack = 4;  ///< 1 / this of all places is for vouched ones
  NextHopDirectory& hops_;
  std::uint64_t retired_at_ = 0;
};

}  // namespace sluice::pipeline
