#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "bench/sides.h"
#include "bench/targets.h"
#include "bench/turns.h"

namespace sluice::bench {

// Floors: what the least program that does a job takes here, measured in the run of the target.

/// The bare probe in two loops on one core, burst by burst: one reads every key and asks a worker's
/// memory of flows whose it is, the other, to which a ring takes them, does the rest. What it takes
/// more than ProbeSide is a bare hand-over.
template <class F>
class HandedProbeSide final : public Timed {
 public:
  /// Errors: too little memory.
  [[nodiscard]] static MadeSide make(std::shared_ptr<Probe<F>> probe, const FlowSpace<F>& space) {
    auto memory = dpdk::EntryMemory::allocate(
        {"bare_handed"}, pipeline::SteeringCache::memory_bytes(kWorkers, space.flows));
    if (!memory) {
      return tl::unexpected(memory.error());
    }
    auto side = std::unique_ptr<HandedProbeSide>(
        new HandedProbeSide(std::move(probe), space, std::move(*memory)));
    for (std::uint32_t f = 0; f < space.flows; ++f) {
      for (const auto& key : {space.forward(f), space.reply(f)}) {
        side->whose_.keep(Probe<F>::hash(key), 1);
      }
    }
    return side;
  }

  bool fill(FrameRing& ring, std::uint64_t round) override {
    fill_both_ways(space_, ring, round);
    return true;
  }
  void run(const pipeline::Packet* packets, std::uint32_t n) noexcept override {
    known_ += Probe<F>::hand_over(packets, n, whose_, ring_);
    found_ += probe_->take_over(ring_);
  }
  [[nodiscard]] std::uint64_t done() const override { return found_; }
  [[nodiscard]] std::string counters() const override {
    return " of remembered flows " + std::to_string(known_);
  }

 private:
  static constexpr std::size_t kWorkers = 2;

  HandedProbeSide(std::shared_ptr<Probe<F>> probe, const FlowSpace<F>& space,
                  dpdk::EntryMemory memory)
      : probe_(std::move(probe)),
        space_(space),
        memory_(std::move(memory)),
        whose_(0, kWorkers, memory_.span()) {}

  std::shared_ptr<Probe<F>> probe_;
  FlowSpace<F> space_;
  dpdk::EntryMemory memory_;
  pipeline::SteeringCache whose_;
  typename Probe<F>::Ring ring_{512};  // as the worker's
  std::uint64_t known_ = 0;
  std::uint64_t found_ = 0;
};

/// Two bare probes, each with half of the flows in a table of its own, in steps.
class TwoProbes final : public Timed {
 public:
  /// @param flows  of both together. Errors: too little memory.
  [[nodiscard]] static MadeSide make(std::uint32_t flows);

  bool fill(FrameRing& ring, std::uint64_t round) override;
  void run(const pipeline::Packet* packets, std::uint32_t n) noexcept override {
    found_ += probes_[who_]->run(packets, n);
  }
  [[nodiscard]] std::uint64_t done() const override { return found_; }

 private:
  using F = core::Ipv4;
  TwoProbes() = default;

  std::array<std::vector<std::uint32_t>, 2> own_;
  std::array<FlowSpace<F>, 2> spaces_;
  std::array<std::shared_ptr<Probe<F>>, 2> probes_;
  std::size_t who_ = 0;
  std::uint64_t found_ = 0;
};

/// Cycles for what the index alone does for a new IPv4 flow, as many live as new_flows.h has: both
/// keys, whose hashes are known, are asked for ahead and added, those of the oldest flow deleted.
[[nodiscard]] Figure bare_new_flow_cycles(const TurnsConfig& config, bool& failed);

}  // namespace sluice::bench
