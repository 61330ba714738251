#pragma once

#include <grpcpp/grpcpp.h>

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "sluice/v1/cluster.grpc.pb.h"
#include "sluice/v1/node.grpc.pb.h"

namespace sluice::cli {

/// Exit codes; documented in README.md, part of the interface.
enum class Exit : int {
  kOk = 0,
  kRefused = 1,      ///< bad input, or the daemon refused it
  kUsage = 2,        ///< wrong command line
  kUnreachable = 3,  ///< no daemon there, or no permission
  kTimeout = 4,      ///< no answer in time
  kNotInEffect = 5,  ///< accepted, but not applied in time
  kBroken = 6,       ///< connection lost in mid-answer, internal error, older daemon
};

struct Failure {
  Exit exit = Exit::kBroken;
  std::string code;     ///< gRPC's name of the status, or "INPUT", "USAGE"
  std::string message;  ///< one line
  v1::Refusal refusal;  ///< reason UNSPECIFIED when the daemon gave none
};

/// One daemon. Thread: one.
class Client {
 public:
  /// @param server "unix:/path", "/path" or "host:port".
  Client(const std::string& server, std::chrono::milliseconds timeout);

  /// Looks whether somebody listens, to say precisely why not: gRPC only says "unavailable".
  [[nodiscard]] std::optional<Failure> unreachable() const;
  [[nodiscard]] v1::Cluster::Stub& cluster() { return *cluster_; }
  [[nodiscard]] v1::Node::Stub& node() { return *node_; }
  [[nodiscard]] std::chrono::milliseconds timeout() const { return timeout_; }
  [[nodiscard]] const std::string& server() const { return server_; }

 private:
  std::string server_;
  std::chrono::milliseconds timeout_;
  std::unique_ptr<v1::Cluster::Stub> cluster_;
  std::unique_ptr<v1::Node::Stub> node_;
};

/// One call that is cancelled when nothing moves for the time-out: an answer may take as long as it
/// likes as long as it comes (F96).
class Call {
 public:
  explicit Call(const Client& client, std::chrono::milliseconds extra = {});
  ~Call();
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  [[nodiscard]] grpc::ClientContext& context() { return context_; }
  /// Something came or went.
  void progress();
  /// What a status means. nullopt: success. @param begun part of the answer had come.
  [[nodiscard]] std::optional<Failure> failure(const grpc::Status& status, bool begun = false);

 private:
  void watch();

  const Client& client_;
  std::chrono::milliseconds limit_;
  grpc::ClientContext context_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::uint64_t moves_ = 0;
  bool done_ = false;
  bool timed_out_ = false;
  std::thread watchdog_;
};

}  // namespace sluice::cli
