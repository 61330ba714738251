// How long a connection table takes to start, and what it takes. Prints one line per family, and
// the targets for memory and, of 16 million, for the start.

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>

#include <CLI/CLI.hpp>
#include <rte_lcore.h>
#include <rte_malloc.h>

#include "bench/eal.h"
#include "bench/targets.h"
#include "dataplane/dpdk/rte_hash_index.h"

namespace sluice::bench {
namespace {

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

/// Bytes of the EAL's heap that are taken.
std::size_t taken() {
  std::size_t sum = 0;
  for (int socket = 0; socket < static_cast<int>(rte_socket_count()); ++socket) {
    rte_malloc_socket_stats stats{};
    if (rte_malloc_get_socket_stats(rte_socket_id_by_idx(static_cast<unsigned>(socket)), &stats) ==
        0) {
      sum += stats.heap_allocsz_bytes;
    }
  }
  return sum;
}

struct Start {
  double seconds = 0;
  double bytes_each = 0;  ///< the larger of what sluiced says a table takes and what it took
};

template <class F>
Start start_table(const char* name, std::uint32_t connections) {
  const std::size_t before = taken();
  const auto start = std::chrono::steady_clock::now();
  core::ConnTableConfig config;
  config.capacity = connections;
  auto store = dpdk::ConnStore<F>::create({name}, config);
  const double seconds = seconds_since(start);
  if (!store) {
    std::fprintf(stderr, "start: %s\n", store.error().message.c_str());
    std::exit(1);
  }
  const auto took = static_cast<double>(taken() - before);
  const auto told = static_cast<double>(dpdk::ConnStore<F>::bytes(connections));
  const double capacity = store->table.capacity();
  std::printf("%s: %.0f connections, %.0f MiB (told: %.0f), %.1f bytes each, %.3f s\n", name,
              capacity, took / 1048576, told / 1048576, took / capacity, seconds);
  return {seconds, std::max(took, told) / capacity};
}

int run(std::uint32_t connections, bool hugepages) {
  // An IPv6 table of a million says what a connection takes; it is gone before the other starts.
  const std::uint32_t few = std::min(connections, 1'000'000u);
  const std::size_t bytes = std::max(dpdk::ConnStore<core::Ipv4>::bytes(connections),
                                     dpdk::ConnStore<core::Ipv6>::bytes(few));
  const auto start = std::chrono::steady_clock::now();
  if (!start_eal(hugepages, (bytes >> 20) + 128)) {
    std::fprintf(stderr, "start: the EAL does not have %zu MiB\n", (bytes >> 20) + 128);
    return 1;
  }
  const double eal = seconds_since(start);
  Results results;
  results["memory_bytes_ipv6"] = start_table<core::Ipv6>("ipv6", few).bytes_each;
  const Start ipv4 = start_table<core::Ipv4>("ipv4", connections);
  results["memory_bytes_ipv4"] = ipv4.bytes_each;
  std::printf("eal: %.3f s\n", eal);
  if (connections >= 16'000'000) {
    results["start_16m"] = eal + ipv4.seconds;
  }
  print_targets(results);
  return 0;
}

}  // namespace
}  // namespace sluice::bench

int main(int argc, char** argv) {
  std::uint32_t connections = 1'000'000;
  bool hugepages = false;
  CLI::App app{"time to start connection tables"};
  app.add_option("--connections", connections, "of one worker and family");
  app.add_flag("--hugepages", hugepages, "use huge pages");
  CLI11_PARSE(app, argc, argv);
  return sluice::bench::run(connections, hugepages);
}
