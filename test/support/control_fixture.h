#pragma once

#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "control/publish/publisher.h"
#include "control/server/server.h"
#include "sluice/v1/cluster.grpc.pb.h"
#include "sluice/v1/node.grpc.pb.h"
#include "test/support/cluster_objects.h"
#include "test/support/fake_sink.h"
#include "test/support/fake_worker_view.h"

namespace sluice::test {

/// A real publisher and a real gRPC server on a Unix socket in a directory of its own, over a fake
/// sink and a fake view of workers.
class ControlFixture : public testing::Test {
 protected:
  ControlFixture() {
    std::string name = (std::filesystem::temp_directory_path() / "sluice-ctl-XXXXXX").string();
    directory_ = mkdtemp(name.data());
    options_.listen = "unix:" + socket();
    options_.version = "test";
    view_.set_workers({{.worker = 0, .lcore = 1, .running = true, .generation = UINT64_MAX}});
  }
  ~ControlFixture() override {
    sink_.release();
    server_.reset();
    publisher_.reset();
    std::filesystem::remove_all(directory_);
  }

  [[nodiscard]] std::string socket() const { return directory_ + "/s"; }
  void start_publisher() {
    publisher_.emplace(publish::Publisher::Options{},
                       std::vector<publish::SinkSlot>{{.sink = &sink_}}, &view_);
    publisher_->start();
  }
  void start() {
    start_publisher();
    server_.emplace(options_, *publisher_, &view_);
    const auto started = server_->start();
    ASSERT_TRUE(started.has_value()) << started.error().message;
    connect();
  }
  void connect() {
    grpc::ChannelArguments arguments;
    arguments.SetMaxReceiveMessageSize(-1);
    arguments.SetMaxSendMessageSize(-1);
    // Each fixture its own connection, never one of a former server.
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    channel_ = grpc::CreateCustomChannel(server_->address(), grpc::InsecureChannelCredentials(),
                                         arguments);
    cluster_ = v1::Cluster::NewStub(channel_);
    node_ = v1::Node::NewStub(channel_);
  }

  std::string directory_;
  FakeSink sink_;
  FakeWorkerView view_;
  server::Server::Options options_;
  std::optional<publish::Publisher> publisher_;
  std::optional<server::Server> server_;
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<v1::Cluster::Stub> cluster_;
  std::unique_ptr<v1::Node::Stub> node_;
};

}  // namespace sluice::test
