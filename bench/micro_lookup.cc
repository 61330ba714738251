// Lookup and rewrite of a burst by the bare probe (probe.h), for bench/micro.

#include <cstdio>
#include <cstdlib>

#include <benchmark/benchmark.h>

#include "bench/clock.h"
#include "bench/eal.h"
#include "bench/probe.h"

namespace sluice::bench {
namespace {

void start_eal_once() {
  static const bool started = start_eal(false, 512);
  if (!started) {
    std::fprintf(stderr, "micro: the EAL did not start with 512 MiB\n");
    std::exit(1);
  }
}

template <class F>
void lookup(benchmark::State& state) {
  start_eal_once();
  const auto flows = static_cast<std::uint32_t>(state.range(0));
  auto probe = Probe<F>::create(flows);
  if (!probe) {
    state.SkipWithError(probe.error().message.c_str());
    return;
  }
  const FlowSpace<F> space{flows, 64};
  for (std::uint32_t f = 0; f < flows; ++f) {
    probe->add(f, space.forward(f), space.reply(f));
  }
  const Shuffle order(flows);
  FrameRing ring;
  std::uint32_t next = 0;
  std::uint64_t ticks = 0;
  for (auto _ : state) {
    state.PauseTiming();
    for (std::size_t i = 0; i < FrameRing::kFrames; ++i) {
      ring.put<F>(i, space.forward(order.at(next++ % flows)), core::kTcpAck);
    }
    state.ResumeTiming();
    const std::uint64_t start = tsc();
    for (std::size_t b = 0; b < FrameRing::kBursts; ++b) {
      benchmark::DoNotOptimize(probe->run(&ring.packet(b * pipeline::kBurst), pipeline::kBurst));
    }
    ticks += tsc() - start;
  }
  static const double per_tick = cycles_per_tick();
  state.counters["cycles"] = static_cast<double>(ticks) * per_tick /
                             static_cast<double>(state.iterations() * FrameRing::kFrames);
}
BENCHMARK(lookup<core::Ipv4>)->Name("lookup/ipv4")->Arg(1'000)->Arg(64'000)->Arg(500'000);
BENCHMARK(lookup<core::Ipv6>)->Name("lookup/ipv6")->Arg(1'000)->Arg(64'000);

}  // namespace
}  // namespace sluice::bench
