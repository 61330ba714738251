#include "control/publish/trigger_times.h"

#include <algorithm>
#include <charconv>
#include <set>

#include "control/compile/name_finder.h"
#include "control/compile/slices.h"

namespace sluice::publish {
namespace {

using Time = TriggerTimes::Time;

/// AD-2: .25, .5, 1..59 by 1, 60..115 by 5, 120..300 by 30 seconds.
std::vector<std::chrono::nanoseconds> bounds() {
  using std::chrono::milliseconds;
  using std::chrono::seconds;
  std::vector<std::chrono::nanoseconds> out = {milliseconds(250), milliseconds(500)};
  const auto add = [&](int first, int last, int step) {
    for (int s = first; s <= last; s += step) {
      out.emplace_back(seconds(s));
    }
  };
  add(1, 59, 1);
  add(60, 115, 5);
  add(120, 300, 30);
  return out;
}

/// Takes a number of exactly `digits` digits and the character behind it, if it is not 0.
bool take_number(std::string_view& text, std::size_t digits, char behind, int& value) {
  if (text.size() < digits + (behind == 0 ? 0 : 1)) {
    return false;
  }
  const auto [end, error] = std::from_chars(text.data(), text.data() + digits, value);
  if (error != std::errc{} || end != text.data() + digits || value < 0 ||
      (behind != 0 && text[digits] != behind)) {
    return false;
  }
  text.remove_prefix(digits + (behind == 0 ? 0 : 1));
  return true;
}

/// ".123" and the like; nothing there is none.
std::chrono::nanoseconds take_fraction(std::string_view& text) {
  std::int64_t nanoseconds = 0;
  if (text.size() < 2 || text.front() != '.' || text[1] < '0' || text[1] > '9') {
    return std::chrono::nanoseconds(0);  // a dot that stays is no zone
  }
  text.remove_prefix(1);
  for (std::int64_t unit = 100'000'000; !text.empty() && text[0] >= '0' && text[0] <= '9';
       unit /= 10) {
    nanoseconds += unit * (text.front() - '0');
    text.remove_prefix(1);
  }
  return std::chrono::nanoseconds(nanoseconds);
}

/// "Z", "+02:00". nullopt: neither.
std::optional<std::chrono::minutes> take_zone(std::string_view text) {
  if (text == "Z" || text == "z") {
    return std::chrono::minutes(0);
  }
  if (text.empty() || (text.front() != '+' && text.front() != '-')) {
    return std::nullopt;
  }
  const int sign = text.front() == '-' ? -1 : 1;
  text.remove_prefix(1);
  int hours = 0;
  int minutes = 0;
  if (!take_number(text, 2, ':', hours) || !take_number(text, 2, 0, minutes) || !text.empty() ||
      hours >= 24 || minutes >= 60) {
    return std::nullopt;
  }
  return std::chrono::minutes(sign * (hours * 60 + minutes));
}

std::optional<Time> trigger_of(const model::EndpointSlice& slice) {
  const auto found = slice.annotations.find(TriggerTimes::kAnnotation);
  return found == slice.annotations.end() ? std::nullopt : parse_rfc3339(found->second);
}

}  // namespace

std::optional<Time> parse_rfc3339(std::string_view text) {
  constexpr int kFirstYear = 1970;
  constexpr int kLastYear = 2261;  // the clock counts nanoseconds in 64 bits
  int year = 0;
  int month = 0;
  int day = 0;
  if (!take_number(text, 4, '-', year) || year < kFirstYear || year > kLastYear ||
      !take_number(text, 2, '-', month) || !take_number(text, 2, 0, day) || text.empty() ||
      (text.front() != 'T' && text.front() != 't')) {
    return std::nullopt;
  }
  text.remove_prefix(1);
  int hour = 0;
  int minute = 0;
  int second = 0;
  if (!take_number(text, 2, ':', hour) || !take_number(text, 2, ':', minute) ||
      !take_number(text, 2, 0, second)) {
    return std::nullopt;
  }
  const std::chrono::nanoseconds fraction = take_fraction(text);
  const auto zone = take_zone(text);
  const std::chrono::year_month_day date{std::chrono::year(year),
                                         std::chrono::month(static_cast<unsigned>(month)),
                                         std::chrono::day(static_cast<unsigned>(day))};
  if (!date.ok() || hour >= 24 || minute >= 60 || second > 60 || !zone) {
    return std::nullopt;
  }
  return Time(std::chrono::sys_days(date)) + std::chrono::hours(hour) +
         std::chrono::minutes(minute) + std::chrono::seconds(second) +
         std::chrono::duration_cast<Time::duration>(fraction) - *zone;
}

TriggerTimes::TriggerTimes(Time began) : began_(began), v4_(bounds()), v6_(bounds()) {}

void TriggerTimes::take(const model::ChangeSet& changes, const model::ClusterState& state) {
  if (changes.slices.empty()) {
    return;
  }
  const std::lock_guard lock(mutex_);
  const bool awaiting = !awaited_.empty();
  std::set<model::ObjectName> stay;  // of what was awaited before
  compile::SliceFinder slices(state.slices);
  for (const model::ObjectName& name : changes.slices) {
    const model::EndpointSlice* const slice = slices.find(name);
    const auto trigger = slice == nullptr ? std::nullopt : trigger_of(*slice);
    const bool counts = trigger && *trigger > began_;
    if (slice == nullptr || !(counts || awaiting)) {  // nearly all of a snapshot
      continue;
    }
    const auto owner = model::owner_of(*slice);
    if (!owner) {
      continue;
    }
    if (awaiting) {
      stay.insert(*owner);
    }
    const auto family = compile::family_taking(*slice);
    if (family && counts && awaited_.size() < kMostAwaited) {
      awaited_.push_back({*owner, *family, *trigger, state.version});
    }
  }
  std::erase_if(awaited_, [&](const Awaited& a) {
    return awaiting && a.version != state.version && !stay.contains(a.service) &&
           std::binary_search(changes.slice_owners.begin(), changes.slice_owners.end(), a.service);
  });
}

void TriggerTimes::in_force(std::uint64_t version, Time now) {
  const std::lock_guard lock(mutex_);
  std::erase_if(awaited_, [&](const Awaited& a) {
    if (a.version > version) {
      return false;
    }
    (a.family == core::Family::kIpv4 ? v4_ : v6_).record(now - a.trigger);
    return true;
  });
}

}  // namespace sluice::publish
