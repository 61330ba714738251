// sluice-bench-kernel: what a kernel mode costs, in a network namespace of its own.
//
// One row per cluster: a full sync into an empty kernel and into one that has it all (read back,
// nothing to send), one endpoint added by a later table, `nft -f` of the same rule set, memory.
// Wall time with the CPU time of this process beside it, in ms; the kernel works inside our calls.
//
// sluice-bench-kernel [--services N]... [--endpoints N] [--changes N] [--nft-seconds N]
#include <sched.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <string>
#include <vector>

#include "control/compile/compiler.h"
#include "kni/nftables/nftables_sink.h"
#include "kni/nftables/ruleset_text.h"

namespace {

using namespace sluice;  // NOLINT(google-build-using-namespace): a main file
using Clock = std::chrono::steady_clock;

constexpr double kFullTarget = 300;  // ms, design section 8, at 10,000 x 10
constexpr double kChangeTarget = 3;  // ms

struct Time {
  double wall = 0;
  double cpu = 0;
};

double cpu_ms() {
  timespec t{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) * 1e3 + static_cast<double>(t.tv_nsec) / 1e6;
}

template <class Body>
Time measure(Body body) {
  const auto wall = Clock::now();
  const double cpu = cpu_ms();
  body();
  return {std::chrono::duration<double, std::milli>(Clock::now() - wall).count(), cpu_ms() - cpu};
}

[[noreturn]] void fail(const std::string& why) {
  std::fprintf(stderr, "sluice-bench-kernel: %s\n", why.c_str());
  std::exit(1);
}

std::string address(std::uint32_t base, std::size_t i) {
  const auto a = base + static_cast<std::uint32_t>(i);
  return std::to_string(a >> 24) + "." + std::to_string(a >> 16 & 0xff) + "." +
         std::to_string(a >> 8 & 0xff) + "." + std::to_string(a & 0xff);
}

/// What a Service of a cluster has beside its cluster IP.
struct Kind {
  const char* name;
  bool load_balancer;         ///< VIP and, while the range lasts, a node port
  std::size_t affinity_each;  ///< every so many Services has session affinity; 0: none
};
constexpr Kind kKinds[] = {
    {"cluster IPs", false, 0}, {"load balancers", true, 0}, {"10 % affinity", false, 10}};

class Cluster {
 public:
  Cluster(std::size_t services, std::size_t endpoints, const Kind& kind)
      : endpoints_(endpoints),
        ids_(limits(services, endpoints)),
        compiler_(compile::Profile::kNftables, ids_) {
    config_.node_name = "node";
    config_.cluster_cidrs = {*core::parse_cidr("10.64.0.0/10")};
    host_.addresses = {{*core::parse_address("192.0.2.11"), "eth0"}};
    config_.node_addresses = {*core::parse_address("192.0.2.11")};
    for (std::size_t i = 0; i < services; ++i) {
      add(i, kind);
    }
    take(model::apply(state_, delta_));
  }

  [[nodiscard]] const core::TablePtr& table() const { return table_; }

  /// The Service gets one endpoint more, or loses it again.
  void change(std::size_t service, bool more) {
    delta_ = {};
    delta_.slices.push_back(slice(service, endpoints_ + (more ? 1 : 0)));
    take(model::apply(state_, delta_));
  }

 private:
  static compile::IdRegistry::Limits limits(std::size_t services, std::size_t endpoints) {
    compile::IdRegistry::Limits limits;
    limits.service_ports = static_cast<std::uint32_t>(services + 16);
    limits.endpoints = static_cast<std::uint32_t>(services * (endpoints + 2) + 16);
    return limits;
  }

  void take(const model::ChangeSet& changes) {
    auto compiled = compiler_.update(state_, changes, config_, host_);
    if (!compiled) {
      fail(compiled.error().message);
    }
    table_ = compiled->table;
  }

  void add(std::size_t i, const Kind& kind) {
    model::Service s;
    s.name = {"ns" + std::to_string(i % 50), "svc" + std::to_string(i)};
    s.type = "ClusterIP";
    s.cluster_ip = address(0x0a800000, i);
    s.cluster_ips = {s.cluster_ip};
    s.ip_families = {"IPv4"};
    s.ports.push_back({"http", "TCP", 80, 0, "", ""});
    if (kind.load_balancer) {
      s.type = "LoadBalancer";
      s.ports[0].node_port = i < 2768 ? static_cast<std::int64_t>(30000 + i) : 0;
      s.load_balancer_ingress.push_back({address(0xc6120000, i), "", std::nullopt});
    }
    if (kind.affinity_each != 0 && i % kind.affinity_each == 0) {
      s.session_affinity = "ClientIP";
      s.affinity_timeout_seconds = 10800;
    }
    delta_.services.push_back(std::move(s));
    delta_.slices.push_back(slice(i, endpoints_));
  }

  static model::EndpointSlice slice(std::size_t i, std::size_t endpoints) {
    model::EndpointSlice s;
    s.name = {"ns" + std::to_string(i % 50), "svc" + std::to_string(i) + "-a"};
    s.labels["kubernetes.io/service-name"] = "svc" + std::to_string(i);
    s.address_type = "IPv4";
    s.ports.push_back({"http", "TCP", 8080});
    for (std::size_t e = 0; e < endpoints; ++e) {
      model::SliceEndpoint endpoint;
      endpoint.addresses = {address(0x0a400000, i * 16 + e)};
      endpoint.ready = true;
      s.endpoints.push_back(std::move(endpoint));
    }
    return s;
  }

  std::size_t endpoints_;
  compile::NodeConfig config_;
  compile::HostState host_;
  compile::IdRegistry ids_;
  compile::Compiler compiler_;
  model::ClusterState state_;
  model::Delta delta_;
  core::TablePtr table_;
};

kni::NftablesSink make_sink() {
  auto kernel = kni::nft::open_kernel();
  if (!kernel) {
    fail(kernel.error().message);
  }
  return kni::NftablesSink(std::move(*kernel), {});
}

Time apply(kni::NftablesSink& sink, const core::TablePtr& table) {
  return measure([&] {
    if (const auto applied = sink.apply(table); !applied) {
      fail(applied.error().message);
    }
  });
}

long peak_mib() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss / 1024;
}

/// `nft -f` of the same rule set; a negative time: not within the limit.
Time nft_file(const core::ForwardingTable& table, unsigned seconds) {
  const std::string path = "/tmp/sluice-bench-kernel-" + std::to_string(getpid()) + ".nft";
  kni::nft::Rendered rendered = kni::nft::render(table);
  std::ofstream(path) << kni::nft::ruleset_text(rendered.rulesets.v4)
                      << kni::nft::ruleset_text(rendered.rulesets.v6);
  const std::string command =
      "ulimit -v 4194304; exec timeout " + std::to_string(seconds) + " nft -f " + path;
  int status = 0;
  Time time = measure([&] { status = std::system(command.c_str()); });
  std::remove(path.c_str());
  return status == 0 ? time : Time{-1, -1};
}

struct Options {
  std::vector<std::size_t> services;
  std::size_t endpoints = 10;
  std::size_t changes = 100;
  unsigned nft_seconds = 120;
};

std::vector<Time> changes(kni::NftablesSink& sink, Cluster& cluster, std::size_t services,
                          std::size_t count) {
  std::vector<Time> times;
  for (std::size_t i = 0; i < count; ++i) {
    // A Service without affinity: its neighbour in the list of every tenth.
    cluster.change((i / 2 * 10 + 1) % services, i % 2 == 0);
    times.push_back(apply(sink, cluster.table()));
  }
  std::sort(times.begin(), times.end(),
            [](const Time& a, const Time& b) { return a.wall < b.wall; });
  return times;
}

void row(std::size_t services, const Kind& kind, const Options& options) {
  Cluster cluster(services, options.endpoints, kind);
  kni::NftablesSink sink = make_sink();
  const Time first = apply(sink, cluster.table());
  kni::NftablesSink again = make_sink();
  const Time known = apply(again, cluster.table());
  const auto times = changes(again, cluster, services, options.changes);
  const Time& p50 = times[times.size() / 2];
  const Time& p99 = times[times.size() * 99 / 100];
  const long mib = peak_mib();
  if (const auto cleaned = again.cleanup(); !cleaned) {
    fail(cleaned.error().message);
  }
  const Time nft =
      options.nft_seconds == 0 ? Time{-1, -1} : nft_file(*cluster.table(), options.nft_seconds);
  (void)again.cleanup();
  std::printf(
      "%7zu x %-3zu %-15s full %8.1f (cpu %7.1f)  again %8.1f (cpu %7.1f)  "
      "change p50 %6.2f p99 %6.2f (cpu %5.2f)  peak %ld MiB  nft -f ",
      services, options.endpoints, kind.name, first.wall, first.cpu, known.wall, known.cpu,
      p50.wall, p99.wall, p50.cpu, mib);
  std::printf(nft.wall < 0 ? "not in the limit\n" : "%.0f\n", nft.wall);
  if (services == 10000 && options.endpoints == 10 && &kind == &kKinds[0]) {
    std::printf("target nftables full sync: %.1f ms cpu, wanted %.0f: %s\n", first.cpu, kFullTarget,
                first.cpu <= kFullTarget ? "met" : "missed");
    std::printf("target nftables one endpoint: %.2f ms cpu, wanted %.0f: %s\n", p50.cpu,
                kChangeTarget, p50.cpu <= kChangeTarget ? "met" : "missed");
  }
  std::fflush(stdout);
}

/// A row in a process and a namespace of its own, so that memory is its own, too.
void row_apart(std::size_t services, const Kind& kind, const Options& options) {
  std::fflush(stdout);
  const pid_t child = fork();
  if (child == 0) {
    if (unshare(CLONE_NEWNET) != 0) {
      fail("a network namespace is needed; run as root");
    }
    row(services, kind, options);
    std::exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  if (status != 0) {
    std::exit(1);
  }
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string name = argv[i];
    const auto value = std::strtoul(argv[i + 1], nullptr, 10);
    if (name == "--services") {
      options.services.push_back(value);
    } else if (name == "--endpoints") {
      options.endpoints = value;
    } else if (name == "--changes") {
      options.changes = value;
    } else if (name == "--nft-seconds") {
      options.nft_seconds = static_cast<unsigned>(value);
    } else {
      fail("unknown option " + name);
    }
  }
  if (options.services.empty()) {
    options.services = {1000, 10000, 50000};
  }
  for (const std::size_t services : options.services) {
    for (const Kind& kind : kKinds) {
      row_apart(services, kind, options);
    }
  }
  return 0;
}
