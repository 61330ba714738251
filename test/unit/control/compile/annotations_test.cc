// sluice.dev/... annotations and the typed fields (design section 4, issue on schedulers).
#include "control/compile/annotations.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "dataplane/core/fwd/text.h"
#include "test/support/small_cluster.h"

namespace sluice::compile {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class AnnotationsTest : public testing::Test {
 protected:
  std::optional<Extensions> read() {
    lines_.clear();
    std::optional<Extensions> out;
    {
      Reporter report("service shop/cart", lines_);
      out = extensions_of(service_, core::SchedulerKind::kRandom, report);
    }
    fields_.clear();
    for (const auto& l : lines_) {
      fields_.push_back(l.field);
    }
    return out;
  }
  void annotate(const std::string& key, const std::string& value) {
    service_.annotations["sluice.dev/" + key] = value;
  }
  model::Service service_ = test::service("cart", "10.43.0.20");
  std::vector<ReportLine> lines_;
  std::vector<std::string> fields_;
};

TEST_F(AnnotationsTest, NothingGivenMeansDefaults) {
  const auto e = read();
  ASSERT_TRUE(e);
  EXPECT_EQ(core::SchedulerKind::kRandom, e->scheduler);
  EXPECT_EQ(core::ForwardingMode::kByRule, e->mode);
}

TEST_F(AnnotationsTest, KnobsAreRead) {
  annotate("scheduler", "rr");
  annotate("forwarding-mode", "fullnat");
  annotate("maglev-table-size", "65521");
  annotate("weights", "10.42.001.1=3, 10.42.1.2:8080=0,[fd42::1]:80=2");
  const auto e = read();
  ASSERT_TRUE(e);
  EXPECT_EQ(core::SchedulerKind::kRr, e->scheduler);
  EXPECT_EQ(core::ForwardingMode::kFullNat, e->mode);
  EXPECT_EQ(65521U, e->maglev_size);
  EXPECT_THAT(e->weights,
              ElementsAre(testing::Pair("10.42.1.1", 3), testing::Pair("10.42.1.2:8080", 0),
                          testing::Pair("[fd42::1]:80", 2)));
}

TEST_F(AnnotationsTest, TypedFieldsMeanTheSame) {
  service_.scheduler = "rr";
  service_.weights = {{"10.42.1.1", 7}};
  const auto e = read();
  ASSERT_TRUE(e);
  EXPECT_EQ(core::SchedulerKind::kRr, e->scheduler);
  EXPECT_EQ(7, weight_of(*e, test::ip("10.42.1.1"), 8080, std::nullopt));
}

TEST_F(AnnotationsTest, FieldAndAnnotationMayNotContradict) {
  service_.scheduler = "random";
  annotate("scheduler", "rr");
  EXPECT_FALSE(read());
  EXPECT_THAT(fields_, ElementsAre("metadata.annotations[sluice.dev/scheduler]"));
}

TEST_F(AnnotationsTest, MisspeltKeyIsAFault) {
  annotate("shedular", "rr");
  EXPECT_FALSE(read());
  EXPECT_THAT(fields_, ElementsAre("metadata.annotations[sluice.dev/shedular]"));
}

TEST_F(AnnotationsTest, AnnotationsOfOthersAreNotOurs) {
  service_.annotations["example.com/scheduler"] = "x";
  EXPECT_TRUE(read());
  EXPECT_THAT(fields_, IsEmpty());
}

TEST_F(AnnotationsTest, BadValuesAreFaultsWithTheirPath) {
  for (const auto& [key, value] :
       std::vector<std::pair<std::string, std::string>>{{"scheduler", "roundrobin"},
                                                        {"scheduler", ""},
                                                        {"forwarding-mode", "tunnel"},
                                                        {"weights", "10.42.1.1=-1"},
                                                        {"weights", "10.42.1.1=65536"},
                                                        {"weights", "10.42.1.1=2147483647"},
                                                        {"weights", "x=1"},
                                                        {"weights", "10.42.1.1"},
                                                        {"maglev-table-size", "1000"}}) {
    service_.annotations.clear();
    annotate(key, value);
    EXPECT_FALSE(read()) << key << "=" << value;
    EXPECT_THAT(fields_, ElementsAre("metadata.annotations[sluice.dev/" + key + "]")) << value;
  }
}

TEST_F(AnnotationsTest, EverySchedulerIsKnownByItsName) {
  for (const char* name : {"random", "wrandom", "rr", "wrr", "lc", "wlc", "lblc", "lblcr", "sh",
                           "dh", "sed", "nq", "mh"}) {
    annotate("scheduler", name);
    const auto e = read();
    ASSERT_TRUE(e) << name;
    EXPECT_EQ(core::name_of(e->scheduler), name);
  }
}

TEST_F(AnnotationsTest, FlagsAreReadFromFieldAndAnnotation) {
  annotate("scheduler", "mh");
  annotate("scheduler-flags", "mh-port, mh-fallback");
  EXPECT_EQ(read()->scheduler_flags, core::kSchedPort | core::kSchedFallback);
  service_.scheduler_flags = {"mh-fallback", "mh-port"};
  EXPECT_EQ(read()->scheduler_flags, core::kSchedPort | core::kSchedFallback);
  service_.annotations.clear();
  service_.scheduler = "sh";
  service_.scheduler_flags = {"sh-fallback"};
  EXPECT_EQ(read()->scheduler_flags, core::kSchedFallback);
}

TEST_F(AnnotationsTest, FlagOfAnotherSchedulerOrOfNoneIsAFault) {
  for (const auto& [scheduler, flags] : std::vector<std::pair<std::string, std::string>>{
           {"mh", "mh-prot"}, {"mh", "sh-port"}, {"sh", "sh-port,mh-fallback"}, {"rr", "mh-port"},
           {"", "mh-port"}, {"mh", " "}}) {
    service_.annotations.clear();
    if (!scheduler.empty()) {
      annotate("scheduler", scheduler);
    }
    annotate("scheduler-flags", flags);
    EXPECT_FALSE(read()) << scheduler << " " << flags;
    EXPECT_THAT(fields_, ElementsAre("metadata.annotations[sluice.dev/scheduler-flags]")) << flags;
  }
  service_.annotations.clear();
  annotate("scheduler", "mh");
  annotate("scheduler-flags", "mh-port");
  service_.scheduler_flags = {"mh-fallback"};
  EXPECT_FALSE(read());
  service_.annotations.clear();
  service_.scheduler_flags = {"mh-port"};
  EXPECT_FALSE(read());
  EXPECT_THAT(fields_, ElementsAre("spec.schedulerFlags"));
}

TEST_F(AnnotationsTest, TableSizeWithoutATableIsWorthAWarning) {
  annotate("scheduler", "dh");
  annotate("maglev-table-size", "1021");
  EXPECT_TRUE(read());
  EXPECT_THAT(fields_, IsEmpty());
  annotate("scheduler", "rr");
  EXPECT_TRUE(read());
  EXPECT_THAT(fields_, ElementsAre("metadata.annotations[sluice.dev/maglev-table-size]"));
}

TEST_F(AnnotationsTest, EveryModeIsKnownByName) {
  for (const auto& [name, mode] :
       std::vector<std::pair<std::string, core::ForwardingMode>>{
           {"nat", core::ForwardingMode::kNat},
           {"fullnat", core::ForwardingMode::kFullNat},
           {"dr", core::ForwardingMode::kDr},
           {"ipip", core::ForwardingMode::kIpip}}) {
    annotate("forwarding-mode", name);
    ASSERT_TRUE(read()) << name;
    EXPECT_EQ(mode, read()->mode);
  }
}

TEST_F(AnnotationsTest, MoreSpecificWeightWins) {
  Extensions e;
  e.weights = {{"10.42.1.1", 3}, {"10.42.1.1:8080", 5}};
  EXPECT_EQ(5, weight_of(e, test::ip("10.42.1.1"), 8080, 9));
  EXPECT_EQ(3, weight_of(e, test::ip("10.42.1.1"), 9090, 9));
  EXPECT_EQ(9, weight_of(e, test::ip("10.42.1.2"), 9090, 9));
  EXPECT_EQ(1, weight_of(e, test::ip("10.42.1.2"), 9090, std::nullopt));
}

TEST_F(AnnotationsTest, ServiceWithABadOneIsSkippedAndTheOthersStay) {
  test::SmallCluster cluster;
  annotate("shedular", "rr");
  cluster.put(service_);
  cluster.put(test::service("fine", "10.43.0.21"));
  cluster.compile();
  EXPECT_EQ(nullptr, cluster.block("shop/cart"));
  EXPECT_NE(nullptr, cluster.block("shop/fine"));
}

}  // namespace
}  // namespace sluice::compile
