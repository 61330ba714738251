#include "dataplane/pipeline/owner.h"

#include <algorithm>
#include <cstring>

namespace sluice::pipeline {
namespace {

constexpr std::size_t kDefaultReta = 128;

/// Source: the example key of Microsoft's "RSS hashing functions", which NICs come up with.
constexpr std::array<std::uint8_t, 40> kDefaultKey = {
    0x6d, 0x5a, 0x56, 0xda, 0x25, 0x5b, 0x0e, 0xc2, 0x41, 0x67, 0x25, 0x3d, 0x43, 0xa3,
    0x8f, 0xb0, 0xd0, 0xca, 0x2b, 0xcb, 0xae, 0x7b, 0x30, 0xb4, 0x77, 0xcb, 0x2d, 0xa3,
    0x80, 0x30, 0xf2, 0x0c, 0x6a, 0x42, 0xb7, 0x3b, 0xbe, 0xac, 0x01, 0xfa};

bool contains(const std::vector<core::IpAddress>& list, const core::IpAddress& a) noexcept {
  return std::find(list.begin(), list.end(), a) != list.end();
}

}  // namespace

std::span<const std::uint8_t> default_rss_key() noexcept {
  return kDefaultKey;
}

OwnerMap::OwnerMap(const Config& config)
    : workers_(config.workers == 0 ? 1 : config.workers),
      toeplitz_(config.rss_key.empty() ? default_rss_key() : config.rss_key),
      reta_(config.reta) {
  if (reta_.empty()) {
    for (std::size_t i = 0; i < kDefaultReta; ++i) {
      reta_.push_back(static_cast<std::uint16_t>(i % workers_));
    }
  }
  for (std::uint16_t& worker : reta_) {
    const std::size_t owner = config.twist == OwnerTwist::kLast       ? workers_ - 1
                              : config.twist == OwnerTwist::kInverted ? worker + std::size_t{1}
                                                                      : worker;
    worker = static_cast<std::uint16_t>(owner % workers_);
  }
}

std::size_t OwnerMap::of_fragment(const core::IpAddress& src, const core::IpAddress& dst,
                                  std::uint32_t id, std::uint8_t protocol) const noexcept {
  std::uint64_t h = std::uint64_t{id} << 8 | protocol;
  for (const core::IpAddress* address : {&src, &dst}) {
    std::uint64_t halves[2];
    std::memcpy(halves, address->data(), 16);
    for (const std::uint64_t half : halves) {
      h = (h ^ half) * 0x9e3779b97f4a7c15ULL;
      h ^= h >> 32;
    }
  }
  return h % workers_;
}

bool is_source_address(const WorkerTables& tables, const core::IpAddress& address) noexcept {
  const auto& node = tables.table->node().of(address.family());
  if (!node.snat_addresses.empty()) {
    return contains(node.snat_addresses, address);
  }
  if (node.node_ip == address) {
    return true;
  }
  for (const PortInfo& port : *tables.ports) {
    if (port.present && contains(port.addresses, address)) {
      return true;
    }
  }
  return false;
}

Ownership owner_of(const WorkerTables& tables, const OwnerMap& map, const core::FlowTuple& tuple,
                   bool tcp_syn) noexcept {
  const L4Address dst{tuple.dst, tuple.dport, tuple.protocol};
  const L4Address src{tuple.src, tuple.sport, tuple.protocol};
  // Whether it comes from a backend is asked once, and not at all about a request.
  const std::uint8_t port_owner = tables.source_pool->owners().owner(tuple.dport);
  const bool to_pool =
      port_owner != core::PortOwners::kNoOwner && is_source_address(tables, tuple.dst);
  if (to_pool && tables.book->backends.contains(src)) {
    return {FlowClass::kToSourceAddress, port_owner};
  }
  const core::Be16 sport = core::Be16::from_host(tuple.sport);
  const auto exact = exact_frontend(*tables.table, dst);
  if (exact || is_node_port(*tables.table, dst) ||
      tables.book->departed_frontends.contains(dst)) {
    return {FlowClass::kRequest, map.of_client(tuple.src, sport), exact};
  }
  if (!to_pool && tables.book->backends.contains(src)) {
    return {FlowClass::kReply, map.of_client(tuple.dst, core::Be16::from_host(tuple.dport))};
  }
  if (tcp_syn && tables.book->backends.contains(dst)) {
    return {FlowClass::kDirect, map.of_client(tuple.src, sport)};
  }
  return {};
}

}  // namespace sluice::pipeline
