#include "bench/change_floor.h"

#include <google/protobuf/arena.h>

#include <cstdio>
#include <cstdlib>
#include <vector>

#include "sluice/v1/cluster.grpc.pb.h"

namespace sluice::bench {

class SnapshotFloor::Service final : public v1::Cluster::Service {
  grpc::Status ReplaceSnapshot(grpc::ServerContext*,
                               grpc::ServerReader<v1::ReplaceSnapshotRequest>* reader,
                               v1::ReplaceSnapshotResponse*) override {
    constexpr std::size_t kBlock = std::size_t{1} << 20;  // a page fits, as in sluiced
    std::vector<char> block(kBlock);
    google::protobuf::ArenaOptions options;
    options.initial_block = block.data();
    options.initial_block_size = block.size();
    google::protobuf::Arena arena(options);
    const auto fresh = [&] {
      arena.Reset();
      return google::protobuf::Arena::CreateMessage<v1::ReplaceSnapshotRequest>(&arena);
    };
    while (reader->Read(fresh())) {
    }
    return grpc::Status::OK;
  }
};

SnapshotFloor::SnapshotFloor(const std::string& socket) : service_(std::make_unique<Service>()) {
  const std::string address = "unix:" + socket;
  grpc::ServerBuilder builder;
  builder.AddListeningPort(address, grpc::InsecureServerCredentials());
  builder.SetMaxReceiveMessageSize(-1);
  builder.SetSyncServerOption(grpc::ServerBuilder::NUM_CQS, 1);  // as sluiced
  builder.RegisterService(service_.get());
  server_ = builder.BuildAndStart();
  if (server_ == nullptr) {
    std::fprintf(stderr, "bench: cannot listen on %s\n", address.c_str());
    std::exit(1);
  }
  client_ = std::make_unique<ChangeClient>(address);
}

SnapshotFloor::~SnapshotFloor() {
  server_->Shutdown();
}

grpc::Status SnapshotFloor::take(const ChangeClient::Encoded& parts) {
  v1::ReplaceSnapshotResponse response;
  return client_->replace(parts, response);
}

}  // namespace sluice::bench
