#include "kni/conntrack/sysctl_plan.h"

#include <gtest/gtest.h>

namespace sluice::kni {
namespace {

using Writes = std::vector<SysctlWrite>;

ConntrackSettings only_max() {
  ConntrackSettings s;
  s.tcp_established_timeout = s.tcp_close_wait_timeout = std::chrono::seconds(0);
  return s;
}

// CT-7
TEST(ConntrackSysctls, MaximumAndHashSizeAreWrittenOnlyWhenTheyHaveTo) {
  EXPECT_EQ(plan_conntrack_sysctls(only_max(), 8, {65536, 16384}),
            (Writes{{"net/netfilter/nf_conntrack_max", 262144},
                    {"/sys/module/nf_conntrack/parameters/hashsize", 65536}}));
  EXPECT_TRUE(plan_conntrack_sysctls(only_max(), 8, {262144, 65536}).empty());
}

TEST(ConntrackSysctls, HashSizeIsRaisedAlsoWhenTheMaximumIsRight) {
  EXPECT_EQ(plan_conntrack_sysctls(only_max(), 8, {262144, 65535}),
            (Writes{{"/sys/module/nf_conntrack/parameters/hashsize", 65536}}));
}

TEST(ConntrackSysctls, NoMaximumPerCoreLeavesBothAlone) {
  ConntrackSettings s = only_max();
  s.max_per_core = 0;
  EXPECT_TRUE(plan_conntrack_sysctls(s, 8, {1, 1}).empty());
}

TEST(ConntrackSysctls, HugeValuesDoNotOverflow) {
  ConntrackSettings s = only_max();
  s.max_per_core = UINT64_MAX;
  EXPECT_EQ(conntrack_max(s, 64), kConntrackMaxCap);
}

// CT-8, CT-9
TEST(ConntrackSysctls, TimeoutsOfZeroAndLiberalFalseAreNotWritten) {
  ConntrackSettings s;
  s.udp_stream_timeout = std::chrono::seconds(120);
  EXPECT_EQ(plan_conntrack_sysctls(s, 1, {131072, 32768}),
            (Writes{{"net/netfilter/nf_conntrack_tcp_timeout_established", 86400},
                    {"net/netfilter/nf_conntrack_tcp_timeout_close_wait", 3600},
                    {"net/netfilter/nf_conntrack_udp_timeout_stream", 120}}));
  s.tcp_be_liberal = true;
  EXPECT_EQ(plan_conntrack_sysctls(s, 1, {131072, 32768}).front(),
            (SysctlWrite{"net/netfilter/nf_conntrack_tcp_be_liberal", 1}));
}

}  // namespace
}  // namespace sluice::kni
