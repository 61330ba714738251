// Section 4: SL-1..SL-9, O-4, O-8.
#include "control/compile/slices.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/support/small_cluster.h"

namespace sluice::compile {
namespace {

using core::Family;
using core::Protocol;
using test::slice;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

struct Merged {
  MergedPorts ports;
  std::vector<ReportLine> lines;
};

Merged merge(const std::vector<model::EndpointSlice>& slices, Family family = Family::kIpv4) {
  std::vector<const model::EndpointSlice*> pointers;
  for (const auto& s : slices) {
    pointers.push_back(&s);
  }
  NodeContext node;
  node.node_name = "kestrel";
  Merged out;
  out.ports = merge_slices(pointers, family, node, out.lines);
  for (auto& [key, endpoints] : out.ports) {
    for (auto& e : endpoints) {
      e.source = nullptr;  // the slices end with the caller's expression
    }
  }
  return out;
}

std::vector<std::string> identities(const Merged& merged, const std::string& port = "") {
  std::vector<std::string> out;
  if (const auto at = merged.ports.find({port, Protocol::kTcp}); at != merged.ports.end()) {
    for (const auto& e : at->second) {
      out.push_back(e.identity());
    }
  }
  return out;
}

model::EndpointSlice with(model::EndpointSlice s, std::optional<bool> ready,
                          std::optional<bool> terminating) {
  for (auto& e : s.endpoints) {
    e.ready = ready;
    e.terminating = terminating;
  }
  return s;
}

TEST(Slices, OtherFamilyAndFqdnAreIgnored) {  // SL-1
  auto fqdn = slice("cart", {"10.42.1.1"});
  fqdn.address_type = "FQDN";
  EXPECT_THAT(identities(merge({fqdn, slice("cart", {"fd42::1"}, "b")})), IsEmpty());
}

TEST(Slices, HeadlessLabelHidesASlice) {  // O-4
  auto s = slice("cart", {"10.42.1.1"});
  s.labels["service.kubernetes.io/headless"] = "";
  EXPECT_THAT(identities(merge({s})), IsEmpty());
}

TEST(Slices, PortsWithoutNameOrNumberAreSkipped) {  // SL-5
  auto s = slice("cart", {"10.42.1.1"});
  s.ports = {{std::nullopt, "TCP", 1},
             {"nil", "TCP", std::nullopt},
             {"zero", "TCP", 0},
             {"http", "", 8080}};
  const Merged m = merge({s});
  EXPECT_EQ(1U, m.ports.size());
  EXPECT_THAT(identities(m, "http"), ElementsAre("10.42.1.1:8080"));
}

TEST(Slices, OnlyTheFirstAddressCountsAndIsMadeCanonical) {  // SL-6
  auto s = slice("cart", {"10.42.001.1"});
  s.endpoints[0].addresses.push_back("10.42.9.9");
  s.endpoints.emplace_back();  // no addresses
  EXPECT_THAT(identities(merge({s})), ElementsAre("10.42.1.1:8080"));
}

TEST(Slices, SortedByIdentityText) {  // SL-8
  EXPECT_THAT(identities(merge({slice("cart", {"10.42.1.9", "10.42.1.10", "10.42.1.2"})})),
              ElementsAre("10.42.1.10:8080", "10.42.1.2:8080", "10.42.1.9:8080"));
}

TEST(Slices, DifferentPortNumbersOfOneNameAreUnited) {  // SL-9
  auto other = slice("cart", {"10.42.1.1"}, "b");
  other.ports[0].port = 9090;
  EXPECT_THAT(identities(merge({slice("cart", {"10.42.1.1"}), other})),
              ElementsAre("10.42.1.1:8080", "10.42.1.1:9090"));
}

TEST(Slices, NonTerminatingEntryBeatsTerminatingOneInAnyOrder) {  // SL-7
  const auto dying = with(slice("cart", {"10.42.1.1"}, "a"), false, true);
  const auto alive = with(slice("cart", {"10.42.1.1"}, "b"), true, false);
  for (const auto& order : {std::vector{dying, alive}, std::vector{alive, dying}}) {
    const Merged m = merge(order);
    ASSERT_EQ(1U, identities(m).size());
    EXPECT_FALSE(m.ports.begin()->second[0].conditions.terminating);
  }
}

TEST(Slices, SmallestSliceNameWinsAmongEquals) {  // 24.5
  const auto first = with(slice("cart", {"10.42.1.1"}, "a"), false, false);
  const auto second = with(slice("cart", {"10.42.1.1"}, "b"), true, false);
  EXPECT_FALSE(merge({first, second}).ports.begin()->second[0].conditions.ready);
}

TEST(Slices, LaterEntryWinsWithinOneSlice) {  // SL-7
  auto s = slice("cart", {"10.42.1.1", "10.42.1.1"});
  s.endpoints[0].ready = true;
  s.endpoints[1].ready = false;
  EXPECT_FALSE(merge({s}).ports.begin()->second[0].conditions.ready);
}

TEST(Slices, LocalMeansThisNodesName) {  // M-6
  auto s = slice("cart", {"10.42.1.1", "10.42.1.2", "10.42.1.3"});
  s.endpoints[0].node_name = "kestrel";
  s.endpoints[1].node_name = std::nullopt;
  const Merged m = merge({s});
  const auto& endpoints = m.ports.begin()->second;
  EXPECT_TRUE(endpoints[0].local);
  EXPECT_FALSE(endpoints[1].local);
  EXPECT_FALSE(endpoints[2].local);
}

TEST(Slices, EndpointsOfAServiceThatComesLaterTakeEffect) {  // O-8
  test::SmallCluster cluster;
  cluster.put(slice("cart", {"10.42.1.1"}));
  EXPECT_EQ(0U, cluster.compile().table->service_count());
  cluster.put(test::service("cart", "10.43.0.20"));
  cluster.compile();
  EXPECT_EQ(1U, cluster.block("shop/cart")->cluster.size());
}

// Issue: bad input is reported by name and stops nothing else.
TEST(Slices, FaultsAreReportedWithSliceAndField) {
  auto s = slice("cart", {"10.42.1.1", "nonsense", "fd42::1", "10.42.1.1"});
  s.endpoints.emplace_back();
  s.ports.push_back({"zero", "TCP", 0});
  const Merged m = merge({s});
  EXPECT_THAT(identities(m), ElementsAre("10.42.1.1:8080"));
  std::vector<std::string> lines;
  for (const auto& l : m.lines) {
    lines.push_back(l.object + " " + l.field + " " + l.reason);
  }
  EXPECT_THAT(lines, Contains(HasSubstr("shop/cart-a endpoints[1].addresses[0] 'nonsense'")));
  EXPECT_THAT(lines, Contains(HasSubstr("endpoints[2].addresses[0] 'fd42::1' is not an IPv4")));
  EXPECT_THAT(lines, Contains(HasSubstr("10.42.1.1 is named more than once")));
  EXPECT_THAT(lines, Contains(HasSubstr("endpoints[4].addresses is empty")));
  EXPECT_THAT(lines, Contains(HasSubstr("ports[1].port is absent or 0")));
}

TEST(Slices, ReportOfOneSliceIsBounded) {
  const std::vector<std::string> bad(5000, "nonsense");
  EXPECT_EQ(Reporter::kMaxLines + 1, merge({slice("cart", bad)}).lines.size());
}

}  // namespace
}  // namespace sluice::compile
