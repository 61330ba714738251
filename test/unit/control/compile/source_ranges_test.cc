// Section 10: S-4, F-1..F-7 as far as they are data.
#include "control/compile/source_ranges.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/support/small_cluster.h"

namespace sluice::compile {
namespace {

using core::Family;
using test::ip;
using testing::ElementsAre;
using testing::IsEmpty;

std::vector<std::string> allowed(const std::vector<std::string>& ranges,
                                 Family family = Family::kIpv4) {
  model::Service s;
  s.load_balancer_source_ranges = ranges;
  std::vector<std::string> out;
  for (const auto& c :
       allowed_sources(s, family, {ip("203.0.113.1"), ip("203.0.113.2")}, ip("192.0.2.11"))) {
    out.push_back(core::to_string(c));
  }
  return out;
}

TEST(SourceRanges, AreTrimmedFilteredByFamilyAndFreeOfGarbage) {
  EXPECT_THAT(allowed({" 198.51.100.0/24 ", "2001:db8::/32", "rubbish", ""}),
              ElementsAre("198.51.100.0/24"));
}

TEST(SourceRanges, ZeroPrefixMeansNoFilter) {
  EXPECT_THAT(allowed({"198.51.100.0/24", "0.0.0.0/0"}), IsEmpty());
}

TEST(SourceRanges, RangesOfTheOtherFamilyOnlyMeanNoFilter) {  // F-5
  EXPECT_THAT(allowed({"2001:db8::/32"}), IsEmpty());
}

TEST(SourceRanges, VipsAreAllowedWhenTheNodeIs) {  // F-2, F-7
  EXPECT_THAT(allowed({"192.0.2.0/24"}),
              ElementsAre("192.0.2.0/24", "203.0.113.1/32", "203.0.113.2/32"));
}

TEST(SourceRanges, GarbageIsAWarningAndNoFault) {
  model::Service s;
  s.load_balancer_source_ranges = {"rubbish"};
  std::vector<ReportLine> lines;
  {
    Reporter report("service shop/cart", lines);
    check_source_ranges(s, report);
  }
  ASSERT_EQ(1U, lines.size());
  EXPECT_EQ(ReportLine::Kind::kWarning, lines[0].kind);
  EXPECT_EQ("spec.loadBalancerSourceRanges[0]", lines[0].field);
}

}  // namespace
}  // namespace sluice::compile
