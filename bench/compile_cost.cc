// What compile and freeze cost: a full state, then single endpoint changes. Prints one line per
// figure; asserts nothing (times depend on the machine).
//
// compile_cost [services] [endpoints per service] [changes] [scheduler]
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <string>
#include <vector>

#include "bench/windows.h"
#include "control/compile/compiler.h"

namespace {

/// CPU time of this process, so that other work on the machine does not count.
struct Clock {
  using duration = std::chrono::nanoseconds;
  using time_point = std::chrono::time_point<Clock, duration>;
  static constexpr bool is_steady = true;
  static time_point now() {
    timespec t{};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return time_point(std::chrono::seconds(t.tv_sec) + std::chrono::nanoseconds(t.tv_nsec));
  }
};
using namespace sluice;  // NOLINT(google-build-using-namespace): a main file
using bench::percentile;

double ms_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

std::string address(const char* prefix, std::size_t i) {
  return std::string(prefix) + std::to_string(i >> 16 & 0xff) + "." +
         std::to_string(i >> 8 & 0xff) + "." + std::to_string(i & 0xff);
}

std::string scheduler_of_all;  // NOLINT(cert-err58-cpp): of the command line; "": the default

model::Service service(std::size_t i) {
  model::Service s;
  s.scheduler = scheduler_of_all;
  s.name = {"ns" + std::to_string(i % 50), "svc" + std::to_string(i)};
  s.type = "LoadBalancer";
  s.cluster_ip = address("10.", (1U << 22) + i);
  s.cluster_ips = {s.cluster_ip};
  s.ip_families = {"IPv4"};
  s.ports.push_back(
      {"http", "TCP", 80, i < 2000 ? static_cast<std::int64_t>(30000 + i) : 0, "", ""});
  s.load_balancer_ingress.push_back({address("100.", i), "", std::nullopt});
  return s;
}

model::EndpointSlice slice(std::size_t i, std::size_t endpoints, std::size_t shift) {
  model::EndpointSlice s;
  s.name = {"ns" + std::to_string(i % 50), "svc" + std::to_string(i) + "-a"};
  s.labels["kubernetes.io/service-name"] = "svc" + std::to_string(i);
  s.address_type = "IPv4";
  s.ports.push_back({"http", "TCP", 8080});
  for (std::size_t e = 0; e < endpoints; ++e) {
    model::SliceEndpoint endpoint;
    endpoint.addresses = {address("172.", i * endpoints + e + (e == 0 ? shift << 20 : 0))};
    endpoint.node_name = "node" + std::to_string(e);
    s.endpoints.push_back(std::move(endpoint));
  }
  return s;
}

}  // namespace

int main(int argc, char** argv) {
  const auto argument = [&](int i, std::size_t standard) {
    return argc > i ? static_cast<std::size_t>(std::strtoull(argv[i], nullptr, 10)) : standard;
  };
  const std::size_t services = argument(1, 10000);
  const std::size_t endpoints = argument(2, 10);
  const std::size_t changes = argument(3, 2000);
  scheduler_of_all = argc > 4 ? argv[4] : "";

  model::ClusterState state;
  for (std::size_t i = 0; i < services; ++i) {
    auto s = service(i);
    auto e = slice(i, endpoints, 0);
    state.services.emplace(s.name, std::move(s));
    state.slices.emplace(e.name, std::move(e));
  }
  compile::NodeConfig config;
  config.node_name = "node0";
  config.announce = {*core::parse_cidr("100.0.0.0/8")};
  compile::HostState host;
  host.addresses.push_back({*core::parse_address("192.0.2.11"), "eth0"});

  compile::IdRegistry ids({static_cast<std::uint32_t>(services * 2),
                           static_cast<std::uint32_t>(services * endpoints * 2 + changes)});
  compile::Compiler compiler(compile::Profile::kNftables, ids);
  auto start = Clock::now();
  auto compiled = compiler.full(state, config, host);
  std::printf("full, empty before:      %9.2f ms\n", ms_since(start));
  start = Clock::now();
  compiled = compiler.full(state, config, host);
  std::printf("full, nothing changed:   %9.2f ms\n", ms_since(start));

  std::vector<double> times;
  for (std::size_t c = 0; c < changes && compiled; ++c) {
    model::Delta delta;
    delta.slices.push_back(slice(c * 7919 % services, endpoints, c % 2 + 1));
    const auto held = compiled;  // as the publisher holds the table in force
    start = Clock::now();
    const auto set = model::apply(state, delta);
    compiled = compiler.update(state, set, config, host);
    times.push_back(ms_since(start));
    ids.release_unused(compiled->table->generation(), [](core::EndpointId) { return false; });
  }
  std::printf("one endpoint change:     %9.4f ms p50, %.4f p99, %.4f max (apply+compile+freeze)\n",
              percentile(times, 0.5), percentile(times, 0.99), percentile(times, 1.0));

  times.clear();
  for (std::size_t c = 0; c < std::min<std::size_t>(changes, 500) && compiled; ++c) {
    model::Delta delta;
    auto s = service(services + c % 3);
    if (c % 2 == 0) {
      delta.services.push_back(s);
    } else {
      delta.deleted_services.push_back(service(services + (c - 1) % 3).name);
    }
    start = Clock::now();
    const auto set = model::apply(state, delta);
    compiled = compiler.update(state, set, config, host);
    times.push_back(ms_since(start));
  }
  std::printf("a Service comes or goes: %9.4f ms p50, %.4f p99\n", percentile(times, 0.5),
              percentile(times, 0.99));
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  std::printf("%zu services x %zu endpoints: %zu blocks, %zu frontends, peak memory %ld MB\n",
              services, endpoints, compiled->table->service_count(),
              compiled->table->frontend_count(), usage.ru_maxrss / 1024);
  return compiled ? 0 : 1;
}
