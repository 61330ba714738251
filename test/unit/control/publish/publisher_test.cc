#include "control/publish/publisher.h"

#include <gmock/gmock.h>

#include <thread>

#include "test/support/cluster_objects.h"
#include "test/support/fake_sink.h"
#include "test/support/fake_worker_view.h"
#include "test/unit/control/publish/odd_compiler.h"

namespace sluice::publish {
namespace {

using std::chrono::milliseconds;
using test::make_service;
using test::make_slice;
using test::make_state;
using test::upsert;
using testing::HasSubstr;

constexpr milliseconds kLong{10000};  // a bound for waits that end at once when all is well

class PublisherTest : public testing::Test {
 protected:
  ~PublisherTest() override {
    sink_.release();
    second_.release();
  }
  void start(Publisher::Options options = {}, pipeline::WorkerView* view = nullptr,
             bool two_sinks = false) {
    if (!options.first_version) {
      options.first_version = [] { return 100; };
    }
    std::vector<SinkSlot> slots = {{.sink = &sink_}};
    if (two_sinks) {
      slots.push_back({.sink = &second_});
    }
    publisher_.emplace(std::move(options), std::move(slots), view);
    publisher_->start();
  }
  bool applied(std::uint64_t version) { return publisher_->wait_applied(version, kLong, {}); }
  static model::ClusterState udp(const std::vector<std::string>& endpoints) {
    return make_state({make_service("dns", "10.96.0.10", 53, "UDP")},
                      {make_slice("dns", "1", endpoints, 53, "UDP")});
  }
  static std::vector<std::string> endpoints_of(const core::TablePtr& table) {
    std::vector<std::string> all;
    for (std::uint32_t i = 0; i < table->slot_limit(); ++i) {
      if (const auto* block = table->service(static_cast<core::ServiceSlot>(i))) {
        for (const auto& endpoint : block->endpoints) {
          all.push_back(core::to_string(endpoint.address));
        }
      }
    }
    return all;
  }

  test::FakeSink sink_{"one"};
  test::FakeSink second_{"two"};
  std::optional<Publisher> publisher_;
};

// SY-1
TEST_F(PublisherTest, AppliesNothingBeforeTheFirstSnapshot) {
  start();
  publisher_->set_host_state({{{*core::parse_address("192.0.2.1"), "eth0"}}});
  const auto refused = publisher_->update(upsert({make_service("a", "10.96.0.1")}));
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().why, Refused::Why::kNoSnapshot);
  EXPECT_EQ(publisher_->table(), nullptr);
  EXPECT_EQ(sink_.attempts(), 0);
}

// Three values: no snapshot, no Services, no change.
TEST_F(PublisherTest, AnEmptySnapshotIsApplied) {
  start();
  const auto accepted = publisher_->replace({});
  ASSERT_TRUE(accepted.has_value());
  EXPECT_TRUE(applied(accepted->version));
  EXPECT_EQ(sink_.last()->service_count(), 0u);
}

TEST_F(PublisherTest, AServiceWithoutEndpointsIsNotAnAbsentOne) {
  start();
  ASSERT_TRUE(applied(publisher_->replace(udp({}))->version));
  EXPECT_EQ(sink_.last()->service_count(), 1u);
  EXPECT_TRUE(endpoints_of(sink_.last()).empty());
}

TEST_F(PublisherTest, VersionsOnlyGrowAndStartAtTheGivenOne) {
  start();
  const auto first = publisher_->replace(udp({"10.1.0.1"}));
  const auto second = publisher_->update(upsert({}, {make_slice("dns", "2", {"10.1.0.2"})}));
  EXPECT_EQ(first->version, 101u);
  EXPECT_EQ(second->version, 102u);
}

TEST_F(PublisherTest, RefusesADeltaAgainstAnotherBaseAndNamesTheVersionToResumeFrom) {
  start();
  const auto version = publisher_->replace(udp({"10.1.0.1"}))->version;
  const auto refused = publisher_->update(upsert({make_service("a", "10.96.0.1")}), version + 1);
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().why, Refused::Why::kOtherBase);
  EXPECT_EQ(refused.error().version, version);
  EXPECT_EQ(publisher_->state()->services.size(), 1u);
  EXPECT_EQ(publisher_->status().refused, 1u);
}

TEST_F(PublisherTest, ReplaceIfVersionZeroOnlyBeforeTheFirstSnapshot) {
  start();
  EXPECT_TRUE(publisher_->replace(udp({"10.1.0.1"}), 0).has_value());
  EXPECT_FALSE(publisher_->replace(udp({"10.1.0.2"}), 0).has_value());
}

// F57
TEST_F(PublisherTest, AFailedApplyIsRetriedWithTheWholeChange) {
  start();
  ASSERT_TRUE(applied(publisher_->replace(udp({"10.1.0.1"}))->version));
  sink_.behave([](int attempt) { return attempt <= 6 ? "no" : ""; });

  const auto version = publisher_->replace(udp({"10.1.0.2"}))->version;

  ASSERT_TRUE(sink_.wait_attempts(3));
  const auto meanwhile = publisher_->status().sinks[0];
  EXPECT_LT(meanwhile.applied_version, version);
  EXPECT_EQ(meanwhile.wanted_version, version);
  EXPECT_EQ(meanwhile.last_error, "no");
  ASSERT_TRUE(applied(version));  // no further input
  EXPECT_EQ(endpoints_of(sink_.last()), std::vector<std::string>{"10.1.0.2"});
  EXPECT_EQ(publisher_->status().sinks[0].failures, 5u);
  EXPECT_EQ(publisher_->status().sinks[0].last_error, "");
}

// F57: what came while the sink failed is not lost either, and an overtaken table is skipped.
TEST_F(PublisherTest, AFailingSinkIsGivenTheNewestTableOnly) {
  start();
  sink_.hold();
  (void)publisher_->replace(udp({"10.1.0.1"}));
  ASSERT_TRUE(sink_.wait_attempts(1));
  std::uint64_t version = 0;
  for (const char* address : {"10.1.0.2", "10.1.0.3", "10.1.0.4"}) {
    version = publisher_->replace(udp({address}))->version;
  }
  sink_.release();
  ASSERT_TRUE(applied(version));
  EXPECT_EQ(sink_.tables().size(), 2u);
  EXPECT_EQ(endpoints_of(sink_.last()), std::vector<std::string>{"10.1.0.4"});
}

TEST_F(PublisherTest, ASlowSinkDoesNotDelayAnother) {
  start({}, nullptr, true);
  second_.hold();
  std::uint64_t version = 0;
  for (const char* address : {"10.1.0.2", "10.1.0.3"}) {
    version = publisher_->replace(udp({address}))->version;
    while (publisher_->status().sinks[0].applied_version < version) {
      ASSERT_TRUE(sink_.wait_attempts(1));
      std::this_thread::yield();
    }
  }
  EXPECT_EQ(publisher_->status().sinks[1].applied_version, 0u);
  second_.release();
  EXPECT_TRUE(applied(version));
}

// F58
TEST_F(PublisherTest, ARestoredStateStaysInForceUntilTheFirstWholeSnapshot) {
  start();
  auto kept = udp({"10.1.0.1", "10.1.0.2", "10.1.0.3"});
  kept.version = 50;
  publisher_->restore(kept);
  ASSERT_TRUE(applied(50));
  EXPECT_EQ(publisher_->status().source, Status::Source::kRestored);

  const auto same = publisher_->replace(udp({"10.1.0.1", "10.1.0.2", "10.1.0.3"}));

  EXPECT_FALSE(same->changed);
  EXPECT_EQ(publisher_->status().source, Status::Source::kControlPlane);
  for (const auto& table : sink_.tables()) {
    EXPECT_EQ(endpoints_of(table).size(), 3u);
  }
}

TEST_F(PublisherTest, AStateIsNotRestoredOverAReceivedOne) {
  start();
  const auto version = publisher_->replace(udp({"10.1.0.1"}))->version;
  publisher_->restore(udp({"10.1.0.9"}));
  EXPECT_EQ(publisher_->state()->version, version);
}

// F64
TEST_F(PublisherTest, AnIdenticalSnapshotIsNoEffectiveChange) {
  start();
  const auto first = publisher_->replace(udp({"10.1.0.1"}));
  ASSERT_TRUE(applied(first->version));
  const auto table = publisher_->table();

  auto again = udp({"10.1.0.1"});
  again.version = 999;  // another sender, another number
  const auto second = publisher_->replace(again);

  EXPECT_FALSE(second->changed);
  EXPECT_EQ(second->version, first->version);
  EXPECT_EQ(publisher_->status().no_effective_change, 1u);
  EXPECT_EQ(publisher_->table(), table);
  EXPECT_TRUE(applied(second->version));
  EXPECT_EQ(sink_.attempts(), 1);
}

// F61
TEST_F(PublisherTest, AnExceptionInOneUpdateIsNamedAndOthersGoOn) {
  Publisher::Options options;
  options.make_compiler = [](compile::IdRegistry& ids) {
    return std::make_unique<OddCompiler>(ids, service_with_port("a", 81));
  };
  start(std::move(options));
  (void)publisher_->replace(make_state({make_service("a", "10.96.0.1")}, {}));

  const auto odd = publisher_->update(upsert({make_service("a", "10.96.0.1", 81)}));
  ASSERT_TRUE(odd.has_value());
  ASSERT_EQ(odd->report.size(), 1u);
  EXPECT_THAT(odd->report[0].reason, HasSubstr("odd object"));
  std::uint64_t version = 0;
  for (int i = 0; i < 10; ++i) {
    version = publisher_
                  ->update(upsert(
                      {make_service("g" + std::to_string(i), "10.96.1." + std::to_string(i + 1))}))
                  ->version;
  }

  ASSERT_TRUE(applied(version));
  EXPECT_EQ(sink_.last()->service_count(), 11u);
  ASSERT_EQ(publisher_->status().failed.size(), 1u);
  EXPECT_EQ(publisher_->status().failed[0].object, "service default/a");
  EXPECT_TRUE(publisher_->health().ok);
}

// F61
TEST_F(PublisherTest, AThrowingSinkIsRetried) {
  start();
  sink_.behave([](int attempt) -> std::string {
    if (attempt == 1) {
      throw std::runtime_error("broken pipe");
    }
    return "";
  });
  EXPECT_TRUE(applied(publisher_->replace({})->version));
  EXPECT_EQ(publisher_->status().sinks[0].failures, 1u);
  EXPECT_TRUE(publisher_->health().ok);
}

// F61
TEST_F(PublisherTest, ADeadSinkThreadFailsHealth) {
  start({}, nullptr, true);
  sink_.behave([](int) -> std::string { throw 42; });
  const auto version = publisher_->replace({})->version;
  EXPECT_FALSE(publisher_->wait_applied(version, kLong, [&] { return !publisher_->health().ok; }));
  EXPECT_THAT(publisher_->health().reason, HasSubstr("sink one"));
  EXPECT_FALSE(publisher_->status().sinks[0].alive);
  while (publisher_->status().sinks[1].applied_version < version) {
    std::this_thread::yield();  // the other one lives
  }
}

// F61
TEST_F(PublisherTest, AStoppedWorkerFailsHealth) {
  test::FakeWorkerView view;
  view.set_workers({{.worker = 0, .running = true}, {.worker = 1, .running = true}});
  start({}, &view);
  EXPECT_TRUE(publisher_->health().ok);
  view.set_workers({{.worker = 0, .running = true}, {.worker = 1, .running = false}});
  EXPECT_THAT(publisher_->health().reason, HasSubstr("worker 1"));
}

TEST_F(PublisherTest, ADegradedDataplaneFailsHealthAndEndsNothing) {
  test::FakeWorkerView view;
  start({}, &view);
  view.set_degraded("port front: its tap slc-front is down");

  EXPECT_FALSE(publisher_->health().ok);
  EXPECT_FALSE(publisher_->health().fatal);
  EXPECT_THAT(publisher_->health().reason, HasSubstr("slc-front"));
}

// F63: ids are given back over many cycles, also when applies fail.
TEST_F(PublisherTest, IdsDoNotLeakWithChurn) {
  Publisher::Options options;
  options.id_limits = {.service_ports = 64, .endpoints = 256};
  options.id_release_period = milliseconds(0);
  start(std::move(options));
  sink_.behave([](int attempt) { return attempt % 100 == 0 ? "no" : ""; });
  ASSERT_TRUE(applied(publisher_->replace(udp({"10.1.0.1"}))->version));
  for (unsigned i = 0; i < 2000; ++i) {
    const auto name = "churn" + std::to_string(i);
    (void)publisher_->update(upsert({make_service(name, "10.97." + std::to_string(i / 250) + "." +
                                                            std::to_string(i % 250 + 1))},
                                    {make_slice(name, "1", {test::endpoint_address(i)})}));
    model::Delta gone;
    gone.deleted_services = {{"default", name}};
    gone.deleted_slices = {{"default", name + "-1"}};
    const auto version = publisher_->update(gone)->version;
    ASSERT_TRUE(applied(version)) << "cycle " << i;
    ASSERT_TRUE(publisher_->status().failed.empty());
    ASSERT_TRUE(publisher_->status().report.empty()) << publisher_->status().report[0].reason;
  }
  (void)publisher_->state();  // a round of the control thread: ids are released
  (void)publisher_->state();
  const auto status = publisher_->status();
  EXPECT_EQ(status.slots_in_use - status.ids_retired / 2, 1u);
  EXPECT_LE(status.slots_in_use, 2u);
}

// F63, limit + 1: what was refused comes into force when there is room, without a new change.
TEST_F(PublisherTest, AServiceRefusedForWantOfIdsComesInWhenSomeAreFree) {
  Publisher::Options options;
  options.id_limits = {.service_ports = 1, .endpoints = 4};
  options.id_release_period = milliseconds(1);
  start(std::move(options));
  const auto first = publisher_->replace(
      make_state({make_service("a", "10.96.0.1"), make_service("b", "10.96.0.2")},
                 {make_slice("a", "1", {"10.1.0.1"}), make_slice("b", "1", {"10.1.0.2"})}));
  ASSERT_TRUE(applied(first->version));
  ASSERT_EQ(publisher_->status().report.size(), 1u);
  EXPECT_EQ(publisher_->status().report[0].object, "service default/b");
  EXPECT_THAT(endpoints_of(sink_.last()), testing::ElementsAre("10.1.0.1"));

  model::Delta gone;
  gone.deleted_services = {{"default", "a"}};
  const auto version = publisher_->update(gone)->version;

  const auto give_up = std::chrono::steady_clock::now() + kLong;
  while ((sink_.tables().size() < 3 || !publisher_->status().report.empty()) &&
         std::chrono::steady_clock::now() < give_up) {
    std::this_thread::yield();
  }
  EXPECT_THAT(endpoints_of(sink_.last()), testing::ElementsAre("10.1.0.2"));
  EXPECT_TRUE(publisher_->status().report.empty());
  EXPECT_EQ(publisher_->status().version, version);
  EXPECT_LE(publisher_->status().slots_in_use, 1u);
}

TEST_F(PublisherTest, NamesDeletesOfWhatDoesNotExist) {
  start();
  (void)publisher_->replace(udp({"10.1.0.1"}));
  model::Delta delta;
  delta.deleted_services = {{"default", "dns"}, {"default", "x"}};
  delta.deleted_nodes = {"n"};
  const auto accepted = publisher_->update(delta);
  EXPECT_THAT(accepted->not_found.deleted_services,
              testing::ElementsAre(model::ObjectName{"default", "x"}));
  EXPECT_THAT(accepted->not_found.deleted_nodes, testing::ElementsAre("n"));
  EXPECT_TRUE(accepted->not_found.deleted_slices.empty());
}

// The state that was read never changes, and every later reading has all changes.
TEST_F(PublisherTest, AStateInHandsStaysWhileChangesGoOn) {
  start();
  (void)publisher_->replace(udp({"10.1.0.1"}));
  const auto before = publisher_->state();
  const auto version = publisher_->update(upsert({make_service("a", "10.96.0.1")}))->version;
  const auto after = publisher_->state();
  EXPECT_EQ(before->services.size(), 1u);
  EXPECT_EQ(after->services.size(), 2u);
  EXPECT_EQ(after->version, version);
  EXPECT_EQ(publisher_->replace({})->version, version + 1);
  EXPECT_TRUE(publisher_->state()->services.empty());
}

// F63
TEST_F(PublisherTest, AnIdIsKeptWhileConnectionsCountUnderIt) {
  test::FakeWorkerView view;
  view.set_workers({{.worker = 0, .running = true, .generation = UINT64_MAX}});
  view.set_all_active(true);
  Publisher::Options options;
  options.id_release_period = milliseconds(0);
  start(std::move(options), &view);
  ASSERT_TRUE(applied(publisher_->replace(udp({"10.1.0.1", "10.1.0.2"}))->version));
  ASSERT_TRUE(applied(publisher_->replace(udp({"10.1.0.1"}))->version));
  (void)publisher_->state();
  (void)publisher_->state();
  EXPECT_EQ(publisher_->status().endpoint_ids_in_use, 2u);

  view.set_all_active(false);
  (void)publisher_->state();
  (void)publisher_->state();
  EXPECT_EQ(publisher_->status().endpoint_ids_in_use, 1u);
}

TEST_F(PublisherTest, AHostStateIsCompiledAtOnce) {
  start();
  const auto version = publisher_->replace(udp({"10.1.0.1"}))->version;
  ASSERT_TRUE(applied(version));
  const auto generation = publisher_->table()->generation();
  publisher_->set_host_state({{{*core::parse_address("192.0.2.1"), "eth0"}}});
  (void)publisher_->state();  // answered in the round that compiles, or before
  (void)publisher_->state();  // answered in the next one
  EXPECT_GT(publisher_->table()->generation(), generation);
}

// F60
TEST_F(PublisherTest, ManyServicesAtOnceFromManyThreadsAllArrive) {
  start({}, nullptr, true);
  (void)publisher_->replace({});
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < 8; ++t) {
    threads.emplace_back([&, t] {
      for (unsigned i = t; i < 500; i += 8) {
        const auto name = "s" + std::to_string(i);
        std::vector<std::string> four;
        for (unsigned e = 0; e < 4; ++e) {
          four.push_back(test::endpoint_address(4 * i + e));
        }
        ASSERT_TRUE(publisher_->update(upsert({}, {make_slice(name, "1", four)})).has_value());
        ASSERT_TRUE(
            publisher_
                ->update(upsert({make_service(
                    name, "10.98." + std::to_string(i / 250) + "." + std::to_string(i % 250 + 1))}))
                .has_value());
      }
    });
  }
  for (auto& thread : threads) {
    thread.join();
  }
  ASSERT_TRUE(applied(publisher_->state()->version));
  EXPECT_EQ(publisher_->state()->services.size(), 500u);
  EXPECT_EQ(endpoints_of(publisher_->table()).size(), 2000u);
  EXPECT_EQ(endpoints_of(sink_.last()).size(), 2000u);
  EXPECT_EQ(endpoints_of(second_.last()).size(), 2000u);
}

TEST_F(PublisherTest, AfterStopChangesAreRefusedAndNothingHangs) {
  start();
  publisher_->stop();
  const auto refused = publisher_->replace({});
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().why, Refused::Why::kStopped);
  EXPECT_EQ(publisher_->state(), nullptr);
}

TEST_F(PublisherTest, ASecondServiceKeepsASharedEndpointWhenTheFirstGoes) {
  // F62
  start();
  auto state = make_state({make_service("a", "10.96.0.1"), make_service("b", "10.96.0.2")},
                          {make_slice("a", "1", {"10.1.0.1"}), make_slice("b", "1", {"10.1.0.1"})});
  (void)publisher_->replace(state);
  model::Delta gone;
  gone.deleted_services = {{"default", "a"}};
  ASSERT_TRUE(applied(publisher_->update(gone)->version));
  EXPECT_EQ(endpoints_of(sink_.last()), std::vector<std::string>{"10.1.0.1"});
}

}  // namespace
}  // namespace sluice::publish
