// From the gRPC call to the first packet decided under the new rule, through everything that runs
// in sluiced: gRPC server on a Unix socket, validation, publisher, compile, views, a worker.
//
// sluice-bench-change [--services N] [--endpoints N] [--changes N] [--replaces N]
//
// Exit status: 0 when every change came into effect, whatever it took.
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>

#include "bench/change_client.h"
#include "bench/change_cluster.h"
#include "bench/section.h"
#include "bench/targets.h"
#include "control/publish/publisher.h"
#include "control/server/server.h"

namespace sluice::bench {
namespace {

using Clock = ProbeIo::Clock;

struct Options {
  std::size_t services = 10000;
  std::size_t endpoints = 10;
  std::size_t changes = 500;
  std::size_t replaces = 5;
};

double ms_between(Clock::time_point from, Clock::time_point to) {
  return std::chrono::duration<double, std::milli>(to - from).count();
}

double percentile(std::vector<double> values, double p) {
  std::sort(values.begin(), values.end());
  return values.empty() ? 0 : values[static_cast<std::size_t>(p * double(values.size() - 1))];
}

long peak_mib() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss / 1024;
}

/// A directory that goes with the object.
struct TemporaryDirectory {
  std::string path = (std::filesystem::temp_directory_path() / "sluice-change-XXXXXX").string();
  TemporaryDirectory() {
    if (mkdtemp(path.data()) == nullptr) {
      std::perror("bench: mkdtemp");
      std::exit(1);
    }
  }
  ~TemporaryDirectory() { std::filesystem::remove_all(path); }
};

publish::Publisher::Options publisher_options(const Options& o) {
  publish::Publisher::Options options;
  options.node.node_name = "node0";
  options.node.snat_first_port = 40960;
  options.id_limits = {static_cast<std::uint32_t>(2 * o.services + 64),
                       static_cast<std::uint32_t>(2 * o.services * o.endpoints + o.changes + 64)};
  return options;
}

server::Server::Options server_options(const TemporaryDirectory& directory) {
  server::Server::Options options;
  options.listen = "unix:" + directory.path + "/s";
  options.state_file = directory.path + "/snapshot";  // as sluiced has by default
  return options;
}

/// The daemon's parts and a client.
class Bench {
 public:
  explicit Bench(const Options& o)
      : cluster_(o.services, o.endpoints),
        rig_(publisher_options(o).id_limits.service_ports,
             publisher_options(o).id_limits.endpoints),
        publisher_(publisher_options(o), {{.sink = &rig_}}, &rig_),
        server_(server_options(directory_), publisher_, &rig_) {
    publisher_.start();
    if (const auto started = server_.start(); !started) {
      std::fprintf(stderr, "bench: %s\n", started.error().message.c_str());
      std::exit(1);
    }
    client_ = std::make_unique<ChangeClient>(server_.address());
  }
  ~Bench() {
    server_.stop();
    publisher_.stop();
  }

  ChangeCluster& cluster() { return cluster_; }
  [[nodiscard]] bool failed() const { return failed_; }

  /// One endpoint of Service i becomes another. @return ms to the first packet.
  double change(std::size_t i) {
    cluster_.change(i);
    const auto request = cluster_.update_of(i);
    rig_.io().set(cluster_.probe(i));
    const auto start = Clock::now();
    v1::UpdateResponse response;
    const auto status = client_->update(request, response);
    answered_ = ms_between(start, Clock::now());
    return effect(start, status, response.outcome().changed());
  }
  /// Of the last change().
  [[nodiscard]] double answered() const { return answered_; }

  /// The whole cluster as it is now, until a packet reaches what is new of Service i.
  double replace(std::size_t i) {
    const auto parts = ChangeClient::encode(cluster_.snapshot());
    // A node's workers have cores of their own; here a busy one would take half of the machine.
    rig_.io().set(cluster_.probe(i), 1);
    const auto start = Clock::now();
    v1::ReplaceSnapshotResponse response;
    const auto status = client_->replace(parts, response);
    return effect(start, status, response.outcome().changed());
  }

 private:
  double effect(Clock::time_point start, const grpc::Status& status, bool changed) {
    if (!status.ok() || !changed) {
      std::fprintf(stderr, "bench: refused: %s\n", status.error_message().c_str());
      failed_ = true;
    }
    const auto give_up = Clock::now() + std::chrono::seconds(status.ok() ? 60 : 0);
    auto hit = rig_.io().take();
    while (!hit && Clock::now() < give_up) {
      std::this_thread::sleep_for(std::chrono::microseconds(50));
      hit = rig_.io().take();
    }
    if (!hit) {
      rig_.io().end();
      std::fprintf(stderr, "bench: a change did not come into effect\n");
      failed_ = true;
    }
    return ms_between(start, hit.value_or(Clock::now()));
  }

  TemporaryDirectory directory_;
  ChangeCluster cluster_;
  ChangeRig rig_;
  publish::Publisher publisher_;
  server::Server server_;
  std::unique_ptr<ChangeClient> client_;
  double answered_ = 0;
  bool failed_ = false;
};

/// Changes all over the cluster, one every few milliseconds.
void measure_changes(Bench& bench, std::size_t changes, Results& results) {
  constexpr std::size_t kStride = 7919;
  std::vector<double> effect;
  std::vector<double> answer;
  const ProfileWindow profiled("changes");
  for (std::size_t c = 0; c < changes && !bench.failed(); ++c) {
    effect.push_back(bench.change(c * kStride % bench.cluster().services()));
    answer.push_back(bench.answered());
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  std::printf(
      "endpoint change, %zu times: in effect p50 %.3f p90 %.3f p99 %.3f max %.3f ms; "
      "answered p50 %.3f p99 %.3f ms\n",
      effect.size(), percentile(effect, 0.5), percentile(effect, 0.9), percentile(effect, 0.99),
      percentile(effect, 1), percentile(answer, 0.5), percentile(answer, 0.99));
  results["endpoint_change_p99_ms"] = percentile(effect, 0.99);
}

void measure_replaces(Bench& bench, std::size_t replaces, Results& results) {
  const std::size_t last = bench.cluster().services() - 1;
  std::vector<double> one;
  std::vector<double> all;
  const ProfileWindow profiled("snapshots");
  for (std::size_t r = 0; r < replaces && !bench.failed(); ++r) {
    bench.cluster().change(last);
    one.push_back(bench.replace(last));
    bench.cluster().change_all();
    all.push_back(bench.replace(last));
  }
  std::printf(
      "full snapshot, %zu times, median: one endpoint differs %.1f ms; one of every "
      "Service differs %.1f ms\n",
      one.size(), percentile(one, 0.5), percentile(all, 0.5));
  results["full_snapshot_ms"] = percentile(all, 0.5);
}

int run(const Options& o) {
  Bench bench(o);
  std::printf("%zu Services x %zu endpoints\n", o.services, o.endpoints);
  const double first = bench.replace(o.services - 1);
  std::printf("first snapshot: %.1f ms, peak memory %ld MiB (with the client's copy)\n", first,
              peak_mib());
  Results results;
  measure_changes(bench, o.changes, results);
  measure_replaces(bench, o.replaces, results);
  std::printf("peak memory %ld MiB\n", peak_mib());
  constexpr std::size_t kTargetSize = 10000;  // the targets are for this size
  if (o.services == kTargetSize && !bench.failed()) {
    results["full_snapshot_ms"] = std::max(first, results["full_snapshot_ms"]);
    print_targets(results);
  }
  return bench.failed() ? 1 : 0;
}

}  // namespace
}  // namespace sluice::bench

int main(int argc, char** argv) {
  sluice::bench::Options options;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string key = argv[i];
    const std::size_t value = std::strtoull(argv[i + 1], nullptr, 10);
    std::size_t* const option = key == "--services"    ? &options.services
                                : key == "--endpoints" ? &options.endpoints
                                : key == "--changes"   ? &options.changes
                                : key == "--replaces"  ? &options.replaces
                                                       : nullptr;
    if (option == nullptr || value == 0) {
      std::fprintf(stderr, "bench: %s %s: not understood\n", argv[i], argv[i + 1]);
      return 2;
    }
    *option = value;
  }
  return sluice::bench::run(options);
}
