// From the gRPC call to the first packet decided under the new rule, through everything that runs
// in sluiced: gRPC server on a Unix socket, validation, publisher, compile, views, a worker.
//
// sluice-bench-change [--services N] [--endpoints N] [--windows N] [--changes N] [--replaces N]
//                     [--firsts N]
//
// --windows N of --changes each; --replaces whole states; --firsts first snapshots, each in a
// process of its own. Exit status: 0 when every change came into effect, whatever it took.
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

#include "bench/change_client.h"
#include "bench/change_cluster.h"
#include "bench/change_floor.h"
#include "bench/section.h"
#include "bench/targets.h"
#include "bench/windows.h"
#include "control/publish/publisher.h"
#include "control/server/server.h"

namespace sluice::bench {
namespace {

using Clock = ProbeIo::Clock;

struct Options {
  std::size_t services = 10000;
  std::size_t endpoints = 10;
  std::size_t windows = 7;
  std::size_t changes = 150;
  std::size_t replaces = 7;
  std::size_t firsts = 5;
};

double ms_between(Clock::time_point from, Clock::time_point to) {
  return std::chrono::duration<double, std::milli>(to - from).count();
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
  const std::size_t endpoints = 2 * o.services * o.endpoints + o.windows * o.changes;
  options.id_limits = {static_cast<std::uint32_t>(2 * o.services + 64),
                       static_cast<std::uint32_t>(endpoints + 64)};
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
  /// A call of which nothing is asked. @return ms to its answer.
  double nothing() {
    const auto start = Clock::now();
    const auto status = client_->nothing();
    if (!status.ok()) {
      std::fprintf(stderr, "bench: health: %s\n", status.error_message().c_str());
      failed_ = true;
    }
    return ms_between(start, Clock::now());
  }
  /// Of the last change().
  [[nodiscard]] double answered() const { return answered_; }

  /// The whole cluster as it is now, until a packet reaches what is new of Service i.
  /// @param section  whose profile it is in
  double replace(std::size_t i, std::string_view section = "first snapshot") {
    parts_ = ChangeClient::encode(cluster_.snapshot());
    // A node's workers have cores of their own; here a busy one would take half of the machine.
    rig_.io().set(cluster_.probe(i), 1);
    const ProfileWindow profiled(section);
    const auto start = Clock::now();
    v1::ReplaceSnapshotResponse response;
    const auto status = client_->replace(parts_, response);
    return effect(start, status, response.outcome().changed());
  }
  /// The stream of the last replace(), to where nothing is done with it. It has a server of its own,
  /// made now: what is measured before meets neither its threads nor the memory it has used.
  /// @return ms to the answer.
  double floor() {
    if (floor_ == nullptr) {
      floor_ = std::make_unique<SnapshotFloor>(directory_.path + "/f");
    }
    const auto start = Clock::now();
    const auto status = floor_->take(parts_);
    const double ms = ms_between(start, Clock::now());
    if (!status.ok()) {
      std::fprintf(stderr, "bench: floor: %s\n", status.error_message().c_str());
      failed_ = true;
    }
    return ms;
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
  std::unique_ptr<SnapshotFloor> floor_;
  ChangeClient::Encoded parts_;
  double answered_ = 0;
  bool failed_ = false;
};

/// Changes all over the cluster, one every few milliseconds.
class ChangeWindows {
 public:
  explicit ChangeWindows(Bench& bench) : bench_(bench) {}

  void measure(std::size_t changes) {
    std::vector<double> effect;
    std::vector<double> floor;
    const StealWatch steal;
    const ProfileWindow profiled("changes");
    for (std::size_t c = 0; c < changes && !bench_.failed(); ++c) {
      constexpr std::size_t kStride = 7919;
      effect.push_back(bench_.change(next_++ * kStride % bench_.cluster().services()));
      answered_.push_back(bench_.answered());
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
      floor.push_back(bench_.nothing());
    }
    floor_p50_.push_back(percentile(floor, 0.5));
    floor_p99_.push_back(percentile(floor, 0.99));
    stolen_.push_back(steal.ms());
    p50_.push_back(percentile(effect, 0.5));
    p99_.push_back(percentile(effect, 0.99));
    worst_ = std::max(worst_, percentile(effect, 1));
  }

  void print(Results& results) const {
    std::printf("endpoint change, %zu in %zu windows: in effect p50%s, p99%s, worst %.2f ms; "
                "answered p50 %.2f p99 %.2f ms; stolen%s ms\n",
                answered_.size(), p99_.size(), listed(p50_, 2).c_str(), listed(p99_, 2).c_str(),
                worst_, median(answered_), percentile(answered_, 0.99),
                listed(stolen_, 0).c_str());
    std::printf("median window: p50 %.3f p99 %.3f ms\n", median(p50_), median(p99_));
    std::printf("floor  endpoint_change_p99_ms     %.2f (gRPC and the machine: a health check "
                "behind each change, call to answer; p50 %.2f)\n",
                median(floor_p99_), median(floor_p50_));
    results["endpoint_change_p99_ms"] = median(p99_);
  }

 private:
  Bench& bench_;
  std::size_t next_ = 0;
  std::vector<double> answered_;
  std::vector<double> p50_;
  std::vector<double> p99_;
  std::vector<double> stolen_;
  std::vector<double> floor_p50_;
  std::vector<double> floor_p99_;
  double worst_ = 0;
};

void print_snapshots(const char* what, const std::vector<double>& ms, double stolen) {
  std::printf("snapshot, %s, %zu times: median %.1f worst %.1f ms (%s); stolen %.0f ms\n", what,
              ms.size(), median(ms), percentile(ms, 1), listed(ms, 0).substr(1).c_str(), stolen);
}

/// Snapshots of one kind, and as many of their floor, ms.
struct Snapshots {
  std::vector<double> effect;
  std::vector<double> floor;
};

/// A state in which one endpoint differs, then one in which every Service does, in turn.
/// @return the latter.
Snapshots measure_replaces(Bench& bench, std::size_t replaces) {
  const std::size_t last = bench.cluster().services() - 1;
  std::vector<double> one;
  Snapshots all;
  const StealWatch steal;
  for (std::size_t r = 0; r < replaces && !bench.failed(); ++r) {
    bench.cluster().change(last);
    one.push_back(bench.replace(last, "snapshots"));
    bench.cluster().change_all();
    all.effect.push_back(bench.replace(last, "snapshots"));
  }
  const double stolen = steal.ms();  // of both: they lie in turn
  print_snapshots("one endpoint differs", one, stolen);
  print_snapshots("one of every Service differs", all.effect, stolen);
  for (std::size_t r = 0; r < replaces && !bench.failed(); ++r) {
    all.floor.push_back(bench.floor());
  }
  return all;
}

/// A daemon has one first snapshot, so each is taken in a process of its own. Before threads start.
/// @return empty: one failed.
Snapshots measure_firsts(const Options& o) {
  Snapshots firsts;
  const StealWatch steal;
  for (std::size_t i = 0; i < o.firsts; ++i) {
    int ends[2];
    if (pipe(ends) != 0) {
      return {};
    }
    const pid_t child = fork();
    double ms[2] = {};  // to the effect, and of the floor
    if (child == 0) {
      bool good = false;
      {
        Bench bench(o);
        ms[0] = bench.replace(o.services - 1);
        ms[1] = bench.floor();
        good = !bench.failed() && write(ends[1], ms, sizeof ms) == sizeof ms;
      }
      _exit(good ? 0 : 1);
    }
    close(ends[1]);
    const bool read_well = read(ends[0], ms, sizeof ms) == sizeof ms;
    close(ends[0]);
    int status = 1;
    if (child < 0 || waitpid(child, &status, 0) != child || status != 0 || !read_well) {
      return {};
    }
    firsts.effect.push_back(ms[0]);
    firsts.floor.push_back(ms[1]);
  }
  print_snapshots("the first one", firsts.effect, steal.ms());
  return firsts;
}

int run(const Options& o) {
  std::printf("%zu Services x %zu endpoints\n", o.services, o.endpoints);
  std::fflush(stdout);  // a child would write it once more
  const auto firsts = measure_firsts(o);
  if (firsts.effect.empty()) {
    std::fprintf(stderr, "bench: a first snapshot did not come into effect\n");
    return 1;
  }
  Bench bench(o);
  bench.replace(o.services - 1);
  std::printf("peak memory after the first: %ld MiB (with the client's copy)\n", peak_mib());
  Results results;
  ChangeWindows windows(bench);
  for (std::size_t w = 0; w < o.windows && !bench.failed(); ++w) {
    windows.measure(o.changes);
  }
  windows.print(results);
  if (bench.failed()) {
    return 1;
  }
  const Snapshots replaces = measure_replaces(bench, o.replaces);
  std::printf("floor  full_snapshot_ms           %.2f (gRPC and protobuf: the same stream received "
              "and parsed, call to answer)\n",
              std::max(median(firsts.floor), median(replaces.floor)));
  results["full_snapshot_ms"] = std::max(median(firsts.effect), median(replaces.effect));
  std::printf("peak memory %ld MiB\n", peak_mib());
  constexpr std::size_t kTargetSize = 10000;  // the targets are for this size
  if (o.services == kTargetSize && !bench.failed()) {
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
                                : key == "--windows"   ? &options.windows
                                : key == "--changes"   ? &options.changes
                                : key == "--replaces"  ? &options.replaces
                                : key == "--firsts"    ? &options.firsts
                                                       : nullptr;
    if (option == nullptr || value == 0) {
      std::fprintf(stderr, "bench: %s %s: not understood\n", argv[i], argv[i + 1]);
      return 2;
    }
    *option = value;
  }
  return sluice::bench::run(options);
}
