#pragma once

#include <grpcpp/grpcpp.h>

#include <memory>
#include <string>

#include "bench/change_client.h"

namespace sluice::bench {

/// The least that takes a snapshot: a server of its own that receives the stream by gRPC, has
/// protobuf parse it, and does nothing with it. Thread: one.
class SnapshotFloor {
 public:
  /// @param socket  path of the Unix socket to be made. Ends the process where that fails.
  explicit SnapshotFloor(const std::string& socket);
  ~SnapshotFloor();
  SnapshotFloor(const SnapshotFloor&) = delete;
  SnapshotFloor& operator=(const SnapshotFloor&) = delete;

  /// A call with these parts, until its answer.
  grpc::Status take(const ChangeClient::Encoded& parts);

 private:
  class Service;
  std::unique_ptr<Service> service_;
  std::unique_ptr<grpc::Server> server_;
  std::unique_ptr<ChangeClient> client_;
};

}  // namespace sluice::bench
