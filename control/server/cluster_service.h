#pragma once

#include <atomic>
#include <cstddef>

#include "control/publish/publisher.h"
#include "control/server/stream_guard.h"
#include "sluice/v1/cluster.grpc.pb.h"

namespace sluice::server {

/// sluice.v1.Cluster: takes states and changes, gives the state back. Everything of a request is
/// decoded and validated before the publisher hears of it. Thread: gRPC's.
class ClusterService final : public v1::Cluster::Service {
 public:
  struct Options {
    std::size_t max_snapshot_bytes;
  };
  /// @param stopping  set: calls that wait give up.
  ClusterService(const Options& options, publish::Publisher& publisher, StreamGuard& guard,
                 const std::atomic<bool>& stopping)
      : options_(options), publisher_(publisher), guard_(guard), stopping_(stopping) {}

  grpc::Status ReplaceSnapshot(grpc::ServerContext* context,
                               grpc::ServerReader<v1::ReplaceSnapshotRequest>* reader,
                               v1::ReplaceSnapshotResponse* response) override;
  grpc::Status Update(grpc::ServerContext* context, const v1::UpdateRequest* request,
                      v1::UpdateResponse* response) override;
  grpc::Status GetSnapshot(grpc::ServerContext* context, const v1::GetSnapshotRequest* request,
                           grpc::ServerWriter<v1::GetSnapshotResponse>* writer) override;

 private:
  struct Incoming;
  grpc::Status read_snapshot(grpc::ServerContext& context,
                             grpc::ServerReader<v1::ReplaceSnapshotRequest>& reader,
                             Incoming& incoming);
  /// One message of a snapshot; not OK: the call ends.
  [[nodiscard]] grpc::Status take_part(grpc::ServerContext& context,
                                       const v1::ReplaceSnapshotRequest& part, Incoming& incoming);
  [[nodiscard]] grpc::Status take_objects(grpc::ServerContext& context,
                                          const v1::ReplaceSnapshotRequest& part,
                                          Incoming& incoming);
  void keep_former_of_skipped(Incoming& incoming) const;
  grpc::Status finish(grpc::ServerContext& context,
                      const tl::expected<publish::Accepted, publish::Refused>& result,
                      std::uint32_t wait_ms, v1::Outcome& outcome);

  Options options_;
  publish::Publisher& publisher_;
  StreamGuard& guard_;
  const std::atomic<bool>& stopping_;
};

}  // namespace sluice::server
