// Nothing to send to (section 9): N-1..N-3, N-6.
#include "control/compile/empty.h"

#include "test/unit/control/compile/select_fixture.h"

namespace sluice::compile {
namespace {

using EmptyTest = Selecting;

TEST_F(EmptyTest, NothingAnywhereIsRefused) {  // N-1
  local_policy(true, true);
  const auto& b = select({});
  EXPECT_EQ(core::EmptyVerdict::kReject, b.internal_when_empty);
  EXPECT_EQ(core::EmptyVerdict::kReject, b.external_when_empty);
}

TEST_F(EmptyTest, EndpointsElsewhereAndPolicyLocalIsSilence) {  // N-2
  local_policy(true, true);
  const auto& b = select({{"10.0.0.1", "RS"}});
  EXPECT_EQ(core::EmptyVerdict::kDrop, b.internal_when_empty);
  EXPECT_EQ(core::EmptyVerdict::kDrop, b.external_when_empty);
}

TEST_F(EmptyTest, IpvsNeverDrops) {  // N-6
  node_.profile = Profile::kIpvs;
  local_policy(true, false);
  EXPECT_EQ(core::EmptyVerdict::kReject, select({{"10.0.0.1", "RS"}}).internal_when_empty);
}

}  // namespace
}  // namespace sluice::compile
