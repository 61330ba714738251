// A list as `kubectl get services,endpointslices -A -o yaml` writes it, unchanged.
#include <gmock/gmock.h>
#include <google/protobuf/util/json_util.h>

#include <fstream>

#include "proto/codec.h"
#include "proto/object_reader.h"

namespace sluice::codec {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class KubectlList : public testing::Test {
 protected:
  KubectlList() {
    std::ifstream in(std::string(SLUICE_FIXTURES) + "/kubectl-list.yaml");
    result_ = read_objects(in, {.file = "kubectl-list.yaml"});
  }
  const v1::Service& web() const { return result_.objects.services(1); }
  const v1::EndpointSlice& web_slice() const { return result_.objects.endpoint_slices(1); }
  ReadResult result_;
};

TEST_F(KubectlList, IsReadWithoutErrorOrWarning) {
  EXPECT_TRUE(result_.errors.empty()) << to_string(result_.errors.front());
  EXPECT_TRUE(result_.warnings.empty()) << to_string(result_.warnings.front());
  EXPECT_EQ(result_.objects.services_size(), 3);
  EXPECT_EQ(result_.objects.endpoint_slices_size(), 4);
}

TEST_F(KubectlList, KeepsNamedAndNumberedTargetPorts) {
  EXPECT_EQ(web().spec().ports(0).target_port().string_value(), "http");
  EXPECT_EQ(web().spec().ports(1).target_port().number_value(), 9090);
}

TEST_F(KubectlList, LeavesOutManagedFieldsAndTheRepeatedObject) {
  EXPECT_EQ(web().metadata().annotations().size(), 2u);
  EXPECT_FALSE(
      web().metadata().annotations().contains("kubectl.kubernetes.io/last-applied-configuration"));
  EXPECT_EQ(web().metadata().name(), "web");  // comes behind managedFields
}

TEST_F(KubectlList, ReadsNullTimestampAsAbsent) {
  EXPECT_FALSE(result_.objects.services(2).metadata().has_creation_timestamp());
  EXPECT_EQ(web().metadata().creation_timestamp().seconds(), 1772636529);
}

TEST_F(KubectlList, KeepsBothFamiliesAndIngressModes) {
  EXPECT_THAT(web().spec().cluster_ips(), ElementsAre("10.96.44.7", "fd00:96::2c07"));
  const auto& ingress = web().status().load_balancer().ingress();
  ASSERT_EQ(ingress.size(), 3);
  EXPECT_EQ(ingress[0].ip_mode(), "VIP");
  EXPECT_FALSE(ingress[1].has_ip_mode());
  EXPECT_EQ(ingress[2].ip_mode(), "Proxy");
}

TEST_F(KubectlList, KeepsConditionsAsTriStates) {
  const auto& kubernetes = result_.objects.endpoint_slices(0).endpoints(0).conditions();
  EXPECT_TRUE(kubernetes.ready());
  EXPECT_FALSE(kubernetes.has_serving());
  const auto& draining = web_slice().endpoints(1).conditions();
  EXPECT_TRUE(draining.has_ready());
  EXPECT_FALSE(draining.ready());
  EXPECT_TRUE(draining.terminating());
}

TEST_F(KubectlList, FillsTypedFieldsFromAnnotations) {
  std::vector<FieldError> errors;
  const auto service = decode(web(), errors);
  ASSERT_TRUE(service.has_value());
  EXPECT_EQ(service->scheduler, "wrr");
  EXPECT_EQ(service->weights.at("10.244.1.17"), 3);
}

TEST_F(KubectlList, ReadsTheSameFromJson) {
  std::string json;
  google::protobuf::util::JsonPrintOptions options;
  std::string items;
  for (const auto& service : result_.objects.services()) {
    json.clear();
    ASSERT_TRUE(google::protobuf::util::MessageToJsonString(service, &json, options).ok());
    items += (items.empty() ? "" : ",") + std::string(R"({"apiVersion":"v1","kind":"Service",)") +
             json.substr(1);
  }
  std::istringstream in(R"({"apiVersion":"v1","kind":"List","items":[)" + items + "]}");

  const auto again = read_objects(in, {});

  EXPECT_THAT(again.errors, IsEmpty());
  ASSERT_EQ(again.objects.services_size(), result_.objects.services_size());
  for (int i = 0; i < again.objects.services_size(); ++i) {
    EXPECT_EQ(again.objects.services(i).ShortDebugString(),
              result_.objects.services(i).ShortDebugString());
  }
}

}  // namespace
}  // namespace sluice::codec
