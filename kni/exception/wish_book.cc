#include "kni/exception/wish_book.h"

#include <algorithm>

namespace sluice::kni {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using State = HostNeighbour::State;

constexpr auto kRefresh = seconds(2);      // without an answer it is asked for again
constexpr auto kUseRefresh = seconds(20);  // not managed: keeps a used neighbour from going stale
constexpr auto kSoon = milliseconds(100);  // lost, or wished for again
constexpr auto kNoBudget = milliseconds(5);

/// Nothing to resolve. To ask for a permanent one would make the kernel drop what it was told.
bool is_fixed(State state) { return state == State::kPermanent || state == State::kOwn; }

bool is_settled(State state) { return state == State::kReachable || is_fixed(state); }

}  // namespace

bool Budget::take(Time now) noexcept {
  if (now > at_) {
    const double passed = std::chrono::duration<double>(now - at_).count();
    left_ = std::min(burst_, left_ + passed * per_second_);
    at_ = now;
  }
  if (left_ < 1) {
    return false;
  }
  left_ -= 1;
  return true;
}

WishBook::WishBook(const Limits& limits, Calls calls)
    : limits_(limits),
      calls_(std::move(calls)),
      vouched_(limits.vouched_rate, limits.vouched_rate / 4),
      seen_(limits.other_rate, limits.other_rate / 8),
      others_(limits.other_rate, limits.other_rate / 8) {}

void WishBook::take(const std::vector<NeighbourWish>& wishes, Time now) {
  std::vector<const NeighbourWish*> others;
  for (const NeighbourWish& wish : wishes) {
    if (wish.vouched || wish.seen) {
      take_one(wish, now);
    } else {
      others.push_back(&wish);
    }
  }
  if (others.empty()) {
    return;
  }
  const auto first = static_cast<std::ptrdiff_t>(random_() % others.size());
  std::rotate(others.begin(), others.begin() + first, others.end());
  for (const NeighbourWish* wish : others) {
    take_one(*wish, now);
  }
}

void WishBook::take_one(const NeighbourWish& wish, Time now) {
  const Key key{wish.port, wish.address};
  Place at = wanted_.find(key);
  if (at == wanted_.end()) {
    const bool settled = is_settled(calls_.state(wish));
    const bool asks = !settled && !wish.vouched;
    if (asks && !(wish.seen && seen_.take(now)) && !others_.take(now)) {
      return;
    }
    at = wanted_.emplace(key, Wanted{}).first;
    at->second.vouched = wish.vouched;
    at->second.settled = settled;
    schedule(at, now);
    if (asks) {
      open(at);
      ask(at, now);
    }
  } else if (!at->second.settled) {
    schedule(at, std::min(at->second.due, std::max(now, at->second.asked + kSoon)));
  }
  at->second.wished = now;
  if (wish.vouched && !at->second.vouched) {
    close(at);
    at->second.vouched = true;
  }
  calls_.taken(wish);
}

bool WishBook::changed(const HostNeighbour& neighbour, Time now) {
  const Place at = wanted_.find({neighbour.port, neighbour.address});
  if (at == wanted_.end()) {
    return false;
  }
  const bool settled = is_settled(neighbour.state);
  if (settled && !at->second.settled) {
    at->second.settled = true;
    close(at);
  } else if (!settled && at->second.settled) {
    at->second.settled = false;
    at->second.wished = now;  // patience begins with the loss
    at->second.asked = {};
    schedule(at, now + kSoon);
    if (!at->second.vouched) {
      open(at);
    }
  }
  return true;
}

void WishBook::refresh(Time now) {
  while (!due_.empty() && due_.begin()->first <= now) {
    look_at(wanted_.find(due_.begin()->second), now);
  }
}

/// Leaves it due later than now, or forgotten.
void WishBook::look_at(Place at, Time now) {
  Wanted& wanted = at->second;
  const State state = calls_.state(wish_of(at));
  (void)changed({at->first.first, at->first.second, {}, state}, now);
  if (!wanted.settled && now - wanted.wished >= limits_.patience) {
    forget(at);
    return;
  }
  if (!is_fixed(state) && is_due_to_be_asked(wanted, state, now)) {
    if (!(wanted.vouched ? vouched_ : others_).take(now)) {
      schedule(at, now + kNoBudget);
      return;
    }
    ask(at, now);
  }
  const bool refused = !is_fixed(state) && wanted.asked == Time{};
  schedule(at, now + (refused          ? milliseconds(kSoon)
                      : wanted.settled ? milliseconds(kUseRefresh)
                                       : milliseconds(kRefresh)));
}

bool WishBook::is_due_to_be_asked(const Wanted& wanted, State state, Time now) const {
  if (wanted.asked == Time{}) {
    return true;
  }
  const auto passed = now - wanted.asked;
  if (wanted.settled) {
    return !managed_ && passed >= kUseRefresh;
  }
  return passed >= kRefresh || (state == State::kFailed && passed >= kSoon);
}

void WishBook::ask(Place at, Time now) {
  at->second.asked = calls_.ask(wish_of(at)) ? now : Time{};
}

void WishBook::forget(Place at) {
  const NeighbourWish wish = wish_of(at);
  close(at);
  due_.erase({at->second.due, at->first});
  wanted_.erase(at);
  calls_.forget(wish);
}

void WishBook::schedule(Place at, Time due) {
  due_.erase({at->second.due, at->first});
  at->second.due = due;
  due_.insert({due, at->first});
}

void WishBook::open(Place at) {
  at->second.opened = ++last_opened_;
  open_.emplace(last_opened_, at->first);
  if (open_.size() > limits_.open) {
    forget(wanted_.find(open_.begin()->second));
  }
}

void WishBook::close(Place at) {
  open_.erase(std::exchange(at->second.opened, 0));
}

std::vector<NeighbourWish> WishBook::all() const {
  std::vector<NeighbourWish> wishes;
  for (const auto& [key, wanted] : wanted_) {
    wishes.push_back({key.first, key.second, wanted.vouched, false});
  }
  return wishes;
}

}  // namespace sluice::kni
