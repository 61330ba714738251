#include <algorithm>
#include <initializer_list>
#include <limits>

#include "dataplane/core/net/address.h"
#include "proto/annotations.h"
#include "proto/codec.h"

namespace sluice::codec {
namespace {

constexpr std::int64_t kMaxPort = 65535;
constexpr std::int64_t kMaxAffinitySeconds = 86400;  // Kubernetes API
constexpr std::int64_t kMaxWeight = 65535;

/// Where in an object, such as endpoints[3].addresses[0]; written out only when there is something
/// to say of it: nearly every field of a large snapshot is right. Lives as long as its parent.
class Field {
 public:
  Field(const char* name) : name_(name) {}  // NOLINT: a name is a field
  Field(const Field& parent, const char* name) : parent_(&parent), name_(name) {}
  /// An element of a list.
  Field(const char* name, std::size_t index) : name_(name), index_(index) {}
  Field(const Field& parent, const char* name, std::size_t index)
      : parent_(&parent), name_(name), index_(index) {}

  [[nodiscard]] std::string text() const {
    std::string all = parent_ == nullptr ? name_ : parent_->text() + "." + name_;
    if (index_) {
      all += "[" + std::to_string(*index_) + "]";
    }
    return all;
  }

 private:
  const Field* parent_ = nullptr;
  const char* name_;
  std::optional<std::size_t> index_;
};

/// Collects the errors of one object.
class Checker {
 public:
  Checker(std::string object, std::vector<FieldError>& errors)
      : object_(std::move(object)), errors_(errors), before_(errors.size()) {}

  [[nodiscard]] const std::string& object() const { return object_; }
  [[nodiscard]] std::vector<FieldError>& errors() { return errors_; }
  [[nodiscard]] bool ok() const {
    return std::all_of(errors_.begin() + static_cast<std::ptrdiff_t>(before_), errors_.end(),
                       [](const FieldError& error) { return error.tolerated; });
  }

  void fail(const Field& field, std::string message) {
    errors_.push_back({object_, field.text(), std::move(message)});
  }
  /// Runs checks whose errors are tolerated.
  template <class Check>
  void tolerate(Check check) {
    const auto from = errors_.size();
    check();
    for (auto i = from; i < errors_.size(); ++i) {
      errors_[i].tolerated = true;
    }
  }
  void range(std::int64_t value, std::int64_t low, std::int64_t high, const Field& field) {
    if (value < low || value > high) {
      fail(field, std::to_string(value) + " is not in " + std::to_string(low) + " to " +
                      std::to_string(high));
    }
  }
  void word(const std::string& value, std::initializer_list<std::string_view> known,
            const Field& field) {
    if (value.empty() || std::find(known.begin(), known.end(), value) != known.end()) {
      return;
    }
    std::string list;
    for (const auto word : known) {
      list += (list.empty() ? "" : ", ") + std::string(word);
    }
    fail(field, "\"" + value + "\" is not one of " + list);
  }
  std::optional<core::IpAddress> address(const std::string& value, const Field& field) {
    auto parsed = core::parse_address(value);
    if (!parsed) {
      fail(field, "\"" + value + "\" is no IP address");
    }
    return parsed;
  }
  void cidr(const std::string& value, const Field& field) {
    if (!core::parse_cidr(value)) {
      fail(field, "\"" + value + "\" is no CIDR such as 10.0.0.0/8");
    }
  }
  void metadata(const v1::ObjectMeta& meta, bool namespaced) {
    if (meta.name().empty()) {
      fail("metadata.name", "is missing");
    }
    if (namespaced && meta.namespace_().empty()) {
      fail("metadata.namespace", "is missing");
    }
    if (!namespaced && !meta.namespace_().empty()) {
      fail("metadata.namespace", "objects of this kind live in no namespace");
    }
    if (meta.name().find('/') != std::string::npos) {
      fail("metadata.name", "must not hold a slash");
    }
    if (meta.namespace_().find('/') != std::string::npos) {
      fail("metadata.namespace", "must not hold a slash");
    }
  }

 private:
  std::string object_;
  std::vector<FieldError>& errors_;
  std::size_t before_;
};

template <class Map>
std::map<std::string, std::string> map_of(const Map& from) {
  return {from.begin(), from.end()};
}

template <class Repeated>
std::vector<std::string> list_of(const Repeated& from) {
  return {from.begin(), from.end()};
}

std::string target_port(const google::protobuf::Value& in, const Field& field, Checker& check) {
  switch (in.kind_case()) {
    case google::protobuf::Value::KIND_NOT_SET:
    case google::protobuf::Value::kNullValue:
      return "";
    case google::protobuf::Value::kStringValue:
      return in.string_value();
    case google::protobuf::Value::kNumberValue: {
      const double value = in.number_value();
      if (value >= 0 && value <= static_cast<double>(kMaxPort) &&
          value == static_cast<double>(static_cast<std::int64_t>(value))) {
        return std::to_string(static_cast<std::int64_t>(value));
      }
      break;
    }
    default:
      break;
  }
  check.fail(field, "must be a port number or a port name");
  return "";
}

model::ServicePortSpec decode_port(const v1::ServicePort& in, const Field& at, Checker& check) {
  check.word(in.protocol(), {"TCP", "UDP", "SCTP"}, Field(at, "protocol"));
  check.range(in.port(), 1, kMaxPort, Field(at, "port"));
  check.range(in.node_port(), 0, kMaxPort, Field(at, "nodePort"));
  model::ServicePortSpec out;
  out.name = in.name();
  out.protocol = in.protocol();
  out.port = in.port();
  out.node_port = in.node_port();
  out.target_port = target_port(in.target_port(), Field(at, "targetPort"), check);
  out.app_protocol = in.app_protocol();
  return out;
}

void decode_ports(const v1::ServiceSpec& in, model::Service& out, Checker& check) {
  for (int i = 0; i < in.ports_size(); ++i) {
    const Field at("spec.ports", static_cast<std::size_t>(i));
    auto port = decode_port(in.ports(i), at, check);
    const auto same_name = [&](const auto& other) { return other.name == port.name; };
    if (std::any_of(out.ports.begin(), out.ports.end(), same_name)) {
      check.fail(Field(at, "name"),
                 "\"" + port.name + "\" is used by another port of this Service");
    }
    out.ports.push_back(std::move(port));
  }
}

void check_addresses(const v1::ServiceSpec& in, Checker& check) {
  const auto cluster_ip = [&](const std::string& value, const Field& field) {
    if (!value.empty() && value != "None") {
      check.address(value, field);
    }
  };
  cluster_ip(in.cluster_ip(), "spec.clusterIP");
  for (int i = 0; i < in.cluster_ips_size(); ++i) {
    cluster_ip(in.cluster_ips(i), Field("spec.clusterIPs", static_cast<std::size_t>(i)));
  }
  for (int i = 0; i < in.external_ips_size(); ++i) {
    check.tolerate([&] {
      check.address(in.external_ips(i), Field("spec.externalIPs", static_cast<std::size_t>(i)));
    });
  }
  for (int i = 0; i < in.ip_families_size(); ++i) {
    check.word(in.ip_families(i), {"IPv4", "IPv6"},
               Field("spec.ipFamilies", static_cast<std::size_t>(i)));
  }
  for (int i = 0; i < in.load_balancer_source_ranges_size(); ++i) {
    // Kubernetes itself trims these before it reads them.
    auto range = in.load_balancer_source_ranges(i);
    range.erase(0, range.find_first_not_of(" \t"));
    range.erase(range.find_last_not_of(" \t") + 1);
    check.tolerate([&] {
      check.cidr(range, Field("spec.loadBalancerSourceRanges", static_cast<std::size_t>(i)));
    });
  }
}

void decode_spec(const v1::ServiceSpec& in, model::Service& out, Checker& check) {
  check.word(in.type(), {"ClusterIP", "NodePort", "LoadBalancer", "ExternalName"}, "spec.type");
  check.word(in.session_affinity(), {"None", "ClientIP"}, "spec.sessionAffinity");
  check.word(in.external_traffic_policy(), {"Cluster", "Local"}, "spec.externalTrafficPolicy");
  check.range(in.health_check_node_port(), 0, kMaxPort, "spec.healthCheckNodePort");
  check_addresses(in, check);
  decode_ports(in, out, check);
  out.type = in.type();
  out.cluster_ip = in.cluster_ip();
  out.cluster_ips = list_of(in.cluster_ips());
  out.ip_families = list_of(in.ip_families());
  out.external_ips = list_of(in.external_ips());
  out.load_balancer_source_ranges = list_of(in.load_balancer_source_ranges());
  out.external_traffic_policy = in.external_traffic_policy();
  if (in.has_internal_traffic_policy()) {
    check.word(in.internal_traffic_policy(), {"Cluster", "Local"}, "spec.internalTrafficPolicy");
    out.internal_traffic_policy = in.internal_traffic_policy();
  }
  out.session_affinity = in.session_affinity();
  if (in.session_affinity_config().client_ip().has_timeout_seconds()) {
    const auto seconds = in.session_affinity_config().client_ip().timeout_seconds();
    check.range(seconds, 1, kMaxAffinitySeconds,
                "spec.sessionAffinityConfig.clientIP.timeoutSeconds");
    out.affinity_timeout_seconds = seconds;
  }
  out.health_check_node_port = in.health_check_node_port();
  out.traffic_distribution = in.traffic_distribution();
}

void decode_ingress(const v1::LoadBalancerStatus& in, model::Service& out, Checker& check) {
  for (int i = 0; i < in.ingress_size(); ++i) {
    const auto& from = in.ingress(i);
    const Field at("status.loadBalancer.ingress", static_cast<std::size_t>(i));
    model::LoadBalancerIngress to{from.ip(), from.hostname(), std::nullopt};
    if (!from.ip().empty()) {
      check.tolerate([&] { check.address(from.ip(), Field(at, "ip")); });
    }
    if (from.has_ip_mode()) {
      check.word(from.ip_mode(), {"VIP", "Proxy"}, Field(at, "ipMode"));
      to.ip_mode = from.ip_mode();
    }
    out.load_balancer_ingress.push_back(std::move(to));
  }
}

void decode_options(const v1::ServiceOptions& in, model::Service& out, Checker& check) {
  out.scheduler = in.scheduler();
  out.scheduler_flags.assign(in.scheduler_flags().begin(), in.scheduler_flags().end());
  out.forwarding_mode = in.forwarding_mode();
  for (const auto& [key, weight] : in.weights()) {
    out.weights[key] = weight;
  }
  if (in.has_maglev_table_size()) {
    out.maglev_table_size = in.maglev_table_size();
  }
  read_annotations(out, check.object(), check.errors());
  check_options(out, check.object(), check.errors());
}

void check_endpoint_address(const std::string& text, const std::string& type, const Field& field,
                            Checker& check) {
  if (type != "IPv4" && type != "IPv6") {
    return;  // FQDN
  }
  const auto parsed = check.address(text, field);
  if (parsed && parsed->is_v4() != (type == "IPv4")) {
    check.fail(field, text + " does not fit addressType " + type);
  }
}

model::SliceEndpoint decode_endpoint(const v1::Endpoint& in, const std::string& type,
                                     const Field& at, Checker& check) {
  model::SliceEndpoint out;
  for (int i = 0; i < in.addresses_size(); ++i) {
    check_endpoint_address(in.addresses(i), type,
                           Field(at, "addresses", static_cast<std::size_t>(i)), check);
  }
  out.addresses = list_of(in.addresses());
  const auto& conditions = in.conditions();
  if (conditions.has_ready()) {
    out.ready = conditions.ready();
  }
  if (conditions.has_serving()) {
    out.serving = conditions.serving();
  }
  if (conditions.has_terminating()) {
    out.terminating = conditions.terminating();
  }
  if (in.has_node_name()) {
    out.node_name = in.node_name();
  }
  if (in.has_zone()) {
    out.zone = in.zone();
  }
  for (const auto& zone : in.hints().for_zones()) {
    out.for_zones.push_back(zone.name());
  }
  for (const auto& node : in.hints().for_nodes()) {
    out.for_nodes.push_back(node.name());
  }
  if (in.has_weight()) {
    check.range(in.weight(), 0, kMaxWeight, Field(at, "weight"));
    out.weight = in.weight();
  }
  return out;
}

void decode_slice_ports(const v1::EndpointSlice& in, model::EndpointSlice& out, Checker& check) {
  for (int i = 0; i < in.ports_size(); ++i) {
    const auto& from = in.ports(i);
    const Field at("ports", static_cast<std::size_t>(i));
    model::SlicePort to;
    if (from.has_name()) {
      to.name = from.name();
    }
    check.word(from.protocol(), {"TCP", "UDP", "SCTP"}, Field(at, "protocol"));
    to.protocol = from.protocol();
    if (from.has_port()) {
      check.range(from.port(), 0, kMaxPort, Field(at, "port"));
      to.port = from.port();
    }
    out.ports.push_back(std::move(to));
  }
}

}  // namespace

std::string to_string(const FieldError& error) {
  return error.object + ": " + (error.field.empty() ? "" : error.field + ": ") + error.message;
}

std::string object_text(std::string_view kind, const v1::ObjectMeta& meta) {
  const std::string name = meta.name().empty() ? "(no name)" : meta.name();
  const std::string ns = meta.namespace_().empty() ? "" : meta.namespace_() + "/";
  return std::string(kind) + " " + ns + name;
}

std::optional<model::Service> decode(const v1::Service& in, std::vector<FieldError>& errors) {
  Checker check(object_text("service", in.metadata()), errors);
  check.metadata(in.metadata(), true);
  model::Service out;
  out.name = {in.metadata().namespace_(), in.metadata().name()};
  out.labels = map_of(in.metadata().labels());
  out.annotations = map_of(in.metadata().annotations());
  if (in.metadata().has_creation_timestamp()) {
    out.creation_unix_seconds = in.metadata().creation_timestamp().seconds();
  }
  decode_spec(in.spec(), out, check);
  decode_ingress(in.status().load_balancer(), out, check);
  decode_options(in.sluice(), out, check);
  return check.ok() ? std::optional(std::move(out)) : std::nullopt;
}

std::optional<model::EndpointSlice> decode(const v1::EndpointSlice& in,
                                           std::vector<FieldError>& errors) {
  Checker check(object_text("endpointslice", in.metadata()), errors);
  check.metadata(in.metadata(), true);
  model::EndpointSlice out;
  out.name = {in.metadata().namespace_(), in.metadata().name()};
  out.labels = map_of(in.metadata().labels());
  out.annotations = map_of(in.metadata().annotations());
  refuse_annotations(out.annotations, check.object(), errors);
  if (in.address_type().empty()) {
    check.fail("addressType", "is missing; expected IPv4, IPv6 or FQDN");
  }
  check.word(in.address_type(), {"IPv4", "IPv6", "FQDN"}, "addressType");
  out.address_type = in.address_type();
  decode_slice_ports(in, out, check);
  out.endpoints.reserve(static_cast<std::size_t>(in.endpoints_size()));
  for (int i = 0; i < in.endpoints_size(); ++i) {
    out.endpoints.push_back(decode_endpoint(in.endpoints(i), in.address_type(),
                                            Field("endpoints", static_cast<std::size_t>(i)),
                                            check));
  }
  return check.ok() ? std::optional(std::move(out)) : std::nullopt;
}

std::optional<model::Node> decode(const v1::NodeObject& in, std::vector<FieldError>& errors) {
  Checker check(object_text("node", in.metadata()), errors);
  check.metadata(in.metadata(), false);
  refuse_annotations(map_of(in.metadata().annotations()), check.object(), errors);
  model::Node out;
  out.name = in.metadata().name();
  out.labels = map_of(in.metadata().labels());
  out.deleting = in.metadata().has_deletion_timestamp();
  out.pod_cidrs = list_of(in.spec().pod_cidrs());
  if (out.pod_cidrs.empty() && !in.spec().pod_cidr().empty()) {
    out.pod_cidrs.push_back(in.spec().pod_cidr());
  }
  for (std::size_t i = 0; i < out.pod_cidrs.size(); ++i) {
    check.cidr(out.pod_cidrs[i], Field("spec.podCIDRs", i));
  }
  for (const auto& taint : in.spec().taints()) {
    out.taints.push_back({taint.key(), taint.value(), taint.effect()});
  }
  for (const auto& address : in.status().addresses()) {
    out.addresses.push_back({address.type(), address.address()});
  }
  return check.ok() ? std::optional(std::move(out)) : std::nullopt;
}

std::optional<model::ServiceCidr> decode(const v1::ServiceCIDR& in,
                                         std::vector<FieldError>& errors) {
  Checker check(object_text("servicecidr", in.metadata()), errors);
  check.metadata(in.metadata(), false);
  model::ServiceCidr out;
  out.name = in.metadata().name();
  out.cidrs = list_of(in.spec().cidrs());
  for (std::size_t i = 0; i < out.cidrs.size(); ++i) {
    check.cidr(out.cidrs[i], Field("spec.cidrs", i));
  }
  return check.ok() ? std::optional(std::move(out)) : std::nullopt;
}

}  // namespace sluice::codec
