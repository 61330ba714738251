// loadBalancerSourceRanges: rules S-4, F-2, F-5, F-7 (section 10). P-1 applies them.
#include "control/compile/source_ranges.h"

#include <set>
#include <string_view>

namespace sluice::compile {
namespace {

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r\n";
  const auto first = text.find_first_not_of(kSpace);
  if (first == std::string_view::npos) {
    return {};
  }
  return text.substr(first, text.find_last_not_of(kSpace) - first + 1);
}

}  // namespace

std::vector<core::Cidr> allowed_sources(const model::Service& service, core::Family family,
                                        const std::vector<core::IpAddress>& vips,
                                        const std::optional<core::IpAddress>& node_ip) {
  std::vector<core::Cidr> ranges;
  bool contains_node = false;
  for (const std::string& text : service.load_balancer_source_ranges) {
    const auto cidr = core::parse_cidr(trimmed(text));
    if (!cidr || cidr->family() != family) {
      continue;
    }
    if (cidr->length() == 0) {
      return {};  // S-4: a zero prefix means no filter
    }
    contains_node = contains_node || (node_ip && cidr->contains(*node_ip));
    ranges.push_back(*cidr);
  }
  if (contains_node) {  // F-2: the node talks to a VIP that is bound locally
    for (const core::IpAddress& vip : vips) {
      ranges.emplace_back(vip, 128);
    }
  }
  // As the Service has them: rules are written in this order.
  std::vector<core::Cidr> unique;
  std::set<core::Cidr> seen;
  for (const core::Cidr& range : ranges) {
    if (seen.insert(range).second) {
      unique.push_back(range);
    }
  }
  return unique;
}

void check_source_ranges(const model::Service& service, Reporter& report) {
  for (std::size_t i = 0; i < service.load_balancer_source_ranges.size(); ++i) {
    const std::string_view text = trimmed(service.load_balancer_source_ranges[i]);
    if (!text.empty() && !core::parse_cidr(text)) {
      report.warning(indexed("spec.loadBalancerSourceRanges", i),
                     "'" + std::string(text) + "' is not a CIDR: ignored (S-4)");
    }
  }
}

}  // namespace sluice::compile
