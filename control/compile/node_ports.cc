// Node-port addresses: rules NP-1..NP-6 (section 13), nftables column by default.
#include "control/compile/node_ports.h"

#include <algorithm>

namespace sluice::compile {

NodePortRanges node_port_ranges(const NodeConfig& config, const NodeContext& context,
                                Reporter& report) {
  std::vector<std::string> entries = config.node_port_addresses;
  if (entries.empty() && context.profile == Profile::kNftables) {
    entries.emplace_back("primary");  // NP-1; other modes leave the list empty: all addresses
  }
  NodePortRanges ranges;
  ranges.loopback4 = context.profile == Profile::kIptables;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    if (entries[i] == "primary") {
      for (const auto& ip : {context.node_ip4, context.node_ip6}) {
        if (ip && !ip->is_loopback()) {
          ranges.cidrs.emplace_back(*ip, 128);  // clamped to 32 for IPv4
        }
      }
    } else if (const auto cidr = core::parse_cidr(entries[i])) {
      ranges.cidrs.push_back(*cidr);
    } else {
      report.invalid(indexed("nodePortAddresses", i),
                     "'" + entries[i] + "' is neither a CIDR nor 'primary'");
    }
  }
  return ranges;
}

core::NodePortAddresses node_port_addresses(const NodePortRanges& ranges, core::Family family,
                                            const std::vector<core::IpAddress>& local) {
  std::vector<core::Cidr> mine;
  std::copy_if(ranges.cidrs.begin(), ranges.cidrs.end(), std::back_inserter(mine),
               [&](const core::Cidr& c) { return c.family() == family; });
  const bool zero =
      std::any_of(mine.begin(), mine.end(), [](const core::Cidr& c) { return c.length() == 0; });
  core::NodePortAddresses out;
  if (mine.empty() || zero) {  // NP-3
    out.match_all = true;
    return out;
  }
  const auto listed = [&](const core::IpAddress& a) {
    return std::any_of(mine.begin(), mine.end(),
                       [&](const core::Cidr& c) { return c.contains(a); });
  };
  std::copy_if(local.begin(), local.end(), std::back_inserter(out.addresses), listed);
  const core::IpAddress loopback = *core::parse_address("127.0.0.1");
  if (ranges.loopback4 && listed(loopback)) {
    out.addresses.insert(std::lower_bound(out.addresses.begin(), out.addresses.end(), loopback),
                         loopback);
  }
  return out;
}

}  // namespace sluice::compile
