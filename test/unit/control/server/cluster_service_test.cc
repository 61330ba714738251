#include "control/server/cluster_service.h"

#include <gmock/gmock.h>

#include <sys/resource.h>

#include "proto/codec.h"
#include "test/support/control_fixture.h"

namespace sluice::server {
namespace {

using test::make_service;
using test::make_slice;
using testing::HasSubstr;

class ClusterServiceTest : public test::ControlFixture {
 protected:
  ClusterServiceTest() { start(); }

  struct Answer {
    grpc::Status status;
    v1::Outcome outcome;
    v1::Refusal refusal;
  };
  static v1::Refusal refusal_of(const grpc::ClientContext& context) {
    v1::Refusal refusal;
    const auto& metadata = context.GetServerTrailingMetadata();
    if (const auto at = metadata.find("sluice-error-bin"); at != metadata.end()) {
      refusal.ParseFromArray(at->second.data(), static_cast<int>(at->second.size()));
    }
    return refusal;
  }
  Answer replace(const std::vector<v1::ReplaceSnapshotRequest>& parts) {
    grpc::ClientContext context;
    v1::ReplaceSnapshotResponse response;
    auto stream = cluster_->ReplaceSnapshot(&context, &response);
    for (const auto& part : parts) {
      if (!stream->Write(part)) {
        break;
      }
    }
    stream->WritesDone();
    const auto status = stream->Finish();
    return {status, response.outcome(), refusal_of(context)};
  }
  static v1::ReplaceSnapshotRequest header(v1::Strictness strictness = v1::STRICTNESS_STRICT) {
    v1::ReplaceSnapshotRequest part;
    part.mutable_header()->set_strictness(strictness);
    part.mutable_header()->set_wait_applied_ms(10000);
    return part;
  }
  static v1::ReplaceSnapshotRequest commit(std::uint64_t objects) {
    v1::ReplaceSnapshotRequest part;
    part.mutable_commit()->set_objects(objects);
    return part;
  }
  static v1::ReplaceSnapshotRequest objects(const std::vector<model::Service>& services,
                                            const std::vector<model::EndpointSlice>& slices = {}) {
    v1::ReplaceSnapshotRequest part;
    for (const auto& service : services) {
      *part.mutable_objects()->add_services() = codec::encode(service);
    }
    for (const auto& slice : slices) {
      *part.mutable_objects()->add_endpoint_slices() = codec::encode(slice);
    }
    return part;
  }
  Answer update(const v1::UpdateRequest& request) {
    grpc::ClientContext context;
    v1::UpdateResponse response;
    const auto status = cluster_->Update(&context, request, &response);
    return {status, response.outcome(), refusal_of(context)};
  }
  static v1::UpdateRequest upsert(const std::vector<model::Service>& services) {
    v1::UpdateRequest request;
    for (const auto& service : services) {
      *request.mutable_upserts()->add_services() = codec::encode(service);
    }
    request.set_wait_applied_ms(10000);
    return request;
  }
};

TEST_F(ClusterServiceTest, ASnapshotIsAppliedWhole) {
  const auto answer = replace({header(), objects({make_service("a", "10.96.0.1")}),
                               objects({make_service("b", "10.96.0.2")}), commit(2)});
  ASSERT_TRUE(answer.status.ok()) << answer.status.error_message();
  EXPECT_TRUE(answer.outcome.changed());
  EXPECT_TRUE(answer.outcome.applied());
  EXPECT_EQ(sink_.last()->service_count(), 2u);
}

TEST_F(ClusterServiceTest, WithoutACommitNothingChanges) {
  const auto answer = replace({header(), objects({make_service("a", "10.96.0.1")})});
  EXPECT_EQ(answer.status.error_code(), grpc::StatusCode::ABORTED);
  EXPECT_EQ(publisher_->state(), nullptr);
}

TEST_F(ClusterServiceTest, ACommitOfAnotherCountIsRefused) {
  const auto answer = replace({header(), objects({make_service("a", "10.96.0.1")}), commit(2)});
  EXPECT_EQ(answer.status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(publisher_->state(), nullptr);
}

TEST_F(ClusterServiceTest, TheHeaderComesFirstAndOnce) {
  EXPECT_EQ(replace({objects({})}).status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(replace({header(), header()}).status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
}

TEST_F(ClusterServiceTest, StrictRefusesTheWholeRequestAndNamesObjectAndField) {
  auto bad = make_service("bad", "10.96.0.2");
  bad.ports[0].port = 70000;
  const auto answer =
      replace({header(), objects({make_service("a", "10.96.0.1"), bad}), commit(2)});
  EXPECT_EQ(answer.status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(answer.status.error_message(),
            "service default/bad: spec.ports[0].port: 70000 is not in 1 to 65535");
  ASSERT_EQ(answer.refusal.errors_size(), 1);
  EXPECT_EQ(answer.refusal.reason(), v1::Refusal::INVALID);
  EXPECT_EQ(answer.refusal.errors(0).field(), "spec.ports[0].port");
  EXPECT_EQ(publisher_->state(), nullptr);
}

TEST_F(ClusterServiceTest, LenientSkipsABadObjectKeepsItsFormerStateAndReportsIt) {
  (void)replace({header(), objects({make_service("a", "10.96.0.1")}), commit(1)});
  auto bad = make_service("a", "10.96.0.1");
  bad.ports[0].port = 0;
  const auto answer = replace(
      {header(v1::STRICTNESS_LENIENT), objects({bad, make_service("b", "10.96.0.2")}), commit(2)});
  ASSERT_TRUE(answer.status.ok()) << answer.status.error_message();
  ASSERT_EQ(answer.outcome.skipped_size(), 1);
  EXPECT_EQ(answer.outcome.skipped(0).object(), "service default/a");
  EXPECT_EQ(publisher_->state()->services.at({"default", "a"}).ports[0].port, 80);
  EXPECT_EQ(publisher_->state()->services.size(), 2u);
}

TEST_F(ClusterServiceTest, TheSameObjectTwiceIsRefused) {
  const auto one = make_service("a", "10.96.0.1");
  const auto answer = replace({header(), objects({one}), objects({one}), commit(2)});
  EXPECT_THAT(answer.status.error_message(), HasSubstr("service default/a: appears twice"));
}

TEST_F(ClusterServiceTest, AnUpdateBeforeTheFirstSnapshotIsRefused) {
  const auto answer = update(upsert({make_service("a", "10.96.0.1")}));
  EXPECT_EQ(answer.status.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_EQ(answer.refusal.reason(), v1::Refusal::NO_SNAPSHOT);
}

TEST_F(ClusterServiceTest, AnUpdateAgainstAnotherBaseNamesTheVersionToResumeFrom) {
  const auto version = replace({header(), commit(0)}).outcome.version();
  auto request = upsert({make_service("a", "10.96.0.1")});
  request.set_base_version(version + 5);
  const auto answer = update(request);
  EXPECT_EQ(answer.status.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_EQ(answer.refusal.reason(), v1::Refusal::OTHER_VERSION);
  EXPECT_EQ(answer.refusal.current_version(), version);

  request.set_base_version(answer.refusal.current_version());
  EXPECT_TRUE(update(request).status.ok());
}

TEST_F(ClusterServiceTest, DeletesAndSaysWhatWasNotThere) {
  (void)replace({header(), objects({make_service("a", "10.96.0.1")}), commit(1)});
  v1::UpdateRequest request;
  for (const char* name : {"a", "b"}) {
    auto& ref = *request.add_deletes();
    ref.set_kind("Service");
    ref.set_namespace_("default");
    ref.set_name(name);
  }
  const auto answer = update(request);
  ASSERT_TRUE(answer.status.ok());
  ASSERT_EQ(answer.outcome.not_found_size(), 1);
  EXPECT_EQ(answer.outcome.not_found(0).name(), "b");
  EXPECT_TRUE(publisher_->state()->services.empty());
}

TEST_F(ClusterServiceTest, ABadDeleteIsRefused) {
  (void)replace({header(), commit(0)});
  v1::UpdateRequest request;
  request.add_deletes()->set_kind("Pod");
  request.mutable_deletes(0)->set_name("p");
  EXPECT_THAT(update(request).status.error_message(), HasSubstr("is not one of Service"));
}

// F64
TEST_F(ClusterServiceTest, AnIdenticalSnapshotChangesNothing) {
  const std::vector<v1::ReplaceSnapshotRequest> parts = {
      header(), objects({make_service("a", "10.96.0.1")}), commit(1)};
  const auto first = replace(parts);
  const auto second = replace(parts);
  EXPECT_FALSE(second.outcome.changed());
  EXPECT_EQ(second.outcome.version(), first.outcome.version());
  EXPECT_TRUE(second.outcome.applied());
  EXPECT_EQ(sink_.attempts(), 1);
}

TEST_F(ClusterServiceTest, ASinkThatFailsIsNamedInTheAnswer) {
  sink_.behave([](int) { return "no memory"; });
  auto first = header();
  first.mutable_header()->set_wait_applied_ms(50);
  const auto answer = replace({first, commit(0)});
  ASSERT_TRUE(answer.status.ok());
  EXPECT_FALSE(answer.outcome.applied());
  ASSERT_EQ(answer.outcome.sink_errors_size(), 1);
  EXPECT_EQ(answer.outcome.sink_errors(0), "fake: no memory");
}

TEST_F(ClusterServiceTest, GetSnapshotGivesTheStateBackAndFilters) {
  auto other = make_service("x", "10.96.0.9");
  other.name.ns = "other";
  const auto version = replace({header(),
                                objects({make_service("a", "10.96.0.1"), other},
                                        {make_slice("a", "1", {"10.1.0.1"})}),
                                commit(3)})
                           .outcome.version();
  v1::GetSnapshotRequest request;
  request.add_kinds("Service");
  request.set_namespace_("other");
  grpc::ClientContext context;
  auto stream = cluster_->GetSnapshot(&context, request);
  v1::GetSnapshotResponse part;
  ASSERT_TRUE(stream->Read(&part));
  EXPECT_EQ(part.header().version(), version);
  ASSERT_TRUE(stream->Read(&part));
  ASSERT_EQ(part.objects().services_size(), 1);
  EXPECT_EQ(part.objects().services(0).metadata().name(), "x");
  EXPECT_EQ(part.objects().endpoint_slices_size(), 0);
  EXPECT_FALSE(stream->Read(&part));
  EXPECT_TRUE(stream->Finish().ok());
}

// F59: 5,000 Services x 20 endpoints, and one Service with 20,000 endpoints in 200 slices.
TEST_F(ClusterServiceTest, ASnapshotMayBeOfAnySize) {
  std::vector<v1::ReplaceSnapshotRequest> parts = {header()};
  for (unsigned i = 0; i < 5000; ++i) {
    const auto name = "service-with-a-long-name-" + std::to_string(i);
    std::vector<std::string> endpoints;
    for (unsigned e = 0; e < 20; ++e) {
      endpoints.push_back(test::endpoint_address(20 * i + e));
    }
    if (i % 100 == 0) {
      parts.push_back(objects({}));
    }
    auto& page = *parts.back().mutable_objects();
    *page.add_services() = codec::encode(make_service(
        name, "10.100." + std::to_string(i / 250) + "." + std::to_string(i % 250 + 1)));
    *page.add_endpoint_slices() = codec::encode(make_slice(name, "1", endpoints));
  }
  parts.push_back(objects({make_service("big", "10.101.0.1")}));
  for (unsigned s = 0; s < 200; ++s) {
    std::vector<std::string> endpoints;
    for (unsigned e = 0; e < 100; ++e) {
      endpoints.push_back(test::endpoint_address(200000 + 100 * s + e));
    }
    *parts.back().mutable_objects()->add_endpoint_slices() =
        codec::encode(make_slice("big", std::to_string(s), endpoints));
  }
  parts.push_back(commit(10201));

  const auto answer = replace(parts);

  ASSERT_TRUE(answer.status.ok()) << answer.status.error_message();
  EXPECT_TRUE(answer.outcome.applied());
  EXPECT_EQ(sink_.last()->service_count(), 5001u);
}

TEST_F(ClusterServiceTest, DeleteAndUpsertOfOneObjectLeavesTheUpsert) {
  replace({header(), objects({make_service("a", "10.96.0.1"), make_service("b", "10.96.0.2")}),
           commit(2)});
  auto request = upsert({make_service("a", "10.96.0.9")});
  auto& ref = *request.add_deletes();
  ref.set_kind("Service");
  ref.set_namespace_("default");
  ref.set_name("a");
  const auto answer = update(request);
  ASSERT_TRUE(answer.status.ok()) << answer.status.error_message();
  EXPECT_TRUE(answer.outcome.changed());
  EXPECT_EQ(answer.outcome.not_found_size(), 0);
  EXPECT_EQ(sink_.last()->service_count(), 2u);
  EXPECT_EQ(publisher_->state()->services.at({"default", "a"}).cluster_ip, "10.96.0.9");
}

// F93, the other way round: a client that stops in the middle of a snapshot holds no thread.
TEST_F(ClusterServiceTest, AnAbandonedSnapshotEndsAndChangesNothing) {
  server_.reset();
  options_.stalled_stream_limit = std::chrono::milliseconds(50);
  server_.emplace(options_, *publisher_, &view_);
  ASSERT_TRUE(server_->start().has_value());
  connect();
  grpc::ClientContext context;
  v1::ReplaceSnapshotResponse response;
  auto stream = cluster_->ReplaceSnapshot(&context, &response);
  ASSERT_TRUE(stream->Write(header()));
  ASSERT_TRUE(stream->Write(objects({make_service("a", "10.96.0.1")})));
  EXPECT_FALSE(stream->Finish().ok());  // by the server: this client neither ends nor sends
  EXPECT_EQ(publisher_->state(), nullptr);
}

class LimitedServerTest : public ClusterServiceTest {
 protected:
  LimitedServerTest() {
    server_.reset();
    options_.max_message_bytes = 20000;
    options_.max_snapshot_bytes = 50000;
    server_.emplace(options_, *publisher_, &view_);
    EXPECT_TRUE(server_->start().has_value());
    connect();
  }
};

// F59: above a limit the error names limit and size, and the old state stays.
TEST_F(LimitedServerTest, ASizeAboveALimitIsAClearError) {
  ASSERT_TRUE(
      replace({header(), objects({make_service("a", "10.96.0.1")}), commit(1)}).status.ok());
  auto labelled = make_service("b", "10.96.0.2");
  labelled.labels["long"] = std::string(15000, 'x');
  std::vector<v1::ReplaceSnapshotRequest> parts = {header()};
  for (int i = 0; i < 5; ++i) {
    labelled.name.name = "b" + std::to_string(i);
    parts.push_back(objects({labelled}));
  }
  parts.push_back(commit(5));
  const auto whole = replace(parts);
  EXPECT_EQ(whole.status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_THAT(whole.status.error_message(), HasSubstr("more than 50000 bytes"));

  labelled.labels["long"] = std::string(30000, 'x');
  const auto single = update(upsert({labelled}));
  EXPECT_EQ(single.status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_THAT(single.status.error_message(), HasSubstr("vs. 20000"));
  EXPECT_EQ(publisher_->state()->services.size(), 1u);
}

}  // namespace
}  // namespace sluice::server
