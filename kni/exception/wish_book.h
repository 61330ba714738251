#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <random>
#include <set>
#include <utility>
#include <vector>

#include "kni/exception/host_view.h"

namespace sluice::kni {

/// A next hop the workers want resolved.
struct NeighbourWish {
  std::size_t port = 0;
  core::IpAddress address;
  /// The configuration names it (a backend, a gateway): no sender of packets can make it up.
  bool vouched = false;
  /// It has just shown itself on the link.
  bool seen = false;
};

/// So many in a second, and as many at once as `burst`.
class Budget {
 public:
  using Time = std::chrono::steady_clock::time_point;
  Budget(double per_second, double burst) noexcept
      : per_second_(per_second), burst_(burst), left_(burst) {}
  [[nodiscard]] bool take(Time now) noexcept;

 private:
  double per_second_;
  double burst_;
  double left_;
  Time at_{};
};

// Theory of operation
//
// A wish is remembered, and the kernel asked for the neighbour until it answers and when it is lost
// again. What does not answer and was not wished for in `patience` is forgotten.
//
// Addresses that nobody vouches for come from packets, so anybody can make up as many as he likes.
// The kernel is asked for `other_rate` of them a second; a wish beyond that is not taken, and which
// ones are is left to chance, so that no worker's wishes are always the ones that are. `open` of
// them at a time may be without an answer, then the one that was asked for first is forgotten: one
// that exists answers long before that. One the kernel knows already costs nothing. Vouched ones
// have a budget of their own, so a flood of others does not touch them; so have those that have
// just shown themselves on the link, which nobody far away can make up.
//
// Limit: a new client on a link that has not asked for our address lately competes with a flood
// from made-up addresses of that link.

/// Which neighbours are wished for, and when the kernel is asked for each. No socket, no clock.
/// Thread: one.
class WishBook {
 public:
  using Time = std::chrono::steady_clock::time_point;
  struct Limits {
    std::chrono::milliseconds patience = std::chrono::seconds(30);
    /// Others without an answer, at least 1. By default the kernel keeps 1,024 neighbours of a
    /// family.
    std::size_t open = 256;
    double vouched_rate = 4000;  ///< questions a second, as other_rate
    double other_rate = 1000;    ///< also of those seen on a link
  };
  struct Calls {
    /// What the kernel says of it now.
    std::function<HostNeighbour::State(const NeighbourWish&)> state;
    /// It was wished for: whoever wished is to be told of its present state.
    std::function<void(const NeighbourWish&)> taken;
    /// The kernel is to resolve it. @return false: it refused.
    std::function<bool(const NeighbourWish&)> ask;
    /// It is given up; the kernel may forget it, too.
    std::function<void(const NeighbourWish&)> forget;
  };

  WishBook(const Limits& limits, Calls calls);

  /// Takes wishes that came since the last call.
  void take(const std::vector<NeighbourWish>& wishes, Time now);
  /// A neighbour is in another state than before. @return true: somebody wished for it.
  bool changed(const HostNeighbour& neighbour, Time now);
  /// Asks for those that are due.
  void refresh(Time now);
  /// False: the kernel forgets what it resolved unless it is asked now and then.
  void set_managed(bool managed) noexcept { managed_ = managed; }

  [[nodiscard]] std::vector<NeighbourWish> all() const;
  [[nodiscard]] std::size_t size() const noexcept { return wanted_.size(); }

 private:
  using Key = std::pair<std::size_t, core::IpAddress>;
  struct Wanted {
    Time due{};     ///< when it is looked at next
    Time wished{};  ///< for the last time, or lost
    Time asked{};   ///< the kernel, for the last time; none: not yet, or not since it was lost
    std::uint64_t opened = 0;  ///< key in open_; 0: not there
    bool vouched = false;
    bool settled = false;  ///< it answers, or is the host's own
  };
  using Place = std::map<Key, Wanted>::iterator;

  void take_one(const NeighbourWish& wish, Time now);
  void look_at(Place at, Time now);
  [[nodiscard]] bool is_due_to_be_asked(const Wanted& wanted, HostNeighbour::State state,
                                        Time now) const;
  void ask(Place at, Time now);
  void forget(Place at);
  void schedule(Place at, Time due);
  void open(Place at);
  void close(Place at);
  [[nodiscard]] static NeighbourWish wish_of(Place at) {
    return {at->first.first, at->first.second, at->second.vouched, false};
  }

  const Limits limits_;
  const Calls calls_;
  Budget vouched_;
  Budget seen_;
  Budget others_;
  bool managed_ = true;
  std::map<Key, Wanted> wanted_;
  std::set<std::pair<Time, Key>> due_;  ///< each of wanted_, by when it is looked at
  std::map<std::uint64_t, Key> open_;   ///< not vouched for and without an answer, oldest first
  std::uint64_t last_opened_ = 0;
  std::minstd_rand random_;
};

}  // namespace sluice::kni
