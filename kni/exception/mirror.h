#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "dataplane/core/sink.h"
#include "kni/exception/host_view.h"
#include "kni/exception/netlink.h"
#include "kni/exception/wish_book.h"

namespace sluice::kni {

/// Where the mirror's news go. Every call comes from the mirror's thread (during start() from the
/// caller's), one at a time.
struct MirrorEvents {
  std::function<void(const std::vector<HostAddress>&)> addresses;
  std::function<void(const std::vector<HostRoute>&)> routes;
  std::function<void(const HostNeighbour&)> neighbour;  ///< one that was wished for
  /// A tap went, came, or was down for a moment. start() tells of every one.
  std::function<void(const TapChange&)> tap;
  /// Appends the wishes that came since the last call; asked every millisecond.
  std::function<void(std::vector<NeighbourWish>&)> wishes;
  /// A neighbour without an answer is given up: whoever wants it has to wish for it anew.
  std::function<void(const NeighbourWish&)> forgotten;
  std::function<void(const std::string&)> warn;  ///< one line an operator should see
};

// Theory of operation
//
// The kernel owns addresses, routes and neighbours of the taps; the mirror follows it. start()
// subscribes first and dumps then, so nothing is missed between the two. Events lost by an overrun
// (ENOBUFS) are answered by a full dump. Routes are always taken as a dump, paced so that a large
// table never takes more than a tenth of the time.
//
// A wish makes the kernel resolve: the neighbour is added as "managed" (kept resolved by the
// kernel, Linux 5.16), or, where the kernel does not know that, pushed with NTF_USE now and then.
// The kernel's own ARP and neighbour solicitations go out by the tap like all its frames. Which
// neighbour is asked for when, and which is given up, is the WishBook's business; what it gives up
// is deleted in the kernel, which would go on asking for a managed one.
//
// Limit: routes of the main table only; policy routing rules are not followed.

/// Thread: start() and stop() by main.
class Mirror {
 public:
  Mirror(std::vector<std::string> taps, MirrorEvents events, const WishBook::Limits& limits = {});
  ~Mirror();  ///< stops
  Mirror(const Mirror&) = delete;
  Mirror& operator=(const Mirror&) = delete;

  /// Reads the present state, reports it, and follows from then on.
  core::Result<void> start();
  void stop();

  /// One round without waiting; start() calls it over and over on its thread. For tests.
  void step();
  /// Subscribes and reports the present state without a thread. For tests.
  core::Result<void> open();

 private:
  using Clock = std::chrono::steady_clock;
  void run();
  void full_dump();
  int dump_into_view(std::uint16_t type, std::uint8_t family);
  void dump_routes_if_due();
  void report();
  void take_wishes();
  [[nodiscard]] WishBook::Calls book_calls();
  void tell(const HostNeighbour& neighbour);
  int probe(const NeighbourWish& wish);
  void delete_in_kernel(const NeighbourWish& wish);

  HostView view_;
  MirrorEvents events_;
  std::unique_ptr<Netlink> listen_;
  std::unique_ptr<Netlink> ask_;
  bool managed_ = true;  ///< the kernel knows managed neighbours
  WishBook book_;
  Clock::time_point next_route_dump_{};
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

}  // namespace sluice::kni
