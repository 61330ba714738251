// What a strict request refuses, with its field path; and what stays lenient.
#include "control/compile/validate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/support/small_cluster.h"

namespace sluice::compile {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

template <class Object>
std::vector<std::string> faults(const Object& object) {
  std::vector<std::string> out;
  for (const auto& line : validate(object)) {
    out.push_back(line.field);
  }
  return out;
}

TEST(Validate, GoodObjectsHaveNoFaults) {
  EXPECT_THAT(faults(test::service("cart", "10.43.0.20")), IsEmpty());
  EXPECT_THAT(faults(test::service("cart", "None")), IsEmpty());
  EXPECT_THAT(faults(test::slice("cart", {"10.42.1.1"})), IsEmpty());
  EXPECT_THAT(faults(model::ServiceCidr{"kubernetes", {"10.43.0.0/16"}}), IsEmpty());
  model::Node node;
  node.name = "kestrel";
  node.addresses = {{"Hostname", "kestrel"}, {"InternalIP", "192.0.2.11"}};
  EXPECT_THAT(faults(node), IsEmpty());
}

TEST(Validate, AFaultBehindManyWarningsIsFound) {
  auto slice = test::slice("cart", {"nonsense"});
  model::SliceEndpoint empty = slice.endpoints.front();
  empty.addresses.clear();  // a warning each
  slice.endpoints.insert(slice.endpoints.begin(), 100, empty);
  EXPECT_THAT(faults(slice), ElementsAre("endpoints[100].addresses[0]"));
}

TEST(Validate, FaultsOfAServiceAreNamedByPath) {
  auto s = test::service("cart", "10.43.0.300");
  s.type = "Loadbalancer";
  s.ip_families = {"ipv4"};
  s.external_traffic_policy = "local";
  s.internal_traffic_policy = "Node";
  s.session_affinity = "Cookie";
  s.ports = {{"a", "HTTP", 80, 0, "", ""},
             {"b", "TCP", 65536, 0, "", ""},
             {"c", "TCP", 81, 70000, "", ""},
             {"c", "TCP", 82, 0, "", ""},
             {"d", "TCP", 81, 0, "", ""}};
  EXPECT_THAT(faults(s), testing::UnorderedElementsAre(
                             "spec.type", "spec.ipFamilies[0]", "spec.externalTrafficPolicy",
                             "spec.internalTrafficPolicy", "spec.clusterIP", "spec.clusterIPs[0]",
                             "spec.sessionAffinity", "spec.ports[0].protocol", "spec.ports[1].port",
                             "spec.ports[2].nodePort", "spec.ports[3].name", "spec.ports[4].port"));
}

TEST(Validate, OurOwnAnnotationsAreChecked) {
  auto s = test::service("cart", "10.43.0.20");
  s.annotations["sluice.dev/shedular"] = "rr";
  EXPECT_THAT(faults(s), ElementsAre("metadata.annotations[sluice.dev/shedular]"));
  auto headless = test::service("cart", "None");
  headless.weights = {{"10.42.1.1", 1000000}};
  EXPECT_THAT(faults(headless), ElementsAre("spec.weights[10.42.1.1]"));
}

TEST(Validate, WhatTheRulesTreatLenientlyIsNoFault) {
  auto s = test::service("cart", "10.43.0.20");
  s.external_ips = {"rubbish", " "};
  s.load_balancer_source_ranges = {"rubbish"};
  s.load_balancer_ingress = {{"rubbish", "", std::nullopt}};
  EXPECT_THAT(faults(s), IsEmpty());
  auto fqdn = test::slice("cart", {"example.com"});
  fqdn.address_type = "FQDN";
  EXPECT_THAT(faults(fqdn), IsEmpty());
}

TEST(Validate, FaultsOfASliceAreNamedByPath) {
  auto s = test::slice("cart", {"10.42.1.1", "nonsense", "fd42::1"});
  s.ports.push_back({"x", "ICMP", 80});
  s.ports.push_back({"y", "TCP", 70000});
  s.endpoints[0].weight = -1;
  EXPECT_THAT(faults(s), testing::UnorderedElementsAre(
                             "ports[1].protocol", "ports[2].port", "endpoints[0].weight",
                             "endpoints[1].addresses[0]", "endpoints[2].addresses[0]"));
  s = test::slice("cart", {"10.42.1.1"});
  s.address_type = "ipv4";
  EXPECT_THAT(faults(s), ElementsAre("addressType"));
}

TEST(Validate, NodesAndServiceCidrsAreChecked) {
  model::Node node;
  node.name = "kestrel";
  node.pod_cidrs = {"10.42.1.0"};
  node.addresses = {{"InternalIP", "nowhere"}};
  EXPECT_THAT(faults(node), ElementsAre("spec.podCIDRs[0]", "status.addresses[0].address"));
  EXPECT_THAT(faults(model::ServiceCidr{"", {"10.43.0.0/33"}}),
              ElementsAre("metadata.name", "spec.cidrs[0]"));
}

}  // namespace
}  // namespace sluice::compile
