// Allocation of cluster IPs and node ports: rules AL-1..AL-6 (section 22).
#include "control/compile/allocation.h"

#include <algorithm>
#include <charconv>
#include <utility>

namespace sluice::compile {
namespace {

constexpr std::uint64_t kSmallRange = 16;       // AL-3, AL-5: up to this size there is no band
constexpr std::uint64_t kAddressDivisor = 16;   // AL-3
constexpr std::uint64_t kAddressBandMax = 256;  // AL-3
constexpr std::uint32_t kPortDivisor = 32;      // AL-5
constexpr std::uint32_t kPortBandMax = 128;     // AL-5
constexpr std::uint64_t kBandMin = 16;          // AL-3, AL-5
constexpr unsigned kShortestIpv6 = 64;          // AL-2

std::uint64_t load_low(const core::IpAddress& address) {
  std::uint64_t low = 0;
  const std::size_t from = address.is_v4() ? 0 : 8;
  for (std::size_t i = from; i < address.size(); ++i) {
    low = low << 8 | address.data()[i];
  }
  return low;
}

core::IpAddress with_low(const core::IpAddress& network, std::uint64_t low) {
  if (network.is_v4()) {
    std::array<std::uint8_t, 4> bytes{};
    for (std::size_t i = 0; i < 4; ++i) {
      bytes[i] = static_cast<std::uint8_t>(low >> (8 * (3 - i)));
    }
    return core::Ipv4Address::load(bytes.data());
  }
  core::Ipv6Address v6 = network.v6();
  for (std::size_t i = 0; i < 8; ++i) {
    v6.bytes[8 + i] = static_cast<std::uint8_t>(low >> (8 * (7 - i)));
  }
  return v6;
}

}  // namespace

core::Result<ClusterIpRange> ClusterIpRange::create(const core::Cidr& cidr) {
  if (cidr.family() == core::Family::kIpv6 && cidr.length() < kShortestIpv6) {
    return tl::unexpected(
        core::Error{core::to_string(cidr) + " is larger than /64, the largest IPv6 range"});
  }
  return ClusterIpRange(cidr);
}

ClusterIpRange::ClusterIpRange(const core::Cidr& cidr) : cidr_(cidr) {
  const bool v4 = cidr.family() == core::Family::kIpv4;
  const unsigned bits = (v4 ? 32 : 128) - cidr.length();
  // The size of a /64 does not fit; one less is the same after clamping.
  const std::uint64_t highest = bits >= 64 ? UINT64_MAX : (std::uint64_t{1} << bits) - 1;
  const std::uint64_t size = highest == UINT64_MAX ? highest : highest + 1;
  last_ = v4 && highest > 0 ? highest - 1 : highest;
  offset_ = size <= kSmallRange ? 0 : std::clamp(size / kAddressDivisor, kBandMin, kAddressBandMax);
}

core::IpAddress ClusterIpRange::at(std::uint64_t host) const {
  // Host bits of the network are zero and prefixes are /64 or longer, so nothing carries.
  return with_low(cidr_.address(), load_low(cidr_.address()) | host);
}

std::optional<std::uint64_t> ClusterIpRange::host_of(const core::IpAddress& address) const {
  if (!cidr_.contains(address)) {
    return std::nullopt;
  }
  return load_low(address) - load_low(cidr_.address());
}

std::optional<AddressBand> ClusterIpRange::static_band() const {
  if (offset_ == 0) {
    return std::nullopt;
  }
  return AddressBand{at(1), at(offset_)};
}

std::optional<AddressBand> ClusterIpRange::dynamic_band() const {
  if (offset_ + 1 > last_) {
    return std::nullopt;
  }
  return AddressBand{at(1 + offset_), at(last_)};
}

bool ClusterIpRange::contains(const core::IpAddress& address) const {
  const auto host = host_of(address);
  return host && *host >= 1 && *host <= last_;
}

std::optional<core::IpAddress> ClusterIpRange::search(std::uint64_t first, std::uint64_t last,
                                                      const std::set<core::IpAddress>& used,
                                                      const RandomBelow& random) const {
  if (first > last) {
    return std::nullopt;
  }
  // first >= 1, so the count of a /64 fits.
  const std::uint64_t start = first + random(last - first + 1);
  for (const auto& [from, to] : {std::pair{start, last}, std::pair{first, start - 1}}) {
    for (std::uint64_t host = from; host <= to && host >= from; ++host) {
      if (!used.contains(at(host))) {
        return at(host);
      }
    }
  }
  return std::nullopt;
}

std::optional<core::IpAddress> ClusterIpRange::find_free(const std::set<core::IpAddress>& used,
                                                         const RandomBelow& random) const {
  if (auto address = search(1 + offset_, last_, used, random)) {
    return address;
  }
  return search(1, offset_, used, random);
}

IpAddressObject ip_address_object(const core::IpAddress& address,
                                  const model::ObjectName& service) {
  return {core::to_string(address),
          {{"ipaddress.kubernetes.io/ip-family", address.is_v4() ? "IPv4" : "IPv6"},
           {"ipaddress.kubernetes.io/managed-by", "ipallocator.k8s.io"}},
          {"", "services", service.ns, service.name}};
}

std::vector<std::string> ClusterIpAllocator::set_cidrs(std::vector<ServiceCidrState> cidrs) {
  std::vector<std::string> refused;
  ranges_.clear();
  std::sort(cidrs.begin(), cidrs.end(),
            [](const auto& a, const auto& b) { return a.object.name < b.object.name; });
  for (const ServiceCidrState& state : cidrs) {
    for (const std::string& text : state.object.cidrs) {
      const auto cidr = core::parse_cidr(text);
      if (!cidr) {
        refused.push_back(state.object.name + ": '" + text + "' is not a CIDR");
        continue;
      }
      auto range = ClusterIpRange::create(*cidr);
      if (!range) {
        refused.push_back(state.object.name + ": " + range.error().message);
        continue;
      }
      ranges_.push_back({state.object.name, state.ready && !state.deleting, *range});
    }
  }
  return refused;
}

core::Result<core::IpAddress> ClusterIpAllocator::allocate(core::Family family,
                                                           const model::ObjectName& service) {
  for (const Range& r : ranges_) {
    if (!r.hands_out || r.range.cidr().family() != family) {
      continue;
    }
    if (const auto address = r.range.find_free(used_, random_)) {
      owners_.emplace(*address, service);
      used_.insert(*address);
      return *address;
    }
  }
  return tl::unexpected(core::Error{"no free cluster IP for " + service.text()});
}

core::Result<void> ClusterIpAllocator::claim(const core::IpAddress& address,
                                             const model::ObjectName& service) {
  if (std::none_of(ranges_.begin(), ranges_.end(),
                   [&](const Range& r) { return r.hands_out && r.range.contains(address); })) {
    return tl::unexpected(
        core::Error{core::to_string(address) + " is in no ServiceCIDR that hands out addresses"});
  }
  const auto [at, added] = owners_.emplace(address, service);
  if (!added) {
    return tl::unexpected(
        core::Error{core::to_string(address) + " belongs to " + at->second.text() + " already"});
  }
  used_.insert(address);
  return {};
}

void ClusterIpAllocator::release(const core::IpAddress& address) {
  owners_.erase(address);
  used_.erase(address);
}

bool ClusterIpAllocator::in_use(const std::string& cidr_name) const {
  return std::any_of(used_.begin(), used_.end(), [&](const core::IpAddress& address) {
    bool here = false;
    for (const Range& r : ranges_) {
      if (r.range.contains(address)) {
        if (r.name != cidr_name && r.hands_out) {
          return false;
        }
        here |= r.name == cidr_name;
      }
    }
    return here;
  });
}

std::vector<IpAddressObject> ClusterIpAllocator::objects() const {
  std::vector<IpAddressObject> out;
  for (const auto& [address, service] : owners_) {
    out.push_back(ip_address_object(address, service));
  }
  return out;
}

std::uint32_t PortRange::offset() const {
  return size() <= kSmallRange ? 0
                               : std::clamp(size() / kPortDivisor,
                                            static_cast<std::uint32_t>(kBandMin), kPortBandMax);
}

std::optional<PortRange> parse_port_range(const std::string& text) {
  PortRange range;
  const char* const end = text.data() + text.size();
  const auto first = std::from_chars(text.data(), end, range.first);
  if (first.ec != std::errc{} || first.ptr == end || *first.ptr != '-') {
    return std::nullopt;
  }
  const auto last = std::from_chars(first.ptr + 1, end, range.last);
  if (last.ec != std::errc{} || last.ptr != end || range.first == 0 || range.first > range.last) {
    return std::nullopt;
  }
  return range;
}

/// First free number of [first, first + count), offsets in the range, from a random start upwards.
std::optional<std::uint16_t> NodePortAllocator::search(std::uint32_t first,
                                                       std::uint32_t count) const {
  if (count == 0) {
    return std::nullopt;
  }
  const auto start = static_cast<std::uint32_t>(random_(count));
  for (std::uint32_t i = 0; i < count; ++i) {
    const auto port = static_cast<std::uint16_t>(range_.first + first + (start + i) % count);
    if (!used_.contains(port)) {
      return port;
    }
  }
  return std::nullopt;
}

core::Result<std::uint16_t> NodePortAllocator::allocate(core::Protocol protocol,
                                                        const model::ObjectName& service) {
  const std::uint32_t band = range_.offset();
  auto port = search(band, range_.size() - band);
  if (!port) {
    port = search(0, band);
  }
  if (!port) {
    return tl::unexpected(core::Error{"no free node port for " + service.text()});
  }
  used_[*port] = {service, {protocol}};
  return *port;
}

core::Result<void> NodePortAllocator::claim(std::uint16_t port, core::Protocol protocol,
                                            const model::ObjectName& service) {
  if (port < range_.first || port > range_.last) {
    return tl::unexpected(core::Error{"node port " + std::to_string(port) + " is outside of " +
                                      std::to_string(range_.first) + "-" +
                                      std::to_string(range_.last)});
  }
  const auto [at, added] = used_.try_emplace(port, Use{service, {}});
  if (at->second.service != service || !at->second.protocols.insert(protocol).second) {
    return tl::unexpected(core::Error{"node port " + std::to_string(port) + " belongs to " +
                                      at->second.service.text() + " already"});
  }
  return {};
}

void NodePortAllocator::release(std::uint16_t port, core::Protocol protocol) {
  const auto at = used_.find(port);
  if (at != used_.end() && at->second.protocols.erase(protocol) > 0 &&
      at->second.protocols.empty()) {
    used_.erase(at);
  }
}

}  // namespace sluice::compile
