// The wire contract: JSON as Kubernetes writes it is JSON of our messages.
#include <google/protobuf/util/json_util.h>
#include <gtest/gtest.h>

#include "sluice/v1/objects.pb.h"

namespace sluice {
namespace {

using google::protobuf::util::JsonParseOptions;
using google::protobuf::util::JsonStringToMessage;
using google::protobuf::util::MessageToJsonString;

template <class Message>
std::string json_name_of(const char* field) {
  return Message::descriptor()->FindFieldByName(field)->json_name();
}

TEST(JsonNames, KeepKubernetesCapitalRuns) {
  EXPECT_EQ(json_name_of<v1::ServiceSpec>("cluster_ip"), "clusterIP");
  EXPECT_EQ(json_name_of<v1::ServiceSpec>("cluster_ips"), "clusterIPs");
  EXPECT_EQ(json_name_of<v1::ServiceSpec>("external_ips"), "externalIPs");
  EXPECT_EQ(json_name_of<v1::ServiceSpec>("ip_families"), "ipFamilies");
  EXPECT_EQ(json_name_of<v1::SessionAffinityConfig>("client_ip"), "clientIP");
  EXPECT_EQ(json_name_of<v1::LoadBalancerIngress>("ip_mode"), "ipMode");
  EXPECT_EQ(json_name_of<v1::NodeSpec>("pod_cidr"), "podCIDR");
  EXPECT_EQ(json_name_of<v1::NodeSpec>("pod_cidrs"), "podCIDRs");
}

// Every field of the messages once, in Kubernetes' own spelling; unknown fields are an error, so a
// wrong name fails the parse, and the print must give the same text back.
template <class Message>
void expect_round_trip(const std::string& json) {
  Message message;
  const auto status = JsonStringToMessage(json, &message, JsonParseOptions{});
  ASSERT_TRUE(status.ok()) << status.ToString();
  std::string printed;
  ASSERT_TRUE(MessageToJsonString(message, &printed).ok());
  EXPECT_EQ(printed, json);
}

TEST(JsonNames, ServiceRoundTripsThroughProtobufJson) {
  expect_round_trip<v1::Service>(
      R"({"metadata":{"name":"a","namespace":"b","labels":{"x":"y"},"annotations":{"k":"v"},)"
      R"("creationTimestamp":"2026-03-04T15:02:09Z","deletionTimestamp":"2026-03-04T15:02:10Z"},)"
      R"("spec":{"ports":[{"name":"p","protocol":"TCP","appProtocol":"http","port":80,)"
      R"("targetPort":"http","nodePort":30080},{"port":81,"targetPort":8081}],)"
      R"("clusterIP":"10.0.0.1","clusterIPs":["10.0.0.1"],"ipFamilies":["IPv4"],)"
      R"("type":"LoadBalancer","externalIPs":["192.0.2.1"],"sessionAffinity":"ClientIP",)"
      R"("sessionAffinityConfig":{"clientIP":{"timeoutSeconds":5}},)"
      R"("loadBalancerSourceRanges":["10.0.0.0/8"],"externalTrafficPolicy":"Local",)"
      R"("internalTrafficPolicy":"Cluster","healthCheckNodePort":31000,)"
      R"("trafficDistribution":"PreferClose"},)"
      R"("status":{"loadBalancer":{"ingress":[{"ip":"192.0.2.2","hostname":"h",)"
      R"("ipMode":"VIP"}]}}})");
}

TEST(JsonNames, EndpointSliceRoundTripsThroughProtobufJson) {
  expect_round_trip<v1::EndpointSlice>(
      R"({"metadata":{"name":"a"},"addressType":"IPv4","endpoints":[{"addresses":["10.0.0.1"],)"
      R"("conditions":{"ready":true,"serving":false,"terminating":false},"nodeName":"n",)"
      R"("zone":"z","hints":{"forZones":[{"name":"z"}],"forNodes":[{"name":"n"}]}}],)"
      R"("ports":[{"name":"","protocol":"TCP","port":80,"appProtocol":"http"}]})");
}

TEST(JsonNames, NodeAndServiceCidrRoundTripThroughProtobufJson) {
  expect_round_trip<v1::NodeObject>(
      R"({"metadata":{"name":"n"},"spec":{"podCIDR":"10.1.0.0/24","podCIDRs":["10.1.0.0/24"],)"
      R"("taints":[{"key":"k","value":"v","effect":"NoSchedule"}]},)"
      R"("status":{"addresses":[{"type":"InternalIP","address":"192.0.2.3"}]}})");
  expect_round_trip<v1::ServiceCIDR>(
      R"({"metadata":{"name":"kubernetes"},"spec":{"cidrs":["10.96.0.0/12"]}})");
}

}  // namespace
}  // namespace sluice
