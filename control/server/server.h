#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>

#include "control/publish/publisher.h"
#include "dataplane/core/sink.h"
#include "dataplane/pipeline/worker_view.h"

namespace sluice::server {

/// The gRPC endpoint of one node: services Cluster and Node, server reflection, health.
/// Thread: start() and stop() from one thread; the rest from any.
class Server {
 public:
  struct Options {
    /// "unix:/path" or a loopback TCP address "127.0.0.1:port", "[::1]:port" (port 0: any free).
    std::string listen = "unix:/run/sluice/sluiced.sock";
    /// Where the last good snapshot is kept; "": nowhere.
    std::string state_file;
    /// After a write of the snapshot the next one waits this long.
    std::chrono::milliseconds state_file_period{10000};
    /// Largest single message; larger ones are refused naming size and limit (F59).
    std::size_t max_message_bytes = 64u << 20;
    /// Largest whole snapshot, as the sum of its messages.
    std::size_t max_snapshot_bytes = std::size_t{1} << 30;
    /// A client that takes nothing for this long loses its stream (F93).
    std::chrono::milliseconds stalled_stream_limit{10000};
    /// Connection dumps at a time.
    unsigned max_dumps = 4;
    std::string version;  ///< of the program, for status
    /// Takes one line about what an operator should know; may be empty. Thread: any.
    std::function<void(const std::string&)> warn;
  };

  /// @param publisher  borrowed; started by the caller, outlives the server.
  /// @param view  borrowed, may be null (a kernel mode has no workers).
  Server(Options options, publish::Publisher& publisher, pipeline::WorkerView* view);
  ~Server();  ///< stops
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  /// Hands the kept snapshot to the publisher, takes the lock file, listens. A bad address, a path
  /// that another daemon serves or a busy port is an error of one line, and nothing is left behind.
  core::Result<void> start();
  /// Ends open calls and waits at most about half a second for them.
  void stop();
  /// Where it listens, with the real port.
  [[nodiscard]] std::string address() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace sluice::server
