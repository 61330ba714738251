#include "dataplane/pipeline/affinity_pins.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <span>

#include "dataplane/core/conn/flow_hash.h"

namespace sluice::pipeline {
namespace {

using core::EndpointIndex;

bool holds(std::span<const EndpointIndex> sorted, EndpointIndex i) noexcept {
  return std::binary_search(sorted.begin(), sorted.end(), i);
}

/// Some frontend of the service port may still lead to it.
bool takes_flows(const core::ServicePort& service, EndpointIndex i) noexcept {
  return holds(service.cluster, i) || holds(service.local, i) || holds(service.all_reachable, i);
}

}  // namespace

AffinityPins::AffinityPins(std::uint32_t pins, std::uint32_t slots, std::uint64_t seed)
    : pins_(std::bit_ceil(std::max<std::size_t>(pins, kWays))),
      seed_(seed),
      eras_(slots, 0),
      pages_((slots + core::ForwardingTable::kPageSize - 1) / core::ForwardingTable::kPageSize) {}

std::uint32_t AffinityPins::era(core::ServiceSlot slot) const noexcept {
  const auto i = static_cast<std::size_t>(slot);
  return i < eras_.size() ? eras_[i] : 0;
}

AffinityPins::Pin* AffinityPins::set_of(core::ServiceSlot slot,
                                        const core::IpAddress& client) noexcept {
  std::array<std::uint8_t, 20> key;
  std::memcpy(key.data(), client.data(), 16);
  std::memcpy(key.data() + 16, &slot, 4);
  const std::size_t sets = pins_.size() / kWays;
  return &pins_[(core::flow_hash(key, seed_) & (sets - 1)) * kWays];
}

AffinityPins::Pin* AffinityPins::find_pin(core::ServiceSlot slot,
                                          const core::IpAddress& client) noexcept {
  Pin* set = set_of(slot, client);
  const std::uint32_t now = era(slot);
  for (Pin* pin = set; pin != set + kWays; ++pin) {
    if (pin->count != 0 && pin->slot == slot && pin->client == client) {
      pin->count = pin->era == now ? pin->count : std::uint8_t{0};
      return pin->count != 0 ? pin : nullptr;
    }
  }
  return nullptr;
}

EndpointIndex AffinityPins::find(const core::Decision& decision, const core::IpAddress& client,
                                 std::uint64_t now_ns) noexcept {
  Pin* pin = find_pin(decision.slot, client);
  if (pin == nullptr) {
    return EndpointIndex::kNone;
  }
  const core::ServicePort& service = *decision.service;
  const std::uint64_t patience = decision.affinity_seconds * std::uint64_t{1'000'000'000};
  EndpointIndex first = EndpointIndex::kNone;
  for (std::uint8_t u = 0; u < pin->count;) {
    Use& use = pin->uses[u];
    const core::Endpoint* endpoint = service.find_endpoint(use.address, use.port);
    const auto index = endpoint == nullptr
                           ? EndpointIndex::kNone
                           : static_cast<EndpointIndex>(endpoint - service.endpoints.data());
    if (endpoint == nullptr || !takes_flows(service, index)) {
      use = pin->uses[--pin->count];
      continue;
    }
    const bool counts = stamp(now_ns) - use.last < patience >> kStampShift;
    if (counts && holds(decision.eligible, index) && index < first) {
      first = index;
    }
    ++u;
  }
  return first;
}

bool AffinityPins::record(const core::Decision& decision, const core::IpAddress& client,
                          EndpointIndex chosen, std::uint64_t now_ns) noexcept {
  if ((era(decision.slot) & 1) == 0) {
    return false;
  }
  const Stamp now = stamp(now_ns);
  const auto age = [now](const auto& a, const auto& b) { return now - a.last < now - b.last; };
  Pin* pin = find_pin(decision.slot, client);
  bool evicted = false;
  if (pin == nullptr) {
    Pin* set = set_of(decision.slot, client);
    pin = std::find_if(set, set + kWays, [](const Pin& p) { return p.count == 0; });
    if (pin == set + kWays) {
      pin = std::max_element(set, set + kWays, age);
      evicted = true;
    }
    pin->client = client;
    pin->slot = decision.slot;
    pin->era = era(decision.slot);
    pin->count = 0;
  }
  pin->last = now;
  const core::Endpoint& endpoint = decision.service->endpoint(chosen);
  Use* const end = pin->uses.data() + pin->count;
  Use* use = std::find_if(pin->uses.data(), end, [&](const Use& u) {
    return u.port == endpoint.port && u.address == endpoint.address;
  });
  if (use == end) {
    const bool full = pin->count == kUses;
    use = full ? std::max_element(pin->uses.data(), end, age) : end;
    pin->count = static_cast<std::uint8_t>(pin->count + (full ? 0 : 1));
  }
  *use = {endpoint.address, endpoint.port, now};
  return evicted;
}

/// Only pages that are not shared with the table before are read. Comparing them by address is
/// sound while that table is alive.
void AffinityPins::see(const core::ForwardingTable& table) noexcept {
  constexpr std::size_t kPage = core::ForwardingTable::kPageSize;
  for (std::size_t p = 0; p < pages_.size(); ++p) {
    const core::ForwardingTable::Page* page = table.page(p);
    if (page == pages_[p]) {
      continue;
    }
    pages_[p] = page;
    for (std::size_t k = 0; k < kPage && p * kPage + k < eras_.size(); ++k) {
      const core::ServicePort* service = page == nullptr ? nullptr : (*page)[k].get();
      const bool on = service != nullptr && service->affinity_seconds != 0;
      std::uint32_t& era = eras_[p * kPage + k];
      era += on != ((era & 1) != 0) ? 1 : 0;
    }
  }
}

}  // namespace sluice::pipeline
