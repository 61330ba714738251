#include "control/tap_keeper.h"

#include <utility>

namespace sluice::daemon {

using kni::TapLink;

TapKeeper::TapKeeper(std::vector<Tap> taps, Calls calls)
    : taps_(std::move(taps)), calls_(std::move(calls)), states_(taps_.size()) {}

void TapKeeper::changed(const kni::TapChange& change, Clock::time_point now) {
  State& state = states_[change.port];
  const bool first = !std::exchange(state.known, true);
  switch (change.link) {
    case TapLink::kDown:
      set_fault(change.port, "is down: the host sends and resolves nothing on this port");
      return;
    case TapLink::kGone:
      state.missing = true;
      mend(change.port, "was deleted");
      break;
    case TapLink::kUp:
      if (first || std::exchange(state.own_doing, false)) {
        return;
      }
      mend(change.port, "was down");
      break;
  }
  next_try_ = state.broken ? now + kRetry : next_try_;
}

void TapKeeper::retry(Clock::time_point now) {
  if (now < next_try_) {
    return;
  }
  next_try_ = Clock::time_point::max();
  for (std::size_t port = 0; port < states_.size(); ++port) {
    if (states_[port].broken) {
      mend(port, "was lost");
      next_try_ = states_[port].broken ? now + kRetry : next_try_;
    }
  }
}

void TapKeeper::mend(std::size_t port, const char* what_happened) {
  State& state = states_[port];
  core::Result<void> done = state.missing ? calls_.remake(port) : core::Result<void>{};
  const bool made = state.missing && done;
  if (done) {
    state.missing = false;
    done = calls_.set_up(port);
  }
  state.broken = !done;
  if (!done) {
    set_fault(port, std::string(what_happened) + " and cannot be mended: " + done.error().message);
    return;
  }
  state.own_doing = made;
  set_fault(port, "");
  calls_.warn("port " + taps_[port].port + ": its tap " + taps_[port].interface + " " +
              what_happened + (made ? ": made anew, with" : ": set up again with") +
              " its addresses and routes");
}

void TapKeeper::set_fault(std::size_t port, const std::string& text) {
  State& state = states_[port];
  if (text == state.fault) {
    return;
  }
  state.fault = text;
  const std::string line =
      text.empty() ? ""
                   : "port " + taps_[port].port + ": its tap " + taps_[port].interface + " " + text;
  if (!line.empty()) {
    calls_.warn(line);
  }
  calls_.fault(port, line);
}

}  // namespace sluice::daemon
