// Section 12: S-8. The workers' part (A-1..A-7) is run by the cases.
#include "control/compile/affinity.h"

#include <gtest/gtest.h>

namespace sluice::compile {
namespace {

struct Answer {
  std::uint32_t seconds = 0;
  std::vector<ReportLine> lines;
};

Answer ask(const std::string& affinity, std::optional<std::int64_t> timeout) {
  model::Service s;
  s.session_affinity = affinity;
  s.affinity_timeout_seconds = timeout;
  Answer out;
  Reporter report("service shop/cart", out.lines);
  out.seconds = affinity_seconds(s, report);
  return out;
}

TEST(Affinity, NoneMeansZero) {
  EXPECT_EQ(0U, ask("", std::nullopt).seconds);
  EXPECT_EQ(0U, ask("None", 60).seconds);
}

TEST(Affinity, ClientIpTakesTheTimeoutOrThreeHours) {
  EXPECT_EQ(60U, ask("ClientIP", 60).seconds);
  EXPECT_EQ(10800U, ask("ClientIP", std::nullopt).seconds);
  EXPECT_EQ(86400U, ask("ClientIP", 86400).seconds);
}

TEST(Affinity, ValuesOutOfRangeAreFaults) {
  for (const std::int64_t bad : {0, -1, 86401}) {
    const Answer a = ask("ClientIP", bad);
    EXPECT_EQ(10800U, a.seconds);
    ASSERT_EQ(1U, a.lines.size());
    EXPECT_EQ("spec.sessionAffinityConfig.clientIP.timeoutSeconds", a.lines[0].field);
  }
}

TEST(Affinity, UnknownWordIsAFault) {
  const Answer a = ask("ClientIp", 60);
  EXPECT_EQ(0U, a.seconds);
  ASSERT_EQ(1U, a.lines.size());
  EXPECT_EQ("spec.sessionAffinity", a.lines[0].field);
}

}  // namespace
}  // namespace sluice::compile
