#pragma once

#include <atomic>
#include <chrono>
#include <optional>
#include <string>

#include "control/compile/explain.h"
#include "control/publish/publisher.h"
#include "control/server/stream_guard.h"
#include "dataplane/pipeline/worker_view.h"
#include "sluice/v1/node.grpc.pb.h"

namespace sluice::server {

/// sluice.v1.Node: shows what the node does. Reads the newest table, the publisher's status and
/// the workers' view; changes nothing. Thread: gRPC's.
class NodeService final : public v1::Node::Service {
 public:
  struct Options {
    std::string version;
    unsigned max_dumps;
  };
  /// @param view  null: no workers.
  NodeService(Options options, publish::Publisher& publisher, pipeline::WorkerView* view,
              StreamGuard& guard)
      : options_(std::move(options)), publisher_(publisher), view_(view), guard_(guard) {}

  grpc::Status GetStatus(grpc::ServerContext* context, const v1::GetStatusRequest* request,
                         v1::GetStatusResponse* response) override;
  grpc::Status ListServices(grpc::ServerContext* context, const v1::ListServicesRequest* request,
                            grpc::ServerWriter<v1::ListServicesResponse>* writer) override;
  grpc::Status ListBackends(grpc::ServerContext* context, const v1::ListBackendsRequest* request,
                            grpc::ServerWriter<v1::ListBackendsResponse>* writer) override;
  grpc::Status ListConnections(grpc::ServerContext* context,
                               const v1::ListConnectionsRequest* request,
                               grpc::ServerWriter<v1::ListConnectionsResponse>* writer) override;
  grpc::Status GetCounters(grpc::ServerContext* context, const v1::GetCountersRequest* request,
                           v1::GetCountersResponse* response) override;
  grpc::Status Explain(grpc::ServerContext* context, const v1::ExplainRequest* request,
                       v1::ExplainResponse* response) override;

 private:
  [[nodiscard]] pipeline::EndpointUse use_of(const core::Endpoint& endpoint) const;
  void fill_service(const core::ServicePort& block, v1::ServiceRow& row) const;
  [[nodiscard]] core::Result<std::optional<pipeline::ConnectionRow>> find_connection(
      const core::FlowTuple& tuple) const;
  grpc::Status explain_on_workers(const core::FlowTuple& tuple, const core::ForwardingTable& table,
                                  const compile::Explanation& explanation,
                                  v1::ExplainResponse& response);
  void fill_workers(v1::GetStatusResponse& response) const;

  const Options options_;
  publish::Publisher& publisher_;
  pipeline::WorkerView* const view_;
  StreamGuard& guard_;
  std::atomic<unsigned> dumps_{0};
  const std::chrono::steady_clock::time_point started_ = std::chrono::steady_clock::now();
};

}  // namespace sluice::server
