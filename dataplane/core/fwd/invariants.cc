#include "dataplane/core/fwd/invariants.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

namespace sluice::core {
namespace {

Result<void> broken(const std::string& what) {
  return tl::make_unexpected(Error{what});
}

bool list_is_sound(const ServicePort& block, const std::vector<EndpointIndex>& list) {
  for (std::size_t i = 0; i < list.size(); ++i) {
    const auto at = static_cast<std::uint32_t>(list[i]);
    if (at >= block.endpoints.size() || (i > 0 && list[i - 1] >= list[i]) ||
        block.endpoints[at].weight == 0) {
      return false;
    }
  }
  return true;
}

bool endpoints_are_unique(const ServicePort& block) {
  const auto before = [&](EndpointIndex a, EndpointIndex b) {
    const Endpoint& x = block.endpoint(a);
    const Endpoint& y = block.endpoint(b);
    return std::pair(x.address, x.port) < std::pair(y.address, y.port);
  };
  std::vector<EndpointIndex> own;
  const std::vector<EndpointIndex>* order = &block.by_address;
  if (order->size() != block.endpoints.size()) {
    for (std::size_t i = 0; i < block.endpoints.size(); ++i) {
      own.push_back(static_cast<EndpointIndex>(i));
    }
    std::sort(own.begin(), own.end(), before);
    order = &own;
  }
  // So many that strictly grow are all of them, and no two are equal.
  return std::adjacent_find(order->begin(), order->end(), [&](EndpointIndex a, EndpointIndex b) {
           return !before(a, b);
         }) == order->end();
}

bool of_family(const std::vector<IpAddress>& list, Family family) {
  return std::all_of(list.begin(), list.end(),
                     [&](const IpAddress& a) { return a.family() == family; });
}

bool sorted_unique(const std::vector<IpAddress>& list) {
  return std::adjacent_find(list.begin(), list.end(),
                            [](const auto& a, const auto& b) { return !(a < b); }) == list.end();
}

Result<void> check_families(const ServicePort& b) {
  if (b.cluster_ip.family() != b.family || !of_family(b.external_ips, b.family) ||
      !of_family(b.load_balancer_vips, b.family)) {
    return broken(b.name + ": a frontend address of the other family");
  }
  // A tunnel carries either family over either; nothing else does.
  for (const Endpoint& e : b.endpoints) {
    if (e.port == 0 || (e.address.family() != b.family && b.mode != ForwardingMode::kIpip) ||
        (e.address.family() != b.family) != b.crosses_families()) {
      return broken(b.name + ": endpoint of the other family or with port 0");
    }
  }
  for (const Cidr& c : b.allowed_sources) {
    if (c.family() != b.family) {
      return broken(b.name + ": allowed source of the other family");
    }
  }
  return {};
}

Result<void> check_flags(const ServicePort& b) {
  const bool internal_local = b.internal_policy == TrafficPolicy::kLocal;
  const bool external_local = b.external_policy == TrafficPolicy::kLocal;
  if (b.has_internal != (!b.crosses_families() && b.has_any && (!internal_local || !b.local.empty())) ||
      b.has_external != (b.has_any && (!external_local || !b.local.empty()))) {
    return broken(b.name + ": hasInternal or hasExternal does not follow from the lists (EP-7)");
  }
  if (b.externally_accessible && b.has_any != !b.cluster.empty()) {
    return broken(b.name + ": hasAny without cluster endpoints (EP-10)");
  }
  if (b.has_internal && !internal_local && b.cluster.empty()) {
    return broken(b.name + ": hasInternal without cluster endpoints");
  }
  return {};
}

}  // namespace

std::vector<std::pair<FrontendKey, FrontendKind>> claimed_frontends(const ServicePort& block) {
  std::vector<std::pair<FrontendKey, FrontendKind>> keys;
  keys.reserve(2 + block.external_ips.size() + block.load_balancer_vips.size());
  for_each_claim(block, [&](const FrontendKey& key, FrontendKind kind) {
    keys.emplace_back(key, kind);
  });
  return keys;
}

Result<void> check_block(const ServicePort& b) {
  if (b.name.empty() || b.port == 0) {
    return broken("service port '" + b.name + "' without a name or port");
  }
  if (auto families = check_families(b); !families) {
    return families;
  }
  if (!list_is_sound(b, b.cluster) || !list_is_sound(b, b.local) ||
      !list_is_sound(b, b.all_reachable)) {
    return broken(b.name + ": a candidate list is unsorted, out of range or has weight 0");
  }
  if (!endpoints_are_unique(b)) {
    return broken(b.name + ": two endpoints with one identity (SL-7)");
  }
  if (!std::all_of(b.local.begin(), b.local.end(),
                   [&](EndpointIndex i) { return b.endpoint(i).local; })) {
    return broken(b.name + ": a remote endpoint in the local list (M-6)");
  }
  return check_flags(b);
}

Result<void> check_frontend(const ForwardingTable& table, const FrontendKey& key,
                            const Frontend& frontend) {
  const auto wrong = [&](const std::string& what) {
    return broken("frontend " +
                  (key.node_port ? "node port " + std::to_string(key.port)
                                 : to_string(key.address, key.port)) +
                  what);
  };
  const ServicePort* block = table.service(frontend.slot);
  if (block == nullptr) {
    return wrong(" names a service port that is not there");
  }
  if (block->family != key.address.family() || block->protocol != key.protocol) {
    return wrong(" names a block of another family or protocol");
  }
  bool found = false;
  for_each_claim(*block, [&](const FrontendKey& claimed, FrontendKind kind) {
    found = found || (kind == frontend.kind && claimed == key);
  });
  return found ? Result<void>{} : wrong(" is not claimed by " + block->name);
}

Result<void> check_reachable(const ForwardingTable& table, const ServicePort& block) {
  bool all = true;
  for_each_claim(block, [&](const FrontendKey& key, FrontendKind) {
    all = all && table.find_frontend(key);
  });
  return all ? Result<void>{}
             : broken(block.name + ": a claimed frontend is missing from the index");
}

Result<void> check_node(const NodePart& node) {
  for (const Family family : {Family::kIpv4, Family::kIpv6}) {
    const NodePart::PerFamily& f = node.of(family);
    for (const auto* list :
         {&f.local_addresses, &f.active_cluster_ips, &f.announced, &f.node_ports.addresses}) {
      if (!sorted_unique(*list) || !of_family(*list, family)) {
        return broken("node part: an address list is unsorted or holds the other family");
      }
    }
    for (const Cidr& c : f.service_cidrs) {
      if (c.family() != family) {
        return broken("node part: a ServiceCIDR of the other family");
      }
    }
  }
  if (node.snat_first_port > node.snat_last_port) {
    return broken("node part: the range of source-translation ports is empty");
  }
  return {};
}

Result<void> check_table(const ForwardingTable& table) {
  if (auto node = check_node(table.node()); !node) {
    return node;
  }
  std::size_t services = 0;
  for (std::uint32_t i = 0; i < table.slot_limit(); ++i) {
    const ServicePort* block = table.service(static_cast<ServiceSlot>(i));
    if (block == nullptr) {
      continue;
    }
    ++services;
    if (auto sound = check_block(*block); !sound) {
      return sound;
    }
    if (auto reachable = check_reachable(table, *block); !reachable) {
      return reachable;
    }
  }
  std::size_t frontends = 0;
  Result<void> result;
  table.for_each_frontend([&](const FrontendKey& key, const Frontend& frontend) {
    ++frontends;
    if (result) {
      result = check_frontend(table, key, frontend);
    }
  });
  if (result && (services != table.service_count() || frontends != table.frontend_count())) {
    return broken("the counts of service ports or frontends are wrong");
  }
  return result;
}

}  // namespace sluice::core
