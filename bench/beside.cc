#include "bench/beside.h"

#include <array>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "bench/floors.h"
#include "bench/population.h"

namespace sluice::bench {
namespace {

using core::Ipv4;

constexpr std::uint32_t kFlows = 64'000;

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
class One final : public Timed {
 public:
  One(std::unique_ptr<Rig> rig, bool changes)
      : rig_(std::move(rig)), population_(*rig_, kFlows), changes_(changes) {}

  [[nodiscard]] bool open() { return population_.open_all().has_value(); }
  bool fill(FrameRing& ring, std::uint64_t round) override {
    constexpr std::uint64_t kEvery = 10'000'000 / RigConfig::kNsPerPoll / FrameRing::kBursts;
    population_.fill(ring, round);
    return !changes_ || round % kEvery != 0 || rig_->change_endpoint().has_value();
  }
  void run(const pipeline::Packet* packets, std::uint32_t n) noexcept override {
    rig_->poll(packets, n);
  }
  [[nodiscard]] std::uint64_t done() const override { return rig_->out().sent(); }

  [[nodiscard]] std::string counters() const override { return rig_->counters(); }

 private:
  std::unique_ptr<Rig> rig_;
  Population<Ipv4> population_;
  bool changes_;
};

/// Two workers of which each gets what is its own, in steps of some rounds on this core: that long
/// a worker has the core's own caches, as it would have those of a core of its own. What two cores
/// do to each other's caches is not in it. Each table has the room of the single worker's, as
/// sluiced's have: `connections` is of each worker.
class Two final : public Timed {
 public:
  explicit Two(std::unique_ptr<Rig> rig)
      : rig_(std::move(rig)), lanes_{Lane{*rig_, 0}, Lane{*rig_, 1}} {
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
    const Step step = Step::of(round);
    who_ = step.who;
    populations_[who_].fill(ring, step.round);
    return true;
  }
  void run(const pipeline::Packet* packets, std::uint32_t n) noexcept override {
    lanes_[who_].poll(packets, n);
  }
  [[nodiscard]] std::uint64_t done() const override {
    return lanes_[0].out().sent() + lanes_[1].out().sent();
  }

  [[nodiscard]] std::string counters() const override { return rig_->counters(); }

 private:
  std::unique_ptr<Rig> rig_;
  std::array<Lane, 2> lanes_;
  std::array<std::vector<std::uint32_t>, 2> own_;
  std::vector<Population<Ipv4, Lane>> populations_;
  std::size_t who_ = 0;
};

constexpr const char* kPlain = "beside_one";
constexpr const char* kTwo = "beside_workers_2";
constexpr const char* kChanges = "beside_changes";
constexpr const char* kProbe = "beside_probe";
constexpr const char* kTwoProbes = "beside_probes_2";

/// The floor of two workers. @return false: told on standard error.
bool add_probes(Turns& turns) {
  const FlowSpace<Ipv4> space{kFlows, Rig::kBackends};
  auto probe = make_probe<Ipv4>(space);
  if (!probe) {
    std::fprintf(stderr, "bench: %s: %s\n", kProbe, probe.error().message.c_str());
    return false;
  }
  turns.add(kProbe, std::make_unique<ProbeSide<Ipv4>>(*probe, space));
  return turns.add_made(kTwoProbes, TwoProbes::make(kFlows));
}

/// What is asked for, with its flows. @return false: told on standard error.
bool make(Turns& turns, const Section& section) {
  const auto add = [&](const char* name, bool shared, auto made) {
    if (!section.has(name)) {
      return true;
    }
    auto rig = make_rig(shared);
    auto side = rig ? made(std::move(rig)) : nullptr;
    if (side == nullptr || !side->open()) {
      std::fprintf(stderr, "bench: %s: flows were not opened\n", name);
      return false;
    }
    turns.add(name, std::move(side));
    return true;
  };
  const auto one = [](bool changes) {
    return [changes](auto rig) { return std::make_unique<One>(std::move(rig), changes); };
  };
  return add(kPlain, false, one(false)) && add(kChanges, false, one(true)) &&
         add(kTwo, true, [](auto rig) { return std::make_unique<Two>(std::move(rig)); }) &&
         (section.alone() || add_probes(turns));
}

/// Of two that do together what one did.
Figure of_two(const Turns& turns, const char* one, const char* two) {
  Figure ratio = turns.ratio(one, two);
  ratio.told *= 2;
  ratio.median = *ratio.median * 2;
  return ratio;
}

}  // namespace

bool measure_beside(const TurnsConfig& config, const Section& section, Results& results) {
  Turns turns(config, kFlows);
  if (!make(turns, section) || !turns.run()) {
    return false;
  }
  if (section.alone()) {
    turns.tell(results);
    return true;
  }
  const Figure workers = of_two(turns, kPlain, kTwo);
  const Figure changes = turns.ratio(kPlain, kChanges);
  std::printf("# %u flows, in turn with one worker: two workers do %.2f of it, one whose table "
              "changes every 10 ms %.2f; by medians %.2f and %.2f\n",
              kFlows, workers.told, changes.told, *workers.median, *changes.median);
  results["workers_2/1"] = workers;
  results["probes_2/1"] = of_two(turns, kProbe, kTwoProbes);
  results["changes_every_10ms_goodput"] = changes;
  return true;
}

}  // namespace sluice::bench
