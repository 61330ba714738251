// sluice-bench-kernel: what a kernel mode costs, in a network namespace of its own.
//
// One row per cluster: a full sync into an empty kernel and, as after a restart, into one that has
// it all, one endpoint added by a later table, memory. Wall time with the CPU time of this process
// and of programs it ran beside it, in ms; the kernel works inside our calls. A step whose programs
// are not done in --own-seconds is told so, and ends the row. Below it the peers: `nft -f` of the
// same rules, kube-proxy's layouts by nft and both variants of iptables-restore, each within
// --peer-seconds and 4 GiB.
#include <sched.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "bench/kernel_cluster.h"
#include "bench/kernel_peers.h"
#include "bench/kernel_traffic.h"
#include "bench/section.h"
#include "bench/targets.h"
#include "bench/windows.h"
#include "kni/iptables/iptables_sink.h"
#include "kni/nftables/nftables_sink.h"
#include "kni/nftables/ruleset_text.h"

namespace {

using namespace sluice;  // NOLINT(google-build-using-namespace): a main file
using namespace sluice::bench;  // NOLINT(google-build-using-namespace)
using Clock = std::chrono::steady_clock;

struct Time {
  double wall = 0;
  double cpu = 0;
  double kernel = 0;  ///< of cpu
};

double ms_of(const timeval& v) {
  return static_cast<double>(v.tv_sec) * 1e3 + static_cast<double>(v.tv_usec) / 1e3;
}

/// Inside the kernel, of this process and the children it has waited for.
double kernel_ms() {
  rusage self{};
  getrusage(RUSAGE_SELF, &self);
  rusage children{};
  getrusage(RUSAGE_CHILDREN, &children);
  return ms_of(self.ru_stime) + ms_of(children.ru_stime);
}

/// Of this process and the children it has waited for.
double cpu_ms() {
  timespec t{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  rusage children{};
  getrusage(RUSAGE_CHILDREN, &children);
  return static_cast<double>(t.tv_sec) * 1e3 + static_cast<double>(t.tv_nsec) / 1e6 +
         ms_of(children.ru_utime) + ms_of(children.ru_stime);
}

template <class Body>
Time measure(Body body) {
  const auto wall = Clock::now();
  const double cpu = cpu_ms();
  const double kernel = kernel_ms();
  body();
  return {std::chrono::duration<double, std::milli>(Clock::now() - wall).count(), cpu_ms() - cpu,
          kernel_ms() - kernel};
}

constexpr const char* kNftables = "nftables";
constexpr const char* kIptablesLegacy = "iptables-legacy";
constexpr const char* kIptablesNft = "iptables-nft";

/// When a step of our own is given up.
class Limit {
 public:
  explicit Limit(unsigned seconds) : seconds_(seconds) {}
  void begin_step() { until_ = Clock::now() + std::chrono::seconds(seconds_); }
  [[nodiscard]] bool passed() const { return Clock::now() >= until_; }
  [[nodiscard]] unsigned seconds() const { return seconds_; }

 private:
  unsigned seconds_;
  Clock::time_point until_ = Clock::time_point::max();
};

/// @param limit  borrowed; programs are killed when it has passed.
std::unique_ptr<core::TableSink> make_iptables_sink(const std::string& adapter,
                                                    const Limit& limit) {
  kni::IptablesSink::Options options;
  options.variant = adapter == kIptablesNft ? kni::ipt::Variant::kNft : kni::ipt::Variant::kLegacy;
  options.ending = [&limit] { return limit.passed(); };
  auto sink = kni::IptablesSink::open(kni::ipt::make_runner(nullptr, options.ending), options);
  if (!sink) {
    end_program(sink.error().message);
  }
  return std::move(*sink);
}

std::unique_ptr<core::TableSink> make_sink(const std::string& adapter, const Limit& limit) {
  if (adapter != kNftables) {
    return make_iptables_sink(adapter, limit);
  }
  auto kernel = kni::nft::open_kernel();
  if (!kernel) {
    end_program(kernel.error().message);
  }
  return std::make_unique<kni::NftablesSink>(std::move(*kernel), kni::NftablesSink::Options());
}

/// One step of ours. Empty: not in time, which is printed.
template <class Body>
std::optional<Time> step(const char* name, Limit& limit, Body body) {
  limit.begin_step();
  std::string failure;
  const Time time = measure([&] {
    if (const auto done = body(); !done) {
      failure = done.error().message;
    }
  });
  if (failure.empty()) {
    return time;
  }
  if (!limit.passed()) {
    end_program(failure);
  }
  std::printf("  %s not in %u s (cpu %.1f; %s)", name, limit.seconds(), time.cpu, failure.c_str());
  return std::nullopt;
}

long peak_mib() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  rusage children{};
  getrusage(RUSAGE_CHILDREN, &children);
  return std::max(usage.ru_maxrss, children.ru_maxrss) / 1024;
}

struct Options {
  std::vector<std::size_t> services = {1000, 10000, 50000};
  std::size_t endpoints = 10;
  std::size_t changes = 100;
  std::size_t flows = 0;       ///< of each rate; 0: no traffic
  unsigned own_seconds = 120;   ///< that each step of ours may take
  unsigned peer_seconds = 120;  ///< 0: no peers
  std::optional<std::size_t> kind;  ///< of kClusterKinds; empty: each
  std::string adapter = kNftables;
};

/// The median in CPU time, or nothing: not in time.
std::optional<double> print_changes(core::TableSink& sink, KernelCluster& cluster, Limit& limit,
                                    std::size_t services, std::size_t count) {
  std::vector<double> wall;
  std::vector<double> cpu;
  for (std::size_t i = 0; i < count; ++i) {
    // A Service without affinity: its neighbour in the list of every tenth.
    cluster.change((i / 2 * 10 + 1) % services, i % 2 == 0);
    const auto time = step("change", limit, [&] { return sink.apply(cluster.table()); });
    if (!time) {
      return std::nullopt;
    }
    wall.push_back(time->wall);
    cpu.push_back(time->cpu);
  }
  std::printf("  change p50 %6.2f p99 %6.2f (cpu %5.2f)", median(wall), percentile(wall, 0.99),
              median(cpu));
  return median(cpu);
}

void print_run(const char* what, const PeerRun& run) {
  if (run.wall < 0) {
    std::printf("    %-34s %s (cpu %.0f ms, %ld MiB)\n", what, run.failure.c_str(), run.cpu,
                run.mib);
  } else {
    std::printf("    %-34s %8.1f ms (cpu %.1f), %ld MiB\n", what, run.wall, run.cpu, run.mib);
  }
}

void print_rate(const char* what, const PacketRate& rate) {
  std::printf("    %-34s %7.0f new flows/s, %7.0f packets/s established\n", what, rate.new_flows,
              rate.established);
  std::fflush(stdout);
}

/// One way to write the same rules: a file for a program, a file for one change, how to remove it.
struct Peer {
  const char* name;
  std::string command;
  std::string all;
  std::string change_command;
  std::string change;  ///< empty: none
  std::string remove;
};

std::vector<Peer> peers_of(const core::ForwardingTable& table) {
  kni::nft::Rendered rendered = kni::nft::render(table);
  const std::string ours = kni::nft::ruleset_text(rendered.rulesets.v4) +
                           kni::nft::ruleset_text(rendered.rulesets.v6);
  const std::string legacy = "iptables-legacy-restore --noflush";
  const std::string nft = "iptables-nft-restore --noflush";
  return {{"nft -f, our rules", "nft -f -", ours, "", "", "nft flush ruleset"},
          {"nft -f, kube-proxy's layout", "nft -f -", nft_chains(table), "nft -f -",
           nft_one_chain(table, 1), "nft flush ruleset"},
          {"iptables-legacy-restore", legacy, iptables_chains(table), legacy,
           iptables_one_chain(table, 1), "iptables-legacy -t nat -F && iptables-legacy -t nat -X"},
          {"iptables-nft-restore", nft, iptables_chains(table), nft, iptables_one_chain(table, 1),
           "nft flush ruleset"}};
}

void run_peers(const core::ForwardingTable& table, std::size_t services, const Options& options,
               KernelTraffic* traffic) {
  for (const Peer& peer : peers_of(table)) {
    const PeerRun all = run_peer(peer.command, peer.all, options.peer_seconds);
    print_run(peer.name, all);
    if (all.wall >= 0 && !peer.change.empty()) {
      print_run("  one Service's chain anew",
                run_peer(peer.change_command, peer.change, options.peer_seconds));
    }
    if (all.wall >= 0 && traffic != nullptr && !peer.change.empty()) {
      print_rate("  traffic", traffic->run(services, options.flows));
    }
    (void)std::system((peer.remove + " 2> /dev/null").c_str());
    std::fflush(stdout);
  }
}

/// What the targets are about, in ms of CPU time.
struct OwnFigures {
  double full = 0;
  double change = 0;
};

std::optional<Time> print_full(const char* name, core::TableSink& sink,
                               const KernelCluster& cluster, Limit& limit) {
  const auto time = step(name, limit, [&] { return sink.apply(cluster.table()); });
  if (time) {
    std::printf("  %s %8.1f (cpu %7.1f, kernel %7.1f)", name, time->wall, time->cpu,
                time->kernel);
  }
  return time;
}

/// The line of our own adapter, up to the first step that is not done in time.
std::optional<OwnFigures> print_own(KernelCluster& cluster, std::size_t services,
                                    const Options& options, KernelTraffic* traffic) {
  Limit limit(options.own_seconds);
  auto sink = make_sink(options.adapter, limit);
  std::optional<ProfileWindow> profiled(std::in_place, "full");
  const auto full = print_full("full", *sink, cluster, limit);
  profiled.reset();
  if (!full) {
    return std::nullopt;
  }
  if (traffic != nullptr) {
    std::printf("\n");
    print_rate("traffic through ours", traffic->run(services, options.flows));
  }
  limit.begin_step();  // the next one looks for its programs
  sink.reset();        // it would listen to what the next one writes, as no ended process does
  const auto again = make_sink(options.adapter, limit);
  if (!print_full("again", *again, cluster, limit)) {
    return std::nullopt;
  }
  const auto change = print_changes(*again, cluster, limit, services, options.changes);
  if (!change) {
    return std::nullopt;
  }
  const auto cleaned = step("cleanup", limit, [&] { return again->cleanup(); });
  if (!cleaned) {
    return std::nullopt;
  }
  std::printf("  cleanup %8.1f (cpu %7.1f)", cleaned->wall, cleaned->cpu);
  return OwnFigures{full->cpu, *change};
}

void row(std::size_t services, const ClusterKind& kind, const Options& options) {
  const bool plain = &kind == &kClusterKinds[0];
  KernelCluster cluster(services, options.endpoints, kind);
  std::optional<KernelTraffic> traffic;
  if (plain && options.flows != 0) {
    traffic.emplace();
    print_rate("no rules, straight to endpoints", traffic->run_direct(services, options.flows));
  }
  std::printf("%s %7zu x %-3zu %-15s", options.adapter.c_str(), services, options.endpoints,
              kind.name);
  std::fflush(stdout);
  const auto own = print_own(cluster, services, options, traffic ? &*traffic : nullptr);
  std::printf("  peak %ld MiB\n", peak_mib());
  if (!own && traffic) {
    return;  // what is half there would be in the packets' way, and the links are in this namespace
  }
  if (!own && unshare(CLONE_NEWNET) != 0) {
    end_program("no other network namespace for the peers");
  }
  if (options.peer_seconds != 0) {
    run_peers(*cluster.table(), services, options, traffic ? &*traffic : nullptr);
  }
  if (own && services == 10000 && options.endpoints == 10 && plain &&
      options.adapter == kNftables) {
    print_targets({{"nftables_full_cpu_ms", own->full}, {"nftables_change_cpu_ms", own->change}});
  }
  std::fflush(stdout);
}

/// A row in a process and a namespace of its own, so that memory is its own, too.
void row_apart(std::size_t services, const ClusterKind& kind, const Options& options) {
  std::fflush(stdout);
  const pid_t child = fork();
  if (child == 0) {
    if (unshare(CLONE_NEWNET) != 0) {
      end_program("a network namespace is needed; run as root");
    }
    // The old iptables' lock is the machine's, not the namespace's.
    setenv("XTABLES_LOCKFILE", "/tmp/sluice-bench-kernel.lock", 1);
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
  CLI::App app("What a kernel mode costs beside its peers");
  app.add_option("--services", options.services, "sizes of the cluster")->capture_default_str();
  app.add_option("--endpoints", options.endpoints, "of each Service");
  app.add_option("--kind", options.kind, "0 cluster IPs, 1 with VIPs, 2 with affinity; else each")
      ->check(CLI::Range(std::size_t{0}, std::size(kClusterKinds) - 1));
  app.add_option("--changes", options.changes, "of one endpoint");
  app.add_option("--own-seconds", options.own_seconds, "that each step of ours may take")
      ->check(CLI::PositiveNumber);
  app.add_option("--peer-seconds", options.peer_seconds, "that each peer may take; 0: no peers");
  app.add_option("--flows", options.flows, "so many packets of as many flows, twice; 0: none");
  app.add_option("--adapter", options.adapter)
      ->check(CLI::IsMember({kNftables, kIptablesLegacy, kIptablesNft}));
  CLI11_PARSE(app, argc, argv);
  for (const std::size_t services : options.services) {
    for (std::size_t kind = 0; kind < std::size(kClusterKinds); ++kind) {
      if (!options.kind || *options.kind == kind) {
        row_apart(services, kClusterKinds[kind], options);
      }
    }
  }
  return 0;
}
