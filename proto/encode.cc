#include <algorithm>

#include "proto/codec.h"

namespace sluice::codec {
namespace {

// Numbers of the model were read from 32-bit fields and checked; they fit.
std::int32_t narrow(std::int64_t value) {
  return static_cast<std::int32_t>(value);
}

template <class Map>
void copy_map(const std::map<std::string, std::string>& from, Map& to) {
  for (const auto& [key, value] : from) {
    to[key] = value;
  }
}

template <class Repeated>
void copy_list(const std::vector<std::string>& from, Repeated& to) {
  to.Assign(from.begin(), from.end());
}

bool all_digits(const std::string& text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

void encode_port(const model::ServicePortSpec& in, v1::ServicePort& out) {
  out.set_name(in.name);
  out.set_protocol(in.protocol);
  if (!in.app_protocol.empty()) {
    out.set_app_protocol(in.app_protocol);
  }
  out.set_port(narrow(in.port));
  out.set_node_port(narrow(in.node_port));
  if (in.target_port.empty()) {
    return;
  }
  if (all_digits(in.target_port)) {  // a named port has a letter
    out.mutable_target_port()->set_number_value(std::stod(in.target_port));
  } else {
    out.mutable_target_port()->set_string_value(in.target_port);
  }
}

void encode_spec(const model::Service& in, v1::ServiceSpec& out) {
  for (const auto& port : in.ports) {
    encode_port(port, *out.add_ports());
  }
  out.set_type(in.type);
  out.set_cluster_ip(in.cluster_ip);
  copy_list(in.cluster_ips, *out.mutable_cluster_ips());
  copy_list(in.ip_families, *out.mutable_ip_families());
  copy_list(in.external_ips, *out.mutable_external_ips());
  copy_list(in.load_balancer_source_ranges, *out.mutable_load_balancer_source_ranges());
  out.set_session_affinity(in.session_affinity);
  if (in.affinity_timeout_seconds) {
    out.mutable_session_affinity_config()->mutable_client_ip()->set_timeout_seconds(
        narrow(*in.affinity_timeout_seconds));
  }
  out.set_external_traffic_policy(in.external_traffic_policy);
  if (in.internal_traffic_policy) {
    out.set_internal_traffic_policy(*in.internal_traffic_policy);
  }
  out.set_health_check_node_port(narrow(in.health_check_node_port));
  out.set_traffic_distribution(in.traffic_distribution);
}

void encode_options(const model::Service& in, v1::Service& out) {
  if (in.scheduler.empty() && in.scheduler_flags.empty() && in.forwarding_mode.empty() &&
      in.weights.empty() && !in.maglev_table_size) {
    return;
  }
  auto& options = *out.mutable_sluice();
  options.set_scheduler(in.scheduler);
  options.mutable_scheduler_flags()->Assign(in.scheduler_flags.begin(), in.scheduler_flags.end());
  options.set_forwarding_mode(in.forwarding_mode);
  for (const auto& [key, weight] : in.weights) {
    (*options.mutable_weights())[key] = narrow(weight);
  }
  if (in.maglev_table_size) {
    options.set_maglev_table_size(narrow(*in.maglev_table_size));
  }
}

void encode_ingress(const model::Service& in, v1::Service& out) {
  for (const auto& from : in.load_balancer_ingress) {
    auto& to = *out.mutable_status()->mutable_load_balancer()->add_ingress();
    to.set_ip(from.ip);
    to.set_hostname(from.hostname);
    if (from.ip_mode) {
      to.set_ip_mode(*from.ip_mode);
    }
  }
}

void encode_conditions(const model::SliceEndpoint& in, v1::Endpoint& out) {
  if (in.ready) {
    out.mutable_conditions()->set_ready(*in.ready);
  }
  if (in.serving) {
    out.mutable_conditions()->set_serving(*in.serving);
  }
  if (in.terminating) {
    out.mutable_conditions()->set_terminating(*in.terminating);
  }
}

void encode_endpoint(const model::SliceEndpoint& in, v1::Endpoint& out) {
  copy_list(in.addresses, *out.mutable_addresses());
  encode_conditions(in, out);
  if (in.node_name) {
    out.set_node_name(*in.node_name);
  }
  if (in.zone) {
    out.set_zone(*in.zone);
  }
  for (const auto& zone : in.for_zones) {
    out.mutable_hints()->add_for_zones()->set_name(zone);
  }
  for (const auto& node : in.for_nodes) {
    out.mutable_hints()->add_for_nodes()->set_name(node);
  }
  if (in.weight) {
    out.set_weight(narrow(*in.weight));
  }
}

}  // namespace

v1::Service encode(const model::Service& in) {
  v1::Service out;
  auto& meta = *out.mutable_metadata();
  meta.set_name(in.name.name);
  meta.set_namespace_(in.name.ns);
  copy_map(in.labels, *meta.mutable_labels());
  copy_map(in.annotations, *meta.mutable_annotations());
  if (in.creation_unix_seconds) {
    meta.mutable_creation_timestamp()->set_seconds(*in.creation_unix_seconds);
  }
  encode_spec(in, *out.mutable_spec());
  encode_ingress(in, out);
  encode_options(in, out);
  return out;
}

v1::EndpointSlice encode(const model::EndpointSlice& in) {
  v1::EndpointSlice out;
  auto& meta = *out.mutable_metadata();
  meta.set_name(in.name.name);
  meta.set_namespace_(in.name.ns);
  copy_map(in.labels, *meta.mutable_labels());
  copy_map(in.annotations, *meta.mutable_annotations());
  out.set_address_type(in.address_type);
  for (const auto& from : in.ports) {
    auto& to = *out.add_ports();
    if (from.name) {
      to.set_name(*from.name);
    }
    to.set_protocol(from.protocol);
    if (from.port) {
      to.set_port(narrow(*from.port));
    }
  }
  for (const auto& endpoint : in.endpoints) {
    encode_endpoint(endpoint, *out.add_endpoints());
  }
  return out;
}

v1::NodeObject encode(const model::Node& in) {
  v1::NodeObject out;
  auto& meta = *out.mutable_metadata();
  meta.set_name(in.name);
  copy_map(in.labels, *meta.mutable_labels());
  if (in.deleting) {
    meta.mutable_deletion_timestamp();  // the model keeps that it is set, not when
  }
  copy_list(in.pod_cidrs, *out.mutable_spec()->mutable_pod_cidrs());
  for (const auto& from : in.taints) {
    auto& to = *out.mutable_spec()->add_taints();
    to.set_key(from.key);
    to.set_value(from.value);
    to.set_effect(from.effect);
  }
  for (const auto& from : in.addresses) {
    auto& to = *out.mutable_status()->add_addresses();
    to.set_type(from.type);
    to.set_address(from.address);
  }
  return out;
}

v1::ServiceCIDR encode(const model::ServiceCidr& in) {
  v1::ServiceCIDR out;
  out.mutable_metadata()->set_name(in.name);
  copy_list(in.cidrs, *out.mutable_spec()->mutable_cidrs());
  return out;
}

}  // namespace sluice::codec
