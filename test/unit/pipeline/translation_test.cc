#include "dataplane/pipeline/translation.h"

#include <gtest/gtest.h>

#include "test/support/conn_fixture.h"
#include "test/support/map_index.h"

namespace sluice::pipeline {
namespace {

template <class F>
class TranslationTest : public testing::Test {
 protected:
  using Index = test::MapIndex<typename F::Key>;
  using Under = test::TableUnderTest<F, Index>;

  TranslationTest() : table_(Index{}, {.capacity = 100, .hash_seed = 1}) {}
  const auto& entry_of(const core::NewConn<F>& flow) {
    return table_.table().entry(table_.created(flow));
  }

  Under table_;
};
using Families = testing::Types<core::Ipv4, core::Ipv6>;
TYPED_TEST_SUITE(TranslationTest, Families);

/// @param to  the key that a packet of the translated direction has afterwards
template <class F>
void expect_translation(const core::Translation<F>& t, const typename F::Key& to) {
  EXPECT_EQ(t.src, to.src);
  EXPECT_EQ(t.dst, to.dst);
  EXPECT_EQ(t.sport, to.sport);
  EXPECT_EQ(t.dport, to.dport);
}

TYPED_TEST(TranslationTest, IsTheSameWithAndWithoutThePacket) {
  using F = TypeParam;
  for (auto flow : {test::nat_flow<F>(1), test::fullnat_flow<F>(2, 5000)}) {
    flow.l3_delta = 0x1234;
    flow.l4_delta = 0x4321;
    const auto& entry = this->entry_of(flow);
    for (const auto d : {core::Direction::kForward, core::Direction::kReply}) {
      const bool forward = d == core::Direction::kForward;
      const auto& key = forward ? flow.forward : flow.reply;
      const auto after = (forward ? flow.reply : flow.forward).reversed();

      const auto alone = translation_of<F>(entry, d);
      const auto with_packet = translation_of<F>(entry, d, key);

      expect_translation<F>(alone, after);
      expect_translation<F>(with_packet, after);
      EXPECT_EQ(with_packet.l3.raw(), alone.l3.raw());
      EXPECT_EQ(with_packet.l4.raw(), alone.l4.raw());
      EXPECT_EQ(alone.l4.raw(), forward ? 0x4321 : 0xffff ^ 0x4321);
    }
  }
}

TEST(TranslationOfIpv6, TakesNothingFromTheSecondLineWhereTheSourceIsKept) {
  using F = core::Ipv6;
  test::TableUnderTest<F, test::MapIndex<F::Key>> table(test::MapIndex<F::Key>{},
                                                        {.capacity = 100, .hash_seed = 1});
  const auto flow = test::nat_flow<F>(1);
  core::HotEntry6 entry = table.table().entry(table.created(flow));
  entry.client = entry.snat = {};

  expect_translation<F>(translation_of<F>(entry, core::Direction::kForward, flow.forward),
                        flow.reply.reversed());
  expect_translation<F>(translation_of<F>(entry, core::Direction::kReply, flow.reply),
                        flow.forward.reversed());
}

}  // namespace
}  // namespace sluice::pipeline
