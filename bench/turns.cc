#include "bench/turns.h"

#include <algorithm>
#include <cstdio>
#include <utility>

#include "bench/clock.h"
#include "bench/section.h"
#include "bench/windows.h"

namespace sluice::bench {
namespace {

constexpr std::uint64_t kWindows = 48;
constexpr std::uint64_t kSlice = 16;  // rounds
/// Rounds; by then the cycles of millions of flows fall no more.
constexpr std::uint64_t kWarmOfMillions = 300;
constexpr std::uint64_t kLongestTour = 1024;

/// Rounds that are not counted. Flows that a cache can hold are all visited, in both directions:
/// else those that are counted would be what the other sides' windows left of them there, which is
/// nothing.
std::uint64_t warm_rounds(std::uint32_t flows) {
  const std::uint64_t tour = 2 * std::uint64_t{flows} / FrameRing::kFrames + 1;
  return tour <= kLongestTour ? tour : kWarmOfMillions;
}

}  // namespace

std::string quantile_name(double quantile) {
  char text[32];
  std::snprintf(text, sizeof text, "%g %% quantile", quantile * 100);
  return quantile == 0.5 ? "median" : text;
}

Turns::Turns(const TurnsConfig& config, std::uint32_t flows)
    : config_(config),
      warm_(warm_rounds(flows)),
      slices_(std::max<std::uint64_t>(config.rounds / kWindows / kSlice, 1)) {}

void Turns::add(std::string name, std::unique_ptr<Timed> what) {
  sides_.push_back({std::move(name), std::move(what), {}, {}, 0});
}

bool Turns::add_made(std::string name, core::Result<std::unique_ptr<Timed>> made) {
  if (!made) {
    std::fprintf(stderr, "bench: %s: %s\n", name.c_str(), made.error().message.c_str());
    return false;
  }
  add(std::move(name), std::move(*made));
  return true;
}

std::unique_ptr<Timed> Turns::take(std::string_view name) {
  const auto found = std::find_if(sides_.begin(), sides_.end(),
                                  [&](const Side& side) { return side.name == name; });
  std::unique_ptr<Timed> what = std::move(found->what);
  sides_.erase(found);
  return what;
}

bool Turns::run() {
  for (std::uint64_t n = 0; n < kWindows; ++n) {
    for (Side& side : sides_) {
      if (!window(side)) {
        std::fprintf(stderr, "bench: %s: not every frame was forwarded:%s\n", side.name.c_str(),
                     side.what->counters().c_str());
        return false;
      }
    }
  }
  return true;
}

bool Turns::window(Side& side) {
  const ProfileWindow profiled(side.name);
  const std::uint64_t before = side.what->done();
  bool good = true;
  const auto round = [&] {
    good = good && side.what->fill(ring_, side.rounds++);
    const std::uint64_t start = tsc();
    for (std::size_t b = 0; b < FrameRing::kBursts; ++b) {
      side.what->run(&ring_.packet(b * pipeline::kBurst),
                     static_cast<std::uint32_t>(pipeline::kBurst));
    }
    return static_cast<double>(tsc() - start) / FrameRing::kFrames * config_.cycles_per_tick;
  };
  for (std::uint64_t r = 0; r < warm_; ++r) {
    round();
  }
  std::vector<double> slices;
  for (std::uint64_t s = 0; s < slices_ && good; ++s) {
    std::vector<double> cycles(kSlice);
    std::generate(cycles.begin(), cycles.end(), round);
    slices.push_back(median(cycles));
  }
  side.windows.push_back(median(slices));
  side.slices.insert(side.slices.end(), slices.begin(), slices.end());
  return good &&
         side.what->done() - before == (warm_ + slices_ * kSlice) * FrameRing::kFrames;
}

bool Turns::has(std::string_view name) const {
  return std::any_of(sides_.begin(), sides_.end(),
                     [&](const Side& side) { return side.name == name; });
}

const Turns::Side& Turns::of(std::string_view name) const {
  return *std::find_if(sides_.begin(), sides_.end(),
                       [&](const Side& side) { return side.name == name; });
}

Figure Turns::cycles(std::string_view name) const {
  const Side& side = of(name);
  return {percentile(side.slices, config_.quantile), median(side.slices),
          quantile_name(config_.quantile)};
}

template <class Operation>
Figure Turns::compared(std::string_view one, std::string_view other,
                       Operation&& operation) const {
  const Side& a = of(one);
  const Side& b = of(other);
  std::vector<double> turns;
  for (std::size_t n = 0; n < a.windows.size(); ++n) {
    turns.push_back(operation(a.windows[n], b.windows[n]));
  }
  return {operation(percentile(a.slices, config_.quantile),
                    percentile(b.slices, config_.quantile)),
          median(turns), quantile_name(config_.quantile)};
}

Figure Turns::ratio(std::string_view above, std::string_view below) const {
  return compared(above, below, [](double a, double b) { return a / b; });
}

Figure Turns::difference(std::string_view more, std::string_view less) const {
  return compared(more, less, [](double a, double b) { return a - b; });
}

void Turns::tell(Results& results) const {
  for (const Side& side : sides_) {
    results.emplace(side.name, cycles(side.name));
  }
}

}  // namespace sluice::bench
