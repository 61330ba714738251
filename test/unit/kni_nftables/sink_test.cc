// What the sink does when the kernel refuses.
#include "kni/nftables/nftables_sink.h"

#include <cerrno>
#include <deque>

#include <gmock/gmock.h>

#include "test/unit/kni_nftables/fixture.h"

namespace sluice::kni {
namespace {

using kni::test::TableSource;
using testing::HasSubstr;

/// A kernel that answers as the test says and remembers nothing.
class FakeKernel : public nft::Kernel {
 public:
  struct State {
    std::uint32_t generation = 1;
    std::deque<int> errors;  ///< of the next commits
    int commits = 0;
    int reads = 0;
    bool generation_fails = false;
    std::vector<std::uint32_t> remembered;  ///< numbers under which there is a source
    nft::Events events;                     ///< of the next look
  };
  explicit FakeKernel(State& state) : s_(state) {}
  core::Result<std::uint32_t> generation() override {
    if (s_.generation_fails) {
      return tl::make_unexpected(core::Error{nft::describe({EPERM, "asking"})});
    }
    return s_.generation;
  }
  core::Result<nft::TableHandles> handles() override { return nft::TableHandles{1, 2}; }
  core::Result<nft::Rulesets> read(Depth) override {
    ++s_.reads;
    return nft::Rulesets{};
  }
  nft::CommitResult commit(const nft::Batch&) override {
    ++s_.commits;
    const int error = s_.errors.empty() ? 0 : s_.errors.front();
    if (!s_.errors.empty()) {
      s_.errors.pop_front();
    }
    s_.generation += error == 0 || error == ERESTART ? 1 : 0;
    return {error, "ip sluice chain c-3"};
  }
  core::Result<bool> forget(const std::function<bool(std::uint32_t)>& gone) override {
    bool any = false;
    for (const std::uint32_t number : s_.remembered) {
      any = any || gone(number);
    }
    std::erase_if(s_.remembered, gone);
    return any;
  }
  core::Result<nft::Refusals> refusals() override { return nft::Refusals{}; }
  nft::Events take_events() override { return std::exchange(s_.events, {}); }

 private:
  State& s_;
};

/// What a source says; of durations their number.
struct Numbers : core::MetricVisitor {
  void number(core::MetricKind, std::string_view name, std::string_view, std::string_view labels,
              double value) override {
    at[std::string(name) + "{" + std::string(labels) + "}"] = value;
  }
  void durations(std::string_view name, std::string_view, std::string_view labels,
                 const core::DurationHistogram& histogram) override {
    at[std::string(name) + "{" + std::string(labels) + "}"] =
        static_cast<double>(histogram.count());
  }
  std::map<std::string, double> at;
};

class NftablesSinkTest : public testing::Test {
 protected:
  NftablesSinkTest() : sink_(std::make_unique<FakeKernel>(kernel_), {}) {
    fill_small_cluster(source_);
    first_ = source_.make();
    source_.state.services.erase({"default", "far"});
    second_ = source_.make();
  }
  FakeKernel::State kernel_;
  NftablesSink sink_;
  TableSource source_;
  core::TablePtr first_;
  core::TablePtr second_;
};

TEST_F(NftablesSinkTest, AFailureIsOneLineThatSaysWhatAndTheNextApplyIsWhole) {
  ASSERT_TRUE(sink_.apply(first_));
  kernel_.errors = {EBUSY};
  const auto failed = sink_.apply(second_);
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().message,
            "nftables: ip sluice chain c-3: something that is not ours refers to it");
  EXPECT_EQ(sink_.counters().sync_failures, 1u);
  const int reads = kernel_.reads;
  ASSERT_TRUE(sink_.apply(second_));
  EXPECT_EQ(kernel_.reads, reads + 1);
  EXPECT_EQ(sink_.counters().full_syncs, 2u);
}

TEST_F(NftablesSinkTest, WhateverTheKernelRefusesIsCountedAndFollowedByAWholeSync) {
  int failures = 0;
  for (const int error : {EPERM, ENOBUFS, EMSGSIZE, EBUSY, ENOENT, EEXIST, ENOMEM}) {
    ASSERT_TRUE(sink_.apply(first_));
    kernel_.errors = {error};
    const auto failed = sink_.apply(second_);
    ASSERT_FALSE(failed) << error;
    EXPECT_EQ(failed.error().message.find('\n'), std::string::npos) << failed.error().message;
    EXPECT_EQ(sink_.counters().sync_failures, static_cast<std::uint64_t>(++failures));
    const int reads = kernel_.reads;
    ASSERT_TRUE(sink_.apply(second_));
    EXPECT_EQ(kernel_.reads, reads + 1);
  }
}

TEST_F(NftablesSinkTest, EveryRefusalHasItsWords) {
  const auto line = [](int error) { return nft::describe({error, "x"}); };
  EXPECT_THAT(line(EPERM), HasSubstr("CAP_NET_ADMIN"));
  EXPECT_THAT(line(ENOBUFS), HasSubstr("no room"));
  EXPECT_THAT(line(EMSGSIZE), HasSubstr("send buffer"));
  EXPECT_THAT(line(EOPNOTSUPP), HasSubstr("no nftables"));
  EXPECT_THAT(line(ERESTART), HasSubstr("at the same time"));
  EXPECT_THAT(line(ENOENT), HasSubstr("No such file"));
}

TEST_F(NftablesSinkTest, AConflictIsTriedAgain) {
  ASSERT_TRUE(sink_.apply(first_));
  kernel_.errors = {ERESTART};
  ASSERT_TRUE(sink_.apply(second_));
  EXPECT_EQ(sink_.counters().conflicts, 1u);
  EXPECT_EQ(sink_.counters().partial_syncs, 1u);
}

TEST_F(NftablesSinkTest, AfterTwoConflictsInARowItGoesWithoutTheGenerationAndReadsBack) {
  kernel_.errors = {ERESTART, ERESTART};
  ASSERT_TRUE(sink_.apply(first_));
  EXPECT_EQ(sink_.counters().conflicts, 2u);
  EXPECT_EQ(kernel_.reads, 4);  // three tries and a look behind the last
}

TEST_F(NftablesSinkTest, ConflictsAreNoRepair) {
  ASSERT_TRUE(sink_.apply(first_));
  kernel_.errors = {ERESTART, ERESTART};
  ASSERT_TRUE(sink_.apply(second_));
  EXPECT_EQ(sink_.counters().conflicts, 2u);
  EXPECT_EQ(sink_.counters().full_syncs, 2u);
  EXPECT_EQ(sink_.counters().repairs, 0u);
}

TEST_F(NftablesSinkTest, AConflictBehindNewChainsReadsBackInsteadOfSendingThemAgain) {
  ASSERT_TRUE(sink_.apply(first_));
  source_.put(sluice::test::make_slice(
      "web", "a", {"10.42.1.10", "10.42.2.10", "10.42.3.10", "10.42.3.9", "10.42.3.8"}));
  const int reads = kernel_.reads;
  kernel_.errors = {0, ERESTART};
  ASSERT_TRUE(sink_.apply(source_.make()));
  EXPECT_GT(kernel_.reads, reads);
}

TEST_F(NftablesSinkTest, CommitsOfOthersThatWereHeardAndLeftOurTablesAloneCostNothing) {
  ASSERT_TRUE(sink_.apply(first_));
  const int commits = kernel_.commits;
  for (int i = 0; i < 3; ++i) {
    kernel_.events.foreign = {{++kernel_.generation, 7, "other", false}};
    ASSERT_TRUE(sink_.apply(first_));
  }
  EXPECT_EQ(kernel_.commits, commits);
  EXPECT_EQ(sink_.counters().foreign_commits, 3u);
}

TEST_F(NftablesSinkTest, ACommitThatWasNotHeardHasEverythingWrittenAnew) {
  ASSERT_TRUE(sink_.apply(first_));
  ++kernel_.generation;
  ASSERT_TRUE(sink_.apply(first_));
  EXPECT_EQ(sink_.counters().full_syncs, 2u);
  EXPECT_EQ(sink_.counters().repairs, 0u);
  const int commits = kernel_.commits;
  ASSERT_TRUE(sink_.apply(first_));
  EXPECT_EQ(kernel_.commits, commits);
}

TEST_F(NftablesSinkTest, EventsThatWereLostHaveEverythingWrittenAnew) {
  ASSERT_TRUE(sink_.apply(first_));
  kernel_.events.foreign = {{++kernel_.generation, 7, "other", false}};
  kernel_.events.lost = true;
  ASSERT_TRUE(sink_.apply(first_));
  EXPECT_EQ(sink_.counters().full_syncs, 2u);
}

TEST_F(NftablesSinkTest, AChangeOfOurTablesByOthersIsARepairAndSaysWhose) {
  ASSERT_TRUE(sink_.apply(first_));
  kernel_.events.foreign = {{++kernel_.generation, 7, "other", true}};
  ASSERT_TRUE(sink_.apply(first_));
  EXPECT_EQ(sink_.counters().repairs, 1u);
  EXPECT_EQ(sink_.counters().full_syncs, 2u);
}

TEST_F(NftablesSinkTest, WithoutAChangeNothingIsSent) {
  ASSERT_TRUE(sink_.apply(first_));
  const int commits = kernel_.commits;
  ASSERT_TRUE(sink_.apply(first_));
  EXPECT_EQ(kernel_.commits, commits);
}

// switching affinity off and on again begins anew; other Services keep what they remember.
TEST_F(NftablesSinkTest, WhatAServiceRemembersGoesWithItsAffinity) {
  add_second_sticky(source_);
  const auto both = source_.make();
  ASSERT_TRUE(sink_.apply(both));
  const nft::Memories all = nft::render(*both).memories;
  kernel_.remembered.assign(all.begin(), all.end());
  source_.state.services[{"default", "sticky"}].session_affinity = "None";
  const auto one = source_.make();
  ASSERT_TRUE(sink_.apply(one));
  EXPECT_THAT(kernel_.remembered, testing::UnorderedElementsAreArray(nft::render(*one).memories));
  EXPECT_EQ(kernel_.remembered.size(), all.size() / 2);
}

TEST_F(NftablesSinkTest, FailuresAreNumbersOfBothFamilies) {
  kernel_.errors = {EBUSY};
  ASSERT_FALSE(sink_.apply(first_));
  Numbers numbers;
  sink_.collect(numbers);
  const std::string name = "kubeproxy_sync_proxy_rules_nftables_sync_failures_total";
  EXPECT_EQ(numbers.at[name + "{ip_family=\"IPv4\"}"], 1);
  EXPECT_EQ(numbers.at[name + "{ip_family=\"IPv6\"}"], 1);
  EXPECT_EQ(numbers.at["kubeproxy_sync_full_proxy_rules_duration_seconds{ip_family=\"IPv4\"}"], 1);
  EXPECT_EQ(numbers.at["kubeproxy_sync_partial_proxy_rules_duration_seconds{ip_family=\"IPv4\"}"],
            0);
}

TEST_F(NftablesSinkTest, AKernelThatCannotBeAskedIsAFailureNotACrash) {
  kernel_.generation_fails = true;
  const auto failed = sink_.apply(first_);
  ASSERT_FALSE(failed);
  EXPECT_THAT(failed.error().message, HasSubstr("CAP_NET_ADMIN"));
  EXPECT_EQ(kernel_.commits, 0);
}

}  // namespace
}  // namespace sluice::kni
