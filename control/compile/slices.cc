// EndpointSlice ingestion: rules SL-1..SL-9, O-4, M-6 (section 4). Which slices belong to a Service
// (SL-2) is model::owner_of(); what counts as a change (SL-3) is model::apply().
#include "control/compile/slices.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <optional>

#include "control/compile/annotations.h"
#include "control/compile/service_ports.h"

namespace sluice::compile {
namespace {

constexpr const char* kHeadlessLabel = "service.kubernetes.io/headless";

/// An entry with what decides between two of one identity.
struct Candidate {
  MergedEndpoint endpoint;
  std::size_t slice = 0;
};

std::optional<core::Family> family_of(const model::EndpointSlice& slice) {
  return slice.address_type == "IPv4"   ? std::optional(core::Family::kIpv4)
         : slice.address_type == "IPv6" ? std::optional(core::Family::kIpv6)
                                        : std::nullopt;
}

struct Address {
  core::IpAddress ip;
  const model::SliceEndpoint* source;
  Conditions conditions;
  bool local;
};

// SL-6: the first address of each endpoint. nullopt: there is none of the family.
std::optional<core::IpAddress> address_of(const model::EndpointSlice& slice, std::size_t i,
                                          core::Family family, Reporter& report) {
  const auto& addresses = slice.endpoints[i].addresses;
  if (addresses.empty()) {
    report.warning(indexed("endpoints", i, ".addresses"), "is empty: this endpoint is skipped");
    return std::nullopt;
  }
  const auto ip = core::parse_address(addresses.front());
  if (!ip) {
    report.invalid(indexed("endpoints", i, ".addresses[0]"),
                   "'" + addresses.front() + "' is not an address");
  } else if (ip->family() != family) {
    report.invalid(indexed("endpoints", i, ".addresses[0]"),
                   "'" + addresses.front() + "' is not an " + slice.address_type + " address");
  } else {
    return ip;
  }
  return std::nullopt;
}

std::vector<Address> addresses_of(const model::EndpointSlice& slice, core::Family family,
                                  const NodeContext& node, Reporter& report) {
  std::vector<Address> out;
  out.reserve(slice.endpoints.size());
  for (std::size_t i = 0; i < slice.endpoints.size(); ++i) {
    if (const auto ip = address_of(slice, i, family, report)) {
      const model::SliceEndpoint& e = slice.endpoints[i];
      const bool local = !node.node_name.empty() && e.node_name == node.node_name;
      out.push_back({*ip, &e, conditions_of(e), local});
    }
  }
  return out;
}

// SL-7: of two entries of one identity a non-terminating one beats a terminating one; among equals
// the smallest slice name wins (24.5), within one slice the later non-terminating one.
bool replaces(const Candidate& newer, const Candidate& stored) {
  if (newer.endpoint.conditions.terminating) {
    return false;
  }
  return stored.endpoint.conditions.terminating || newer.slice == stored.slice;
}

// In the order of the identities (SL-8).
std::vector<MergedEndpoint> fold(const std::vector<Candidate>& all) {
  std::vector<core::EndpointText> texts;
  texts.reserve(all.size());
  for (const Candidate& c : all) {
    texts.push_back(core::text_of(c.endpoint.address, c.endpoint.port));
  }
  const auto compare = [&](std::uint32_t a, std::uint32_t b) {
    return std::memcmp(texts[a].data(), texts[b].data(), sizeof(core::EndpointText));
  };
  // Equal ones stay in the order they came.
  std::vector<std::uint32_t> order(all.size());
  std::iota(order.begin(), order.end(), 0U);
  std::sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
    const int by_identity = compare(a, b);
    return by_identity < 0 || (by_identity == 0 && a < b);
  });
  std::vector<MergedEndpoint> out;
  out.reserve(all.size());
  for (std::size_t i = 0; i < order.size();) {
    const Candidate* best = &all[order[i]];
    std::size_t next = i + 1;
    for (; next < order.size() && compare(order[i], order[next]) == 0; ++next) {
      const Candidate& other = all[order[next]];
      best = replaces(other, *best) ? &other : best;
    }
    out.push_back(best->endpoint);
    i = next;
  }
  return out;
}

void warn_of_duplicates(const std::vector<Address>& addresses, Reporter& report) {
  std::vector<core::IpAddress> seen;
  seen.reserve(addresses.size());
  for (const Address& a : addresses) {
    seen.push_back(a.ip);
  }
  std::sort(seen.begin(), seen.end());
  if (const auto at = std::adjacent_find(seen.begin(), seen.end()); at != seen.end()) {
    report.warning("endpoints", core::to_string(*at) + " is named more than once");
  }
}

void warn_of_emptiness(const model::EndpointSlice& slice, Reporter& report) {
  if (slice.ports.empty()) {
    report.warning("ports", "is empty: the slice contributes nothing (SL-5)");
  } else if (slice.endpoints.empty()) {
    report.warning("endpoints", "is empty");
  }
}

}  // namespace

void check_slice(const model::EndpointSlice& slice, Reporter& report) {
  check_annotations_of_slice(slice, report);
  if (slice.address_type == "FQDN") {
    report.warning("addressType", "FQDN is not supported: the slice is ignored (SL-1)");
  } else if (!family_of(slice)) {
    report.invalid("addressType", "'" + slice.address_type + "' is not IPv4, IPv6 or FQDN");
  }
  for (std::size_t i = 0; i < slice.ports.size(); ++i) {
    const model::SlicePort& p = slice.ports[i];
    if (!parse_protocol(p.protocol)) {
      report.invalid(indexed("ports", i, ".protocol"),
                     "'" + p.protocol + "' is not TCP, UDP or SCTP");
    }
    if (!p.name) {
      report.warning(indexed("ports", i, ".name"), "is null: this port is skipped (SL-5)");
    }
    if (p.port.value_or(0) == 0) {
      report.warning(indexed("ports", i, ".port"),
                     "is absent or 0: an entry for all ports is not supported (SL-5)");
    } else if (!is_port(*p.port)) {
      report.invalid(indexed("ports", i, ".port"), std::to_string(*p.port) + " is not in 1..65535");
    }
  }
  for (std::size_t i = 0; i < slice.endpoints.size(); ++i) {
    const auto& weight = slice.endpoints[i].weight;
    if (weight && !is_weight(*weight)) {
      report.invalid(indexed("endpoints", i, ".weight"),
                     std::to_string(*weight) + " is not in 0..65535");
    }
  }
}

namespace {

/// What a slice of `family` contributes.
std::vector<Address> read_slice(const model::EndpointSlice& slice, core::Family family,
                                const NodeContext& node, Reporter& report) {
  check_slice(slice, report);
  warn_of_emptiness(slice, report);
  std::vector<Address> addresses = addresses_of(slice, family, node, report);
  warn_of_duplicates(addresses, report);
  return addresses;
}

}  // namespace

std::optional<core::Family> family_taking(const model::EndpointSlice& slice) {
  return slice.labels.contains(kHeadlessLabel) ? std::nullopt : family_of(slice);
}

void check_slice_of(core::Family family, const model::EndpointSlice& slice, Reporter& report) {
  if (family_taking(slice) != family) {
    return;
  }
  check_slice(slice, report);
  for (std::size_t i = 0; i < slice.endpoints.size(); ++i) {
    (void)address_of(slice, i, family, report);
  }
}

MergedPorts merge_slices(const std::vector<const model::EndpointSlice*>& slices,
                         core::Family family, const NodeContext& node,
                         std::vector<ReportLine>& lines) {
  std::map<PortKey, std::vector<Candidate>> all;
  for (std::size_t s = 0; s < slices.size(); ++s) {
    const model::EndpointSlice& slice = *slices[s];
    if (family_taking(slice) != family) {
      continue;
    }
    Reporter report("endpointslice " + slice.name.text(), lines);
    const std::vector<Address> addresses = read_slice(slice, family, node, report);
    for (const model::SlicePort& p : slice.ports) {
      const auto protocol = parse_protocol(p.protocol);
      if (!p.name || !is_port(p.port.value_or(0)) || !protocol) {
        continue;
      }
      const auto port = static_cast<std::uint16_t>(*p.port);
      std::vector<Candidate>& list = all[{*p.name, *protocol}];
      list.reserve(list.size() + addresses.size());
      for (const Address& a : addresses) {
        list.push_back({{a.ip, port, a.conditions, a.local, a.source}, s});
      }
    }
  }
  MergedPorts merged;
  for (auto& [key, list] : all) {
    merged.emplace(key, fold(list));
  }
  return merged;
}

}  // namespace sluice::compile
