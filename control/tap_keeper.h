#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "dataplane/core/sink.h"
#include "kni/exception/host_view.h"

namespace sluice::daemon {

/// Mends the taps of the ports. One that somebody deleted is made anew; one that was down has lost
/// its routes and IPv6 addresses and gets them again. One that is down stays down: an operator
/// wants that. What cannot be mended is a fault of the port until it can; tried every second.
/// Thread: one, the mirror's.
class TapKeeper {
 public:
  using Clock = std::chrono::steady_clock;
  struct Tap {
    std::string port;
    std::string interface;
  };
  struct Calls {
    std::function<core::Result<void>(std::size_t port)> remake;  ///< the tap itself
    std::function<core::Result<void>(std::size_t port)> set_up;  ///< up, addresses, routes
    std::function<void(std::size_t port, std::string fault)> fault;  ///< "": none any more
    std::function<void(const std::string& line)> warn;               ///< for the log
  };
  static constexpr std::chrono::seconds kRetry{1};

  TapKeeper(std::vector<Tap> taps, Calls calls);

  /// The first word about each tap only says how it is.
  void changed(const kni::TapChange& change, Clock::time_point now);
  /// Tries again what failed, if it is time.
  void retry(Clock::time_point now);

 private:
  struct State {
    bool known = false;
    bool own_doing = false;  ///< the next "up" tells of our own mending
    bool broken = false;     ///< mending failed
    bool missing = false;    ///< it has to be made, not only set up
    std::string fault;
  };
  void mend(std::size_t port, const char* what_happened);
  void set_fault(std::size_t port, const std::string& text);

  std::vector<Tap> taps_;
  Calls calls_;
  std::vector<State> states_;
  Clock::time_point next_try_ = Clock::time_point::max();
};

}  // namespace sluice::daemon
