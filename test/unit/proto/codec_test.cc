#include "proto/codec.h"

#include <gmock/gmock.h>

#include <random>

namespace sluice::codec {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

/// Makes valid objects of every shape from a seed.
class Generator {
 public:
  explicit Generator(unsigned seed) : random_(seed) {}

  model::Service service() {
    model::Service s;
    s.name = {word(), word()};
    s.labels = words_map();
    s.annotations = words_map();
    s.creation_unix_seconds = maybe(number(0, 2000000000));
    s.type = one_of({"", "ClusterIP", "NodePort", "LoadBalancer", "ExternalName"});
    s.cluster_ip = one_of({"", "None", "10.96.0.1", "fd00::1"});
    s.cluster_ips = some({"10.96.0.1", "fd00::1"});
    s.ip_families = some({"IPv4", "IPv6"});
    for (auto n = number(0, 3); n > 0; --n) {
      s.ports.push_back({"p" + std::to_string(n), one_of({"", "TCP", "UDP", "SCTP"}),
                         number(1, 65535), number(0, 65535), one_of({"", "8080", "http"}),
                         one_of({"", "http"})});
    }
    s.external_ips = some({"192.0.2.1", "2001:db8::1"});
    s.load_balancer_source_ranges = some({"10.0.0.0/8", " 2001:db8::/32 "});
    s.load_balancer_ingress = {{"192.0.2.9", "", maybe(std::string("VIP"))}, {"", "lb", {}}};
    s.external_traffic_policy = one_of({"", "Cluster", "Local"});
    s.internal_traffic_policy = maybe(one_of({"Cluster", "Local"}));
    s.session_affinity = one_of({"", "None", "ClientIP"});
    s.affinity_timeout_seconds = maybe(number(1, 86400));
    s.health_check_node_port = number(0, 65535);
    s.traffic_distribution = one_of({"", "PreferClose"});
    s.scheduler = one_of({"", "rr", "mh", "random"});
    s.forwarding_mode = one_of({"", "nat", "ipip"});
    s.weights = number(0, 1) == 0 ? std::map<std::string, std::int64_t>{}
                                  : std::map<std::string, std::int64_t>{{"10.0.0.1:80", 0}};
    s.maglev_table_size = maybe(std::int64_t{65521});
    if (s.scheduler == "mh" && number(0, 1) == 0) {
      s.scheduler_flags = {"mh-port"};
    }
    return s;
  }

  model::EndpointSlice slice() {
    model::EndpointSlice s;
    s.name = {word(), word()};
    s.labels = words_map();
    s.annotations = words_map();
    s.address_type = "IPv4";
    s.ports = {{maybe(one_of({"", "http"})), one_of({"", "UDP"}), maybe(number(0, 65535))}};
    for (auto n = number(0, 4); n > 0; --n) {
      s.endpoints.push_back({some({"10.0.0.1", "10.0.0.2"}), maybe(coin()), maybe(coin()),
                             maybe(coin()), maybe(word()), maybe(word()), some({"za", "zb"}),
                             some({"na"}), maybe(number(0, 65535))});
    }
    return s;
  }

  model::Node node() {
    return {word(),
            words_map(),
            {{"InternalIP", "192.0.2.1"}},
            some({"10.1.0.0/24"}),
            {{"k", "v", "NoSchedule"}},
            coin()};
  }

 private:
  std::int64_t number(std::int64_t low, std::int64_t high) {
    return std::uniform_int_distribution<std::int64_t>(low, high)(random_);
  }
  bool coin() { return number(0, 1) == 1; }
  std::string word() { return "w" + std::to_string(number(0, 999)); }
  std::string one_of(std::vector<std::string> words) {
    return words[static_cast<std::size_t>(number(0, static_cast<std::int64_t>(words.size()) - 1))];
  }
  std::vector<std::string> some(const std::vector<std::string>& words) {
    std::vector<std::string> out;
    std::copy_if(words.begin(), words.end(), std::back_inserter(out),
                 [&](auto&) { return coin(); });
    return out;
  }
  template <class T>
  std::optional<T> maybe(T value) {
    return coin() ? std::optional(value) : std::nullopt;
  }
  std::map<std::string, std::string> words_map() {
    return coin() ? std::map<std::string, std::string>{{word(), word()}, {word(), ""}}
                  : std::map<std::string, std::string>{};
  }
  std::mt19937 random_;
};

template <class Object>
void expect_round_trip(const Object& object, unsigned seed) {
  std::vector<FieldError> errors;
  const auto message = encode(object);
  auto received = message;
  ASSERT_TRUE(received.ParseFromString(message.SerializeAsString()));
  const auto again = decode(received, errors);
  ASSERT_TRUE(again.has_value()) << "seed " << seed << ": " << to_string(errors.front());
  EXPECT_EQ(*again, object) << "seed " << seed;
}

TEST(Codec, RoundTripsEveryObject) {
  for (unsigned seed = 0; seed < 500; ++seed) {
    Generator make(seed);
    expect_round_trip(make.service(), seed);
    expect_round_trip(make.slice(), seed);
    expect_round_trip(make.node(), seed);
    expect_round_trip(model::ServiceCidr{"c", {"10.96.0.0/12"}}, seed);
  }
}

v1::Service good_service() {
  v1::Service s;
  s.mutable_metadata()->set_name("web");
  s.mutable_metadata()->set_namespace_("shop");
  s.mutable_spec()->add_ports()->set_port(80);
  return s;
}

std::string first_error(const v1::Service& service) {
  std::vector<FieldError> errors;
  const bool decoded = decode(service, errors).has_value();
  EXPECT_EQ(decoded, std::all_of(errors.begin(), errors.end(),
                                 [](const FieldError& error) { return error.tolerated; }));
  return errors.empty() ? "" : to_string(errors.front());
}

TEST(Codec, TakesASmallService) {
  EXPECT_EQ(first_error(good_service()), "");
}

TEST(Codec, NamesTheFieldPathOfABadPort) {
  auto service = good_service();
  service.mutable_spec()->add_ports()->set_port(70000);
  service.mutable_spec()->mutable_ports(1)->set_name("x");
  EXPECT_EQ(first_error(service),
            "service shop/web: spec.ports[1].port: 70000 is not in 1 to 65535");
}

TEST(Codec, NamesTheFieldPathOfABadAddress) {
  auto service = good_service();
  service.mutable_spec()->add_external_ips("192.0.2.1");
  service.mutable_spec()->add_external_ips("192.0.2.300");
  EXPECT_EQ(first_error(service),
            "service shop/web: spec.externalIPs[1]: \"192.0.2.300\" is no IP address");
}

// The rule book skips a garbage external IP and keeps the rest of the Service (S-2).
TEST(Codec, GivesAnObjectWhoseFaultsAreTolerated) {
  auto service = good_service();
  service.mutable_spec()->add_external_ips("nowhere");
  std::vector<FieldError> errors;
  EXPECT_TRUE(decode(service, errors).has_value());
  ASSERT_EQ(errors.size(), 1u);
  EXPECT_TRUE(errors[0].tolerated);
}

TEST(Codec, RefusesUnknownWords) {
  auto service = good_service();
  service.mutable_spec()->set_type("Loadbalancer");
  EXPECT_THAT(first_error(service), HasSubstr("spec.type: \"Loadbalancer\" is not one of"));
  service = good_service();
  service.mutable_spec()->mutable_ports(0)->set_protocol("tcp");
  EXPECT_THAT(first_error(service), HasSubstr("spec.ports[0].protocol"));
}

TEST(Codec, RefusesATargetPortThatIsNeitherNumberNorName) {
  auto service = good_service();
  service.mutable_spec()->mutable_ports(0)->mutable_target_port()->set_bool_value(true);
  EXPECT_THAT(first_error(service), HasSubstr("spec.ports[0].targetPort"));
  service.mutable_spec()->mutable_ports(0)->mutable_target_port()->set_number_value(80.5);
  EXPECT_THAT(first_error(service), HasSubstr("spec.ports[0].targetPort"));
}

TEST(Codec, RefusesAnObjectWithoutName) {
  EXPECT_THAT(first_error(v1::Service()), HasSubstr("metadata.name: is missing"));
}

TEST(Codec, ReportsEveryErrorOfAnObject) {
  auto service = good_service();
  service.mutable_spec()->set_type("x");
  service.mutable_spec()->set_session_affinity("y");
  std::vector<FieldError> errors;
  (void)decode(service, errors);
  EXPECT_EQ(errors.size(), 2u);
}

TEST(Codec, RefusesAnAddressOfTheOtherFamily) {
  v1::EndpointSlice slice;
  slice.mutable_metadata()->set_name("a");
  slice.mutable_metadata()->set_namespace_("b");
  slice.set_address_type("IPv6");
  slice.add_endpoints()->add_addresses("10.0.0.1");
  std::vector<FieldError> errors;
  EXPECT_FALSE(decode(slice, errors).has_value());
  EXPECT_EQ(to_string(errors.front()),
            "endpointslice b/a: endpoints[0].addresses[0]: 10.0.0.1 does "
            "not fit addressType IPv6");
}

TEST(Codec, KeepsAnAbsentSlicePortNameApartFromTheEmptyOne) {
  v1::EndpointSlice slice;
  slice.mutable_metadata()->set_name("a");
  slice.mutable_metadata()->set_namespace_("b");
  slice.set_address_type("IPv4");
  slice.add_ports()->set_port(1);
  slice.add_ports()->set_name("");
  std::vector<FieldError> errors;
  const auto decoded = decode(slice, errors);
  ASSERT_TRUE(decoded.has_value());
  EXPECT_EQ(decoded->ports[0].name, std::nullopt);
  EXPECT_EQ(decoded->ports[1].name, "");
}

}  // namespace
}  // namespace sluice::codec
