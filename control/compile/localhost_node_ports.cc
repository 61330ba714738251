// Node ports on loopback in nftables mode: rule NP-12 [1.37] (section 13).
#include "control/compile/localhost_node_ports.h"

#include <algorithm>

namespace sluice::compile {

std::vector<core::Family> localhost_proxy_families(bool gate,
                                                   const std::vector<std::string>& values) {
  std::vector<core::Family> families;
  if (!gate) {
    return families;
  }
  for (const core::Family family : {core::Family::kIpv4, core::Family::kIpv6}) {
    const unsigned loopback_length = family == core::Family::kIpv4 ? 8 : 128;
    const bool wanted = std::any_of(values.begin(), values.end(), [&](const std::string& value) {
      const auto cidr = core::parse_cidr(value);
      return value == "localhost" ||
             (cidr && cidr->family() == family && cidr->address().is_loopback() &&
              cidr->length() >= loopback_length);
    });
    if (wanted) {
      families.push_back(family);
    }
  }
  return families;
}

}  // namespace sluice::compile
