// sluice-bench-push: a control plane's side for bench/run. It pushes to a sluiced from a process of
// its own. Commands on standard input, one a line; each is answered by one line of JSON:
//
//   load               the whole cluster, once
//   change every_ms    an endpoint changes, again and again until stop
//   snapshot every_ms  the whole cluster with another first endpoint of every Service, likewise
//   stop               of the last change or snapshot: {"failed": N, "at": [T, ...]}, when each
//                      push began, in seconds of the monotonic clock
//
// Snapshots are encoded before the first is sent: a control plane does that elsewhere.

#include <poll.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <iostream>
#include <sstream>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "bench/change_client.h"
#include "bench/change_cluster.h"

namespace sluice::bench {
namespace {

using Clock = std::chrono::steady_clock;

/// Thread: main.
class Pusher {
 public:
  Pusher(const std::string& server, std::size_t services, std::size_t endpoints)
      : client_(server), cluster_(services, endpoints) {
    for (auto& encoded : snapshots_) {
      encoded = ChangeClient::encode(cluster_.snapshot());
      cluster_.change_all();
    }
  }

  /// @return exit status.
  int run() {
    for (std::string line; wait_until_due() && std::getline(std::cin, line);) {
      std::istringstream words(line);
      std::string verb;
      unsigned every_ms = 0;
      words >> verb >> every_ms;
      if (verb == "load" || verb == "stop") {
        every_ = {};
        if (verb == "load") {
          at_.clear();
          failed_ = 0;
          push_snapshot();
        }
        answer();
      } else if ((verb == "change" || verb == "snapshot") && every_ms > 0) {
        start(verb == "change", every_ms);
        answer();
      } else {
        std::fprintf(stderr, "push: not understood: %s\n", line.c_str());
        return 2;
      }
    }
    return 0;
  }

 private:
  void start(bool changes, unsigned every_ms) {
    changes_ = changes;
    every_ = std::chrono::milliseconds(every_ms);
    due_ = Clock::now();
    at_.clear();
    failed_ = 0;
  }

  void answer() const {
    std::printf("{\"failed\": %zu, \"at\": [", failed_);
    for (std::size_t i = 0; i < at_.size(); ++i) {
      std::printf("%s%.4f", i == 0 ? "" : ", ", at_[i]);
    }
    std::printf("]}\n");
    std::fflush(stdout);
  }

  /// Pushes whenever it is time until there is a command.
  bool wait_until_due() {
    pollfd input{0, POLLIN, 0};
    while (std::cin.rdbuf()->in_avail() <= 0) {
      const auto left =
          std::chrono::duration_cast<std::chrono::milliseconds>(due_ - Clock::now()).count();
      const int patience = every_.count() == 0 ? -1 : static_cast<int>(std::max<long>(0, left));
      if (::poll(&input, 1, patience) != 0) {
        return true;
      }
      if (Clock::now() >= due_) {
        changes_ ? push_change() : push_snapshot();
        // Who is late does not catch up: what was asked for is one push in so much time at most.
        due_ = std::max(due_ + every_, Clock::now());
      }
    }
    return true;
  }

  void push_change() {
    note();
    constexpr std::size_t kStride = 7919;
    const std::size_t i = next_++ * kStride % cluster_.services();
    cluster_.change(i);
    v1::UpdateResponse response;
    count(client_.update(cluster_.update_of(i), response));
  }

  void note() {
    at_.push_back(std::chrono::duration<double>(Clock::now().time_since_epoch()).count());
  }

  void push_snapshot() {
    note();
    v1::ReplaceSnapshotResponse response;
    count(client_.replace(snapshots_[next_++ % snapshots_.size()], response));
  }

  void count(const grpc::Status& status) {
    if (!status.ok()) {
      ++failed_;
      std::fprintf(stderr, "push: %s\n", status.error_message().c_str());
    }
  }

  ChangeClient client_;
  ChangeCluster cluster_;
  std::array<ChangeClient::Encoded, 2> snapshots_;
  bool changes_ = false;
  std::chrono::milliseconds every_{};
  Clock::time_point due_{};
  std::size_t next_ = 0;
  std::vector<double> at_;
  std::size_t failed_ = 0;
};

}  // namespace
}  // namespace sluice::bench

int main(int argc, char** argv) {
  std::string server;
  std::size_t services = 1000;
  std::size_t endpoints = 10;
  CLI::App app("Pushes changes and snapshots to a sluiced");
  app.add_option("--server", server, "as sluicectl's")->required();
  app.add_option("--services", services)->check(CLI::PositiveNumber);
  app.add_option("--endpoints", endpoints, "of each Service")->check(CLI::PositiveNumber);
  CLI11_PARSE(app, argc, argv);
  return sluice::bench::Pusher(server, services, endpoints).run();
}
