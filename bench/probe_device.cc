// sluice-bench-probe: the bare probe of probe.h as a device under test of bench/run. It knows both
// directions of the generator's flows (--reflect) from the start, rewrites each to itself and sends
// it back: what any balancer over such an index costs on this link, and nothing else. It ends with
// a signal.

#include <csignal>
#include <cstdio>
#include <string>

#include <CLI/CLI.hpp>

#include "bench/generator/device.h"
#include "bench/generator/flow_set.h"
#include "bench/probe.h"

namespace sluice::bench {
namespace {

volatile std::sig_atomic_t stopped = 0;

/// @return false: the table is full.
template <class F>
bool fill(Probe<F>& probe, const FlowPlan& plan) {
  const auto flows = FlowSet::make(F::kFamily, plan);
  Images images = flows->images();
  std::uint32_t known = 0;
  for (std::uint32_t i = 0; i < images.count(); ++i) {
    if (!probe.knows(images.at(i)) && !probe.add_reflected(known++, images.at(i))) {
      return false;
    }
  }
  return true;
}

/// @return frames of no known flow.
template <class F>
std::uint64_t forward(Device& device, Probe<F>& probe) noexcept {
  rte_mbuf* frames[Device::kBurst];
  std::array<pipeline::Packet, pipeline::kBurst> packets{};
  std::uint64_t missed = 0;
  while (stopped == 0) {
    const std::uint16_t got = device.receive(frames);
    for (std::uint16_t i = 0; i < got; ++i) {
      __builtin_prefetch(rte_pktmbuf_mtod(frames[i], void*), 1);
    }
    for (std::uint32_t first = 0; first < got; first += pipeline::kBurst) {
      const std::uint32_t n = std::min<std::uint32_t>(pipeline::kBurst, got - first);
      for (std::uint32_t i = 0; i < n; ++i) {
        packets[i].data = rte_pktmbuf_mtod(frames[first + i], std::uint8_t*);
      }
      missed += n - probe.run(packets.data(), n);
    }
    if (got != 0) {
      device.send(frames, got);
    }
  }
  return missed;
}

template <class F>
int run(Device& device, const FlowPlan& plan) {
  auto probe = Probe<F>::create(plan.flows);
  if (!probe || !fill(*probe, plan)) {
    std::fprintf(stderr, "probe: %s\n", probe ? "full" : probe.error().message.c_str());
    return 1;
  }
  std::printf("ready\n");
  std::fflush(stdout);
  const std::uint64_t missed = forward(device, *probe);
  std::printf("%lu frames of no known flow\n", missed);
  return 0;
}

}  // namespace
}  // namespace sluice::bench

int main(int argc, char** argv) {
  using namespace sluice;
  bench::DeviceOptions options;
  bench::FlowPlan plan;
  plan.reflect = true;
  std::string proto = "tcp";
  int family = 4;
  CLI::App app("The bare probe behind a DPDK device");
  app.add_option("--vdev", options.vdev, "DPDK device")->required();
  app.add_option("--core", options.core, "CPU");
  app.add_flag("--hugepages", options.hugepages);
  app.add_option("--memory-mib", options.memory_mib);
  app.add_option("--descriptors", options.descriptors);
  app.add_option("--family", family, "4 or 6")->check(CLI::IsMember({4, 6}));
  app.add_option("--proto", proto)->check(CLI::IsMember({"tcp", "udp"}));
  app.add_option("--flows", plan.flows, "as the generator's")->check(CLI::Range(1u, 1u << 30));
  app.add_option("--services", plan.services, "as the generator's")->check(CLI::PositiveNumber);
  CLI11_PARSE(app, argc, argv);
  plan.shape.proto = proto == "tcp" ? core::kIpProtoTcp : core::kIpProtoUdp;
  for (const int number : {SIGTERM, SIGINT}) {
    std::signal(number, [](int) { bench::stopped = 1; });
  }
  auto device = bench::Device::open(options);
  if (!device) {
    std::fprintf(stderr, "%s\n", device.error().message.c_str());
    return 1;
  }
  return family == 4 ? bench::run<core::Ipv4>(**device, plan)
                     : bench::run<core::Ipv6>(**device, plan);
}
