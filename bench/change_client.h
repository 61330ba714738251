#pragma once

#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>

#include <memory>
#include <string>
#include <vector>

#include "sluice/v1/cluster.grpc.pb.h"

namespace sluice::bench {

/// The control plane's side. Requests are encoded before a call starts, as a control plane does it
/// on another machine: what is timed is the call. Thread: one.
class ChangeClient {
 public:
  explicit ChangeClient(const std::string& address);

  grpc::Status update(const v1::UpdateRequest& request, v1::UpdateResponse& response);

  /// gRPC's health check: a call of which nothing is asked.
  grpc::Status nothing();

  using Encoded = std::vector<grpc::ByteBuffer>;
  [[nodiscard]] static Encoded encode(const std::vector<v1::ReplaceSnapshotRequest>& parts);
  grpc::Status replace(const Encoded& parts, v1::ReplaceSnapshotResponse& response);

 private:
  /// Waits for the one operation that runs. @return whether it went.
  bool done();

  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<v1::Cluster::Stub> stub_;
  grpc::GenericStub raw_;
  grpc::CompletionQueue queue_;
};

}  // namespace sluice::bench
