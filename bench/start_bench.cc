// How long a connection table takes to start, and what it takes. Prints one line per family and a
// target line for 16 million.

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>

#include <CLI/CLI.hpp>

#include "bench/eal.h"
#include "dataplane/dpdk/rte_hash_index.h"

namespace sluice::bench {
namespace {

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

template <class F>
double start_table(const char* name, std::uint32_t connections) {
  const auto start = std::chrono::steady_clock::now();
  core::ConnTableConfig config;
  config.capacity = connections;
  auto store = dpdk::ConnStore<F>::create({name}, config);
  const double seconds = seconds_since(start);
  if (!store) {
    std::fprintf(stderr, "start: %s\n", store.error().message.c_str());
    std::exit(1);
  }
  const auto bytes = static_cast<double>(dpdk::ConnStore<F>::bytes(connections));
  std::printf("%s: %u connections, %.0f MiB, %.1f bytes each, %.3f s\n", name,
              store->table.capacity(), bytes / 1048576, bytes / store->table.capacity(), seconds);
  return seconds;
}

int run(std::uint32_t connections, bool hugepages, bool ipv6) {
  const std::size_t bytes = dpdk::ConnStore<core::Ipv4>::bytes(connections) +
                            (ipv6 ? dpdk::ConnStore<core::Ipv6>::bytes(connections) : 0);
  const auto start = std::chrono::steady_clock::now();
  if (!start_eal(hugepages, (bytes >> 20) + 128)) {
    std::fprintf(stderr, "start: the EAL does not have %zu MiB\n", (bytes >> 20) + 128);
    return 1;
  }
  const double eal = seconds_since(start);
  double tables = start_table<core::Ipv4>("ipv4", connections);
  tables += ipv6 ? start_table<core::Ipv6>("ipv6", connections) : 0;
  std::printf("eal: %.3f s\n", eal);
  if (connections >= 16'000'000) {
    std::printf("target start_16m measured %.2f wanted 2.00 goal 2.00 %s\n", eal + tables,
                eal + tables <= 2 ? "pass" : "short");
  }
  return 0;
}

}  // namespace
}  // namespace sluice::bench

int main(int argc, char** argv) {
  std::uint32_t connections = 1'000'000;
  bool hugepages = false;
  bool ipv6 = false;
  CLI::App app{"time to start connection tables"};
  app.add_option("--connections", connections, "of one worker and family");
  app.add_flag("--hugepages", hugepages, "use huge pages");
  app.add_flag("--ipv6", ipv6, "an IPv6 table too");
  CLI11_PARSE(app, argc, argv);
  return sluice::bench::run(connections, hugepages, ipv6);
}
