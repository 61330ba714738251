#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "bench/core_loop.h"
#include "bench/population.h"
#include "bench/probe.h"
#include "bench/rig.h"
#include "bench/turns.h"

namespace sluice::bench {

// What bench/pipeline compares. Each side has its table and its flows when it is made.

using MadeSide = core::Result<std::unique_ptr<Timed>>;

/// Frames of both directions of flows whose replies come from the backend they are counted to.
template <class F>
void fill_both_ways(const FlowSpace<F>& space, FrameRing& ring, std::uint64_t round) noexcept {
  const Shuffle shuffle(space.flows);
  for (std::size_t i = 0; i < FrameRing::kFrames; ++i) {
    const std::uint64_t k = round * FrameRing::kFrames + i;
    const std::uint32_t flow = shuffle.at(static_cast<std::uint32_t>(k % space.flows));
    const bool reply = ((k / space.flows + k) & 1) != 0;
    ring.put<F>(i, reply ? space.reply(flow) : space.forward(flow), core::kTcpAck);
  }
}

/// With its flows. Errors: too little memory.
template <class F>
[[nodiscard]] core::Result<std::shared_ptr<Probe<F>>> make_probe(const FlowSpace<F>& space) {
  auto probe = Probe<F>::create(space.flows);
  if (!probe) {
    return tl::unexpected(probe.error());
  }
  auto made = std::make_shared<Probe<F>>(std::move(*probe));
  for (std::uint32_t f = 0; f < space.flows; ++f) {
    made->add(f, space.forward(f), space.reply(f));
  }
  return made;
}

/// The bare probe. It may share its table with another side.
template <class F>
class ProbeSide final : public Timed {
 public:
  ProbeSide(std::shared_ptr<Probe<F>> probe, const FlowSpace<F>& space)
      : probe_(std::move(probe)), space_(space) {}

  bool fill(FrameRing& ring, std::uint64_t round) override {
    fill_both_ways(space_, ring, round);
    return true;
  }
  void run(const pipeline::Packet* packets, std::uint32_t n) noexcept override {
    found_ += probe_->run(packets, n);
  }
  [[nodiscard]] std::uint64_t done() const override { return found_; }

 private:
  std::shared_ptr<Probe<F>> probe_;
  FlowSpace<F> space_;
  std::uint64_t found_ = 0;
};

/// Which frames a WorkerSide is given.
struct Given {
  std::uint32_t handed = pipeline::kBurst;  ///< of each burst, to the wrong worker of two
  bool answers = true;                      ///< of backends too
};

/// Flows that were opened by whole handshakes, through a whole worker or two.
template <class F>
class WorkerSide final : public Timed {
 public:
  [[nodiscard]] static MadeSide make(const RigConfig& config, const Given& given = {}) {
    auto rig = Rig::create(config);
    if (!rig) {
      return tl::unexpected(rig.error());
    }
    auto side = std::unique_ptr<WorkerSide>(new WorkerSide(std::move(*rig), config, given));
    if (auto opened = side->population_.open_all(); !opened) {
      return tl::unexpected(opened.error());
    }
    return side;
  }
  bool fill(FrameRing& ring, std::uint64_t round) override {
    if (given_.answers) {
      population_.fill(ring, round);
    } else {
      population_.fill_requests(ring, round);
    }
    return true;
  }
  void run(const pipeline::Packet* packets, std::uint32_t n) noexcept override {
    if (given_.handed < n) {
      rig_->poll_split(packets, n, given_.handed);
    } else {
      rig_->poll(packets, n);
    }
  }
  [[nodiscard]] std::uint64_t done() const override { return rig_->out().sent(); }
  [[nodiscard]] std::string counters() const override { return rig_->counters(); }

 private:
  WorkerSide(std::unique_ptr<Rig> rig, const RigConfig& config, const Given& given)
      : rig_(std::move(rig)),
        population_(*rig_, config.connections, config.protocol),
        given_(given) {}

  std::unique_ptr<Rig> rig_;
  Population<F> population_;
  Given given_;
};

/// Flows whose answers no worker sees: dr and ipip.
template <class F>
class OneWaySide final : public Timed {
 public:
  [[nodiscard]] static MadeSide make(const RigConfig& config) {
    auto rig = Rig::create(config);
    if (!rig) {
      return tl::unexpected(rig.error());
    }
    auto side = std::unique_ptr<OneWaySide>(new OneWaySide(std::move(*rig), config));
    FrameRing ring;
    for (const std::uint8_t flags : {core::kTcpSyn, core::kTcpAck}) {
      for (std::uint64_t round = 0; round <= config.connections / FrameRing::kFrames; ++round) {
        side->put(ring, round, flags);
        for (std::size_t b = 0; b < FrameRing::kBursts; ++b) {
          side->run(&ring.packet(b * pipeline::kBurst), pipeline::kBurst);
        }
      }
    }
    return side;
  }
  bool fill(FrameRing& ring, std::uint64_t round) override {
    put(ring, round, core::kTcpAck);
    return true;
  }
  void run(const pipeline::Packet* packets, std::uint32_t n) noexcept override {
    rig_->poll(packets, n);
  }
  [[nodiscard]] std::uint64_t done() const override { return rig_->out().sent(); }
  [[nodiscard]] std::string counters() const override { return rig_->counters(); }

 private:
  OneWaySide(std::unique_ptr<Rig> rig, const RigConfig& config)
      : rig_(std::move(rig)),
        space_{config.connections, Rig::kBackends, static_cast<std::uint8_t>(config.protocol)},
        order_(config.connections) {}

  void put(FrameRing& ring, std::uint64_t round, std::uint8_t flags) const noexcept {
    for (std::size_t i = 0; i < FrameRing::kFrames; ++i) {
      const std::uint64_t k = (round * FrameRing::kFrames + i) % space_.flows;
      ring.put<F>(i, space_.forward(order_.at(static_cast<std::uint32_t>(k))), flags);
    }
  }

  std::unique_ptr<Rig> rig_;
  FlowSpace<F> space_;
  Shuffle order_;
};

/// The product's parts in a straight line, up to one of them. Several may share a loop.
template <class F, UpTo kUpTo>
class CoreSide final : public Timed {
 public:
  CoreSide(std::shared_ptr<CoreLoop<F>> loop, std::uint32_t flows)
      : loop_(std::move(loop)), space_{flows, Rig::kBackends} {}

  bool fill(FrameRing& ring, std::uint64_t round) override {
    fill_both_ways(space_, ring, round);
    return true;
  }
  void run(const pipeline::Packet* packets, std::uint32_t n) noexcept override {
    done_ += loop_->template run<kUpTo>(packets, n);
  }
  [[nodiscard]] std::uint64_t done() const override { return done_; }

 private:
  std::shared_ptr<CoreLoop<F>> loop_;
  FlowSpace<F> space_;
  std::uint64_t done_ = 0;
};

/// With its flows. Errors: too little memory.
template <class F>
[[nodiscard]] core::Result<std::shared_ptr<CoreLoop<F>>> make_core_loop(std::uint32_t flows) {
  auto loop = CoreLoop<F>::create(flows);
  if (!loop) {
    return tl::unexpected(loop.error());
  }
  auto made = std::make_shared<CoreLoop<F>>(std::move(*loop));
  const FlowSpace<F> space{flows, Rig::kBackends};
  for (std::uint32_t f = 0; f < flows; ++f) {
    if (!made->add(space.forward(f), space.reply(f))) {
      return tl::unexpected(core::Error{"the table is full"});
    }
  }
  return made;
}

}  // namespace sluice::bench
