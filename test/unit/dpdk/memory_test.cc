#include "dataplane/dpdk/memory.h"

#include <gtest/gtest.h>

namespace sluice::dpdk {
namespace {

constexpr std::size_t kMib = std::size_t{1} << 20;
const std::vector<MemoryPart> kNeed = {{"packet pool", 40 * kMib}, {"connections", 500 * kMib}};

TEST(ChooseMemory, TakesOrdinaryPagesWhereThereAreNoHugepages) {
  const auto choice = choose_memory(kNeed, 0, HugepageUse::kAuto, {2000 * kMib, 0});

  ASSERT_TRUE(choice);
  EXPECT_FALSE(choice->hugepages);
  EXPECT_EQ(choice->mib, 604u);
}

TEST(ChooseMemory, TakesHugepagesWhenEnoughAreFree) {
  const auto choice = choose_memory(kNeed, 0, HugepageUse::kAuto, {2000 * kMib, 1024 * kMib});

  ASSERT_TRUE(choice);
  EXPECT_TRUE(choice->hugepages);
}

TEST(ChooseMemory, NamesTheNumberWhenTheConfiguredLimitIsTooSmall) {
  const auto choice = choose_memory(kNeed, 256, HugepageUse::kAuto, {2000 * kMib, 0});

  ASSERT_FALSE(choice);
  EXPECT_EQ(choice.error().message,
            "memory: memory.mib is 256, but 604 MiB are needed (packet pool 40, connections 500, "
            "EAL 64)");
}

TEST(ChooseMemory, NamesTheNumberWhenTheHostHasTooLittle) {
  const auto choice = choose_memory(kNeed, 0, HugepageUse::kAuto, {300 * kMib, 0});

  ASSERT_FALSE(choice);
  EXPECT_EQ(choice.error().message,
            "memory: 604 MiB are needed (packet pool 40, connections 500, EAL 64), but only 300 "
            "MiB are available");
}

TEST(ChooseMemory, CountsWhatIsTakenOutsideTheEal) {
  const MemoryPart rings = {"handover rings", 252 * kMib};
  const HostMemory host = {700 * kMib, 0};
  EXPECT_TRUE(choose_memory(kNeed, 0, HugepageUse::kAuto, host));
  EXPECT_FALSE(choose_memory(kNeed, 0, HugepageUse::kAuto, without(host, rings)));
  EXPECT_EQ(without({kMib, 0}, rings).available_bytes, 0u);
  EXPECT_EQ(to_text(rings), "handover rings 252");
}

TEST(ChooseMemory, RefusesWhenHugepagesAreRequiredAndAbsent) {
  EXPECT_FALSE(choose_memory(kNeed, 0, HugepageUse::kOn, {2000 * kMib, 100 * kMib}));
}

TEST(MbufsNeeded, CoversRingsOfEveryQueueAndIsAPowerOfTwoLessOne) {
  PoolNeed need;
  need.workers = 2;
  need.ports = {{2, 1024, 1024, true}, {2, 512, 512, false}};

  const std::uint32_t mbufs = mbufs_needed(need);

  EXPECT_EQ((mbufs & (mbufs + 1)), 0u);
  EXPECT_GT(mbufs, 2u * (1024 + 1024 + 4096) + 2 * 1024);
}

TEST(ReadHostMemory, SeesSome) { EXPECT_GT(read_host_memory().available_bytes, 64 * kMib); }

}  // namespace
}  // namespace sluice::dpdk
