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

TYPED_TEST(TranslationTest, MakesOfTheKeyOfOneSideThatOfTheOther) {
  using F = TypeParam;
  for (auto flow : {test::nat_flow<F>(1), test::fullnat_flow<F>(2, 5000)}) {
    flow.l3_delta = 0x1234;
    flow.l4_delta = 0x4321;
    const auto& entry = this->entry_of(flow);

    const auto forward = translation_of<F>(entry, core::Direction::kForward);
    const auto reply = translation_of<F>(entry, core::Direction::kReply);

    expect_translation<F>(forward, flow.reply.reversed());
    expect_translation<F>(reply, flow.forward.reversed());
    EXPECT_EQ(forward.l3.raw(), 0x1234);
    EXPECT_EQ(forward.l4.raw(), 0x4321);
    EXPECT_EQ(reply.l3.raw(), 0xffff ^ 0x1234);
    EXPECT_EQ(reply.l4.raw(), 0xffff ^ 0x4321);
  }
}

}  // namespace
}  // namespace sluice::pipeline
