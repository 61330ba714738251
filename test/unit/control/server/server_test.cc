#include "control/server/server.h"

#include <gmock/gmock.h>
#include <grpcpp/generic/generic_stub.h>
#include <sys/stat.h>

#include <fstream>

#include "control/server/persist.h"
#include "test/support/control_fixture.h"

namespace sluice::server {
namespace {

using testing::HasSubstr;
using Clock = std::chrono::steady_clock;

class ServerTest : public test::ControlFixture {
 protected:
  std::string start_error(const std::string& listen) {
    Server::Options options;
    options.listen = listen;
    Server other(options, *publisher_, nullptr);
    const auto started = other.start();
    return started ? "" : started.error().message;
  }
  /// Calls a method of another service by raw bytes. @return the answer's bytes.
  std::string raw_call(const std::string& method, const std::string& request,
                       grpc::Status& status) {
    grpc::GenericStub stub(channel_);
    grpc::ClientContext context;
    grpc::CompletionQueue queue;
    const grpc::Slice slice(request);
    const grpc::ByteBuffer buffer(&slice, 1);
    auto call = stub.PrepareUnaryCall(&context, method, buffer, &queue);
    call->StartCall();
    grpc::ByteBuffer answer;
    call->Finish(&answer, &status, nullptr);
    void* tag = nullptr;
    bool ok = false;
    queue.Next(&tag, &ok);
    std::vector<grpc::Slice> slices;
    std::string bytes;
    if (answer.Valid() && answer.Dump(&slices).ok()) {
      for (const auto& part : slices) {
        bytes.append(reinterpret_cast<const char*>(part.begin()), part.size());
      }
    }
    return bytes;
  }
};

TEST_F(ServerTest, ItsSocketIsOfMode0600) {
  start();
  struct stat info {};
  ASSERT_EQ(lstat(socket().c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777u, 0600u);
  EXPECT_EQ(server_->address(), "unix:" + socket());
}

TEST_F(ServerTest, ASecondServerOnTheSameSocketIsRefusedAndTheFirstGoesOn) {
  start();
  EXPECT_THAT(start_error(options_.listen), HasSubstr("served by another daemon"));
  grpc::ClientContext context;
  v1::GetStatusResponse response;
  EXPECT_TRUE(node_->GetStatus(&context, {}, &response).ok());
}

// Without ALLOW_REUSEPORT=0 the second server would start and share the port.
TEST_F(ServerTest, ASecondServerOnTheSamePortIsRefused) {
  options_.listen = "127.0.0.1:0";
  start();
  EXPECT_THAT(start_error(server_->address()), HasSubstr("Address already in use"));
}

// F97
TEST_F(ServerTest, ServesLoopbackOfBothFamilies) {
  options_.listen = "[::1]:0";
  start();
  EXPECT_THAT(server_->address(), testing::MatchesRegex(R"(\[::1\]:[1-9][0-9]+)"));
  grpc::ClientContext context;
  v1::GetStatusResponse response;
  EXPECT_TRUE(node_->GetStatus(&context, {}, &response).ok());
}

TEST_F(ServerTest, RefusesToListenOffLoopback) {
  start();
  EXPECT_THAT(start_error("0.0.0.0:0"), HasSubstr("only a Unix socket or a loopback address"));
}

TEST_F(ServerTest, RemovesItsSocketAndCanBeStartedAgain) {
  start();
  server_.reset();
  EXPECT_FALSE(std::filesystem::exists(socket()));
  server_.emplace(options_, *publisher_, &view_);
  EXPECT_TRUE(server_->start().has_value());
}

TEST_F(ServerTest, StopIsBoundedWithStreamsOpen) {
  view_.made_rows = UINT64_MAX;
  start();
  grpc::ClientContext reading;
  auto dump = node_->ListConnections(&reading, {});
  v1::ListConnectionsResponse page;
  ASSERT_TRUE(dump->Read(&page));
  grpc::ClientContext writing;
  v1::ReplaceSnapshotResponse response;
  auto upload = cluster_->ReplaceSnapshot(&writing, &response);
  v1::ReplaceSnapshotRequest part;
  part.mutable_header();
  ASSERT_TRUE(upload->Write(part));

  const auto begin = Clock::now();
  server_->stop();

  EXPECT_LT(Clock::now() - begin, std::chrono::milliseconds(1000));
  EXPECT_EQ(publisher_->state(), nullptr);  // the open upload changed nothing
  reading.TryCancel();
}

TEST_F(ServerTest, AnswersTheStandardHealthServiceAndReflection) {
  start();
  grpc::Status status;
  // HealthCheckResponse{status: SERVING}
  EXPECT_EQ(raw_call("/grpc.health.v1.Health/Check", "", status), std::string("\x08\x01", 2));
  EXPECT_TRUE(status.ok());
  // ServerReflectionRequest{list_services: ""}
  const auto services = raw_call("/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
                                 std::string("\x3a\x00", 2), status);
  EXPECT_THAT(services, HasSubstr("sluice.v1.Cluster"));
  EXPECT_THAT(services, HasSubstr("sluice.v1.Node"));
}

// F61
TEST_F(ServerTest, HealthFailsWhenASinkThreadDied) {
  start();
  sink_.behave([](int) -> std::string { throw 42; });
  (void)publisher_->replace({});
  grpc::Status status;
  std::string answer;
  const auto until = Clock::now() + std::chrono::seconds(10);
  do {
    answer = raw_call("/grpc.health.v1.Health/Check", "", status);
  } while (answer != std::string("\x08\x02", 2) && Clock::now() < until);
  EXPECT_EQ(answer, std::string("\x08\x02", 2));  // NOT_SERVING
}

// SY-1, F58: the kept snapshot is in force until the control plane answers.
TEST_F(ServerTest, KeepsTheLastGoodSnapshotAndStartsFromIt) {
  options_.state_file = directory_ + "/state";
  start();
  const auto version =
      publisher_->replace(test::make_state({test::make_service("a", "10.96.0.1")}, {}))->version;
  server_.reset();  // saves at the latest now
  publisher_.reset();

  start();

  ASSERT_TRUE(publisher_->wait_applied(version, std::chrono::seconds(10), {}));
  EXPECT_EQ(publisher_->state()->version, version);
  EXPECT_EQ(publisher_->status().source, publish::Status::Source::kRestored);
  EXPECT_EQ(sink_.last()->service_count(), 1u);
}

TEST_F(ServerTest, ADamagedStateFileIsReportedAndIgnored) {
  options_.state_file = directory_ + "/state";
  std::ofstream(options_.state_file) << "garbage";
  std::string warning;
  options_.warn = [&](const std::string& line) { warning = line; };
  start();
  EXPECT_THAT(warning, HasSubstr("no snapshot of this format"));
  EXPECT_EQ(publisher_->state(), nullptr);
}

}  // namespace
}  // namespace sluice::server
