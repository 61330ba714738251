// Compute functions of section 22: allocation of addresses and node ports.
#include "control/compile/allocation.h"
#include "test/conformance/compute_functions.h"

namespace sluice::conformance {
namespace {

core::Cidr cidr_of(const YAML::Node& in) {
  const auto text = in["cidr"].as<std::string>();
  const auto cidr = core::parse_cidr(text);
  if (!cidr) {
    throw YAML::Exception(in.Mark(), "'" + text + "' is not a CIDR");
  }
  return *cidr;
}

core::IpAddress address_of(const YAML::Node& in) {
  const auto text = in["ip"].as<std::string>();
  const auto address = core::parse_address(text);
  if (!address) {
    throw YAML::Exception(in.Mark(), "'" + text + "' is not an address");
  }
  return *address;
}

compile::ClusterIpRange range_of(const YAML::Node& in) {
  auto range = compile::ClusterIpRange::create(cidr_of(in));
  if (!range) {
    throw YAML::Exception(in.Mark(), range.error().message);
  }
  return *range;
}

void put_band(YAML::Node& out, const std::string& name,
              const std::optional<compile::AddressBand>& band) {
  out[name + "First"] = band ? YAML::Node(core::to_string(band->first)) : YAML::Node();
  out[name + "Last"] = band ? YAML::Node(core::to_string(band->last)) : YAML::Node();
}

YAML::Node cluster_ip_bands(const YAML::Node& in) {
  const compile::ClusterIpRange range = range_of(in);
  YAML::Node out;
  out["offset"] = range.offset();
  put_band(out, "static", range.static_band());
  put_band(out, "dynamic", range.dynamic_band());
  return out;
}

YAML::Node node_port_bands(const YAML::Node& in) {
  const auto text = in["range"].as<std::string>();
  const auto range = compile::parse_port_range(text);
  if (!range) {
    throw YAML::Exception(in.Mark(), "'" + text + "' is not a port range");
  }
  YAML::Node out;
  out["size"] = range->size();
  out["offset"] = range->offset();
  out["dynamicFirst"] = range->first + range->offset();
  out["dynamicLast"] = range->last;
  return out;
}

YAML::Node cluster_ip_in_range(const YAML::Node& in) {
  YAML::Node out;
  out["inRange"] = range_of(in).contains(address_of(in));
  return out;
}

YAML::Node service_cidr_accepted(const YAML::Node& in) {
  YAML::Node out;
  out["ok"] = compile::ClusterIpRange::create(cidr_of(in)).has_value();
  return out;
}

YAML::Node ip_address_object(const YAML::Node& in) {
  const auto service = in["service"].as<std::string>();
  const std::size_t slash = service.find('/');
  const auto object = compile::ip_address_object(
      address_of(in), {service.substr(0, slash), service.substr(slash + 1)});
  YAML::Node out;
  out["name"] = object.name;
  out["labels"] = object.labels;
  out["parentRef"]["group"] = object.parent.group;
  out["parentRef"]["resource"] = object.parent.resource;
  out["parentRef"]["namespace"] = object.parent.ns;
  out["parentRef"]["name"] = object.parent.name;
  return out;
}

}  // namespace

void add_allocation_functions(ComputeFunctions& functions) {
  functions["clusterIPBands"] = cluster_ip_bands;
  functions["nodePortBands"] = node_port_bands;
  functions["clusterIPInRange"] = cluster_ip_in_range;
  functions["serviceCIDRAccepted"] = service_cidr_accepted;
  functions["ipAddressObject"] = ip_address_object;
}

}  // namespace sluice::conformance
