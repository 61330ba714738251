#include "bench/beside.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "bench/measure.h"
#include "bench/population.h"

namespace sluice::bench {
namespace {

using core::Ipv4;

constexpr std::uint32_t kFlows = 64'000;
constexpr std::uint64_t kSlices = 24;

/// One worker of a Rig.
struct Lane {
  Rig& rig;
  std::size_t worker;
  void poll(const pipeline::Packet* packets, std::uint32_t n) noexcept {
    rig.poll_at(worker, packets, n);
  }
  [[nodiscard]] const BenchIo& out() const noexcept { return rig.out_of(worker); }
  [[nodiscard]] std::string counters() const { return rig.counters(); }
};

/// What is timed, and how its frames are made. Thread: one.
class Side {
 public:
  virtual ~Side() = default;
  virtual bool fill(FrameRing& ring, std::uint64_t round) = 0;
  virtual void run(const pipeline::Packet* packets, std::uint32_t n) noexcept = 0;
  [[nodiscard]] virtual std::uint64_t sent() const = 0;
  [[nodiscard]] std::string counters() const { return rig_->counters(); }

 protected:
  explicit Side(std::unique_ptr<Rig> rig) : rig_(std::move(rig)) {}
  std::unique_ptr<Rig> rig_;
};

std::unique_ptr<Rig> make_rig(bool shared) {
  RigConfig config;
  config.connections = kFlows;
  config.shared = shared;
  auto rig = Rig::create(config);
  if (!rig) {
    std::fprintf(stderr, "bench: beside: %s\n", rig.error().message.c_str());
    return nullptr;
  }
  return std::move(*rig);
}

/// One worker; with `changes`, an endpoint leaves or comes back every 10 ms of the bench's clock.
/// Every entry is judged again after each; what the publisher does is not timed. Connections of the
/// endpoint that left go on (M-8).
class One final : public Side {
 public:
  One(std::unique_ptr<Rig> rig, bool changes)
      : Side(std::move(rig)), population_(*rig_, kFlows), changes_(changes) {}

  [[nodiscard]] bool open() { return population_.open_all().has_value(); }
  bool fill(FrameRing& ring, std::uint64_t round) override {
    constexpr std::uint64_t kEvery =
        10'000'000 / RigConfig{}.ns_per_poll / FrameRing::kBursts;
    population_.fill(ring, round);
    return !changes_ || round % kEvery != 0 || rig_->change_endpoint().has_value();
  }
  void run(const pipeline::Packet* packets, std::uint32_t n) noexcept override {
    rig_->poll(packets, n);
  }
  [[nodiscard]] std::uint64_t sent() const override { return rig_->out().sent(); }

 private:
  Population<Ipv4> population_;
  bool changes_;
};

/// Two workers of which each gets what is its own, burst by burst in turn on this core. What two
/// cores do to each other's caches is not in it.
class Two final : public Side {
 public:
  explicit Two(std::unique_ptr<Rig> rig)
      : Side(std::move(rig)), lanes_{Lane{*rig_, 0}, Lane{*rig_, 1}} {
    for (std::uint32_t n = 0; n < kFlows; ++n) {
      const core::FlowKey4 key = FlowSpace<Ipv4>{kFlows}.forward(n);
      own_[rig_->owner_of(core::IpAddress(key.src), key.sport)].push_back(n);
    }
    for (const std::size_t w : {0, 1}) {
      FlowSpace<Ipv4> space{static_cast<std::uint32_t>(own_[w].size())};
      space.picked = &own_[w];
      populations_.emplace_back(lanes_[w], space);
    }
  }

  [[nodiscard]] bool open() {
    return populations_[0].open_all().has_value() && populations_[1].open_all().has_value();
  }
  bool fill(FrameRing& ring, std::uint64_t round) override {
    for (std::size_t i = 0; i < FrameRing::kFrames; ++i) {
      const std::size_t burst = i / pipeline::kBurst;
      const std::uint64_t k = (round * FrameRing::kBursts / 2 + burst / 2) * pipeline::kBurst;
      populations_[burst % 2].put(ring, i, k + i % pipeline::kBurst);
    }
    return true;
  }
  void run(const pipeline::Packet* packets, std::uint32_t n) noexcept override {
    lanes_[turn_++ % 2].poll(packets, n);
  }
  [[nodiscard]] std::uint64_t sent() const override {
    return lanes_[0].out().sent() + lanes_[1].out().sent();
  }

 private:
  std::array<Lane, 2> lanes_;
  std::array<std::vector<std::uint32_t>, 2> own_;
  std::vector<Population<Ipv4, Lane>> populations_;
  std::size_t turn_ = 0;
};

/// Cycles of a packet of both sides, in turn. @return median of plain over other; 0: a frame was
/// lost.
double compare(double cycles_per_tick, std::uint64_t rounds, Side& plain, Side& other) {
  FrameRing ring;
  const std::uint64_t each = std::max<std::uint64_t>(rounds / kSlices, 16);
  bool good = true;
  const auto slice = [&](Side& side, std::uint64_t number) {
    const std::uint64_t before = side.sent();
    const double cycles = cycles_per_packet(
        cycles_per_tick, 0.5, each, ring,
        [&](FrameRing& r, std::uint64_t round) {
          good = side.fill(r, number * each + round) && good;
        },
        [&](const pipeline::Packet* p, std::uint32_t n) { side.run(p, n); });
    good = good && side.sent() - before == each * FrameRing::kFrames;
    return cycles;
  };
  std::vector<double> ratios;
  for (std::uint64_t number = 0; number < kSlices && good; ++number) {
    const double cycles = slice(plain, number);
    const ProfileWindow profiled;
    ratios.push_back(cycles / slice(other, number));
  }
  if (!good) {
    std::fprintf(stderr, "bench: beside: not every frame was forwarded:%s\n",
                 other.counters().c_str());
    return 0;
  }
  std::nth_element(ratios.begin(), ratios.begin() + kSlices / 2, ratios.end());
  return ratios[kSlices / 2];
}

}  // namespace

bool measure_beside(double cycles_per_tick, std::uint64_t rounds, const Section& section,
                    Results& results) {
  auto plain_rig = make_rig(false);
  auto changing_rig = make_rig(false);
  auto shared_rig = make_rig(true);
  if (!plain_rig || !changing_rig || !shared_rig) {
    return false;
  }
  One plain(std::move(plain_rig), false);
  One changing(std::move(changing_rig), true);
  Two two(std::move(shared_rig));
  if (!plain.open() || !changing.open() || !two.open()) {
    std::fprintf(stderr, "bench: beside: flows were not opened\n");
    return false;
  }
  const auto measured = [&](const char* name, Side& other, double workers) {
    if (section.has(name)) {
      results[name] = workers * compare(cycles_per_tick, rounds, plain, other);
    }
    return !section.has(name) || results[name] > 0;
  };
  const bool good =
      measured("beside_workers_2", two, 2) && measured("beside_changes", changing, 1);
  if (good && !section.alone()) {
    std::printf("# %u flows, in turn with one worker: two workers do %.2f of it, one whose table "
                "changes every 10 ms %.2f\n",
                kFlows, results["beside_workers_2"], results["beside_changes"]);
  }
  return good;
}

}  // namespace sluice::bench
