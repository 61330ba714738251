// Who this node is: rules NP-2 (node addresses), T-7 (zone label), SY-10 (ServiceCIDRs), Q-1.
#include "control/compile/node_context.h"

#include <algorithm>

#include "control/compile/detector.h"
#include "control/compile/node_ports.h"

namespace sluice::compile {
namespace {

constexpr const char* kZoneLabel = "topology.kubernetes.io/zone";
/// First source-translation port: all unprivileged ones of an own address, and of the node's own
/// address the part that is reserved from the host's use (design section 5).
constexpr std::uint16_t kFirstPortOwnAddress = 1024;
constexpr std::uint16_t kFirstPortNodeAddress = 40960;
constexpr std::uint16_t kLastPort = 65535;

std::optional<core::IpAddress> first_of(const std::vector<core::IpAddress>& list,
                                        core::Family family) {
  const auto at = std::find_if(list.begin(), list.end(),
                               [&](const core::IpAddress& a) { return a.family() == family; });
  return at == list.end() ? std::nullopt : std::optional(*at);
}

std::optional<core::IpAddress> node_address(const model::Node& node, core::Family family) {
  for (const char* type : {"InternalIP", "ExternalIP"}) {
    for (const model::NodeAddress& a : node.addresses) {
      const auto address = a.type == type ? core::parse_address(a.address) : std::nullopt;
      if (address && address->family() == family) {
        return address;
      }
    }
  }
  return std::nullopt;
}

void sort_unique(auto& list) {
  std::sort(list.begin(), list.end());
  list.erase(std::unique(list.begin(), list.end()), list.end());
}

std::vector<core::IpAddress> of_family(const std::vector<core::IpAddress>& list,
                                       core::Family family) {
  std::vector<core::IpAddress> out;
  std::copy_if(list.begin(), list.end(), std::back_inserter(out),
               [&](const core::IpAddress& a) { return a.family() == family; });
  return out;
}

std::vector<core::IpAddress> local_addresses(const HostState& host, core::Family family) {
  std::vector<core::IpAddress> out;
  for (const HostState::LocalAddress& a : host.addresses) {
    if (a.address.family() == family && !a.address.is_loopback()) {
      out.push_back(a.address);
    }
  }
  sort_unique(out);
  return out;
}

// SY-10: the union of all ServiceCIDRs.
std::vector<core::Cidr> service_cidrs(const model::ClusterState& state, core::Family family) {
  std::vector<core::Cidr> out;
  for (const auto& [name, object] : state.service_cidrs) {
    for (const std::string& text : object.cidrs) {
      const auto cidr = core::parse_cidr(text);
      if (cidr && cidr->family() == family) {
        out.push_back(*cidr);
      }
    }
  }
  sort_unique(out);
  return out;
}

}  // namespace

NodeContext resolve_node(const NodeConfig& config, const model::Node* node, Profile profile) {
  NodeContext c;
  c.node_name = config.node_name;
  c.zone = config.zone;
  c.node_ip4 = first_of(config.node_addresses, core::Family::kIpv4);
  c.node_ip6 = first_of(config.node_addresses, core::Family::kIpv6);
  c.allow_external_ips = config.allow_service_external_ips;
  c.default_scheduler = config.default_scheduler;
  c.profile = profile;
  c.announce = config.announce;
  if (node != nullptr) {
    if (const auto label = node->labels.find(kZoneLabel);
        c.zone.empty() && label != node->labels.end()) {
      c.zone = label->second;
    }
    if (!c.node_ip4) {
      c.node_ip4 = node_address(*node, core::Family::kIpv4);
    }
    if (!c.node_ip6) {
      c.node_ip6 = node_address(*node, core::Family::kIpv6);
    }
  }
  return c;
}

core::NodePart build_node_part(const NodeConfig& config, const NodeContext& context,
                               const model::ClusterState& state, const HostState& host,
                               const ServiceAddresses& addresses, Reporter& report) {
  core::NodePart part;
  const auto node = state.nodes.find(context.node_name);
  const NodePortRanges ranges = node_port_ranges(config, context, report);
  for (const core::Family family : {core::Family::kIpv4, core::Family::kIpv6}) {
    core::NodePart::PerFamily& f = part.of(family);
    f.detector =
        resolve_detector(config, node == state.nodes.end() ? nullptr : &node->second, family);
    f.local_addresses = local_addresses(host, family);
    f.node_ports = node_port_addresses(ranges, family, f.local_addresses);
    f.active_cluster_ips = addresses.cluster_ips.of(family);
    f.service_cidrs = service_cidrs(state, family);
    f.announced = addresses.announced.of(family);
    f.snat_addresses = of_family(config.snat_addresses, family);
    for (const core::Cidr& sources : config.tunnel_sources) {
      if (sources.family() == family) {
        f.tunnel_sources = sources;
      }
    }
    f.node_ip = context.node_ip(family);
  }
  part.snat_first_port = config.snat_first_port.value_or(
      config.snat_addresses.empty() ? kFirstPortNodeAddress : kFirstPortOwnAddress);
  part.snat_last_port = config.snat_last_port.value_or(kLastPort);
  part.mark_bit = 1U << (config.masquerade_bit & 31U);
  part.masquerade_all = config.masquerade_all;
  part.node_name = context.node_name;
  part.zone = context.zone;
  return part;
}

}  // namespace sluice::compile
