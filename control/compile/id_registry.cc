#include "control/compile/id_registry.h"

#include <cstring>

namespace sluice::compile {
namespace {

std::size_t combine(std::size_t seed, std::size_t value) {
  // boost::hash_combine's 64-bit form: a multiply by an odd constant and a shift per part.
  seed ^= value + 0x9e3779b97f4a7c15ULL + (seed << 12) + (seed >> 4);
  return seed * 0xff51afd7ed558ccdULL;
}

}  // namespace

std::size_t IdRegistry::Hash::operator()(const ServicePortKey& key) const {
  const std::hash<std::string> text;
  std::size_t h = combine(text(key.service.ns), text(key.service.name));
  h = combine(h, text(key.port_name));
  return combine(h, static_cast<std::size_t>(key.protocol) << 8 |
                        static_cast<std::size_t>(key.family));
}

std::size_t IdRegistry::Hash::operator()(const EndpointKey& key) const {
  std::uint64_t words[2];
  std::memcpy(words, key.address.data(), sizeof words);
  std::size_t h = combine(words[0], words[1]);
  return combine(h, std::size_t{static_cast<std::uint32_t>(key.slot)} << 16 | key.port);
}

std::optional<core::ServiceSlot> IdRegistry::acquire_slot(const ServicePortKey& key) {
  if (const auto at = slot_of_.find(key); at != slot_of_.end()) {
    retired_slots_.erase(static_cast<std::uint32_t>(at->second));
    return at->second;
  }
  core::ServiceSlot slot{};
  if (!free_slots_.empty()) {
    slot = free_slots_.back();
    free_slots_.pop_back();
  } else if (slots_.size() < limits_.service_ports) {
    slot = static_cast<core::ServiceSlot>(slots_.size());
    slots_.emplace_back();
  } else {
    return std::nullopt;
  }
  slots_[static_cast<std::uint32_t>(slot)] = {key, 0, true};
  slot_of_.emplace(key, slot);
  return slot;
}

std::optional<core::EndpointId> IdRegistry::acquire_endpoint(core::ServiceSlot slot,
                                                             const core::IpAddress& address,
                                                             std::uint16_t port) {
  const EndpointKey key{slot, address, port};
  if (const auto at = endpoint_of_.find(key); at != endpoint_of_.end()) {
    if (!retired_endpoints_.empty()) {
      retired_endpoints_.erase(static_cast<std::uint32_t>(at->second));
    }
    return at->second;
  }
  core::EndpointId id{};
  if (!free_endpoints_.empty()) {
    id = free_endpoints_.back();
    free_endpoints_.pop_back();
  } else if (ids_.size() < limits_.endpoints) {
    id = static_cast<core::EndpointId>(ids_.size());
    ids_.emplace_back();
  } else {
    return std::nullopt;
  }
  ids_[static_cast<std::uint32_t>(id)] = {key, true};
  endpoint_of_.emplace(key, id);
  ++slots_[static_cast<std::uint32_t>(slot)].endpoints;
  return id;
}

void IdRegistry::retire_slot(core::ServiceSlot slot, std::uint64_t generation) {
  const auto i = static_cast<std::uint32_t>(slot);
  if (i < slots_.size() && slots_[i].used) {
    retired_slots_[i] = generation;
  }
}

void IdRegistry::retire_endpoint(core::EndpointId id, std::uint64_t generation) {
  const auto i = static_cast<std::uint32_t>(id);
  if (i < ids_.size() && ids_[i].used) {
    retired_endpoints_[i] = generation;
  }
}

std::size_t IdRegistry::release_unused(std::uint64_t oldest_generation,
                                       const std::function<bool(core::EndpointId)>& in_use) {
  std::size_t freed = 0;
  for (auto at = retired_endpoints_.begin(); at != retired_endpoints_.end();) {
    const auto id = static_cast<core::EndpointId>(at->first);
    if (at->second > oldest_generation || in_use(id)) {
      ++at;
      continue;
    }
    Id& record = ids_[at->first];
    --slots_[static_cast<std::uint32_t>(record.key.slot)].endpoints;
    endpoint_of_.erase(record.key);
    record.used = false;
    free_endpoints_.push_back(id);
    at = retired_endpoints_.erase(at);
    ++freed;
  }
  for (auto at = retired_slots_.begin(); at != retired_slots_.end();) {
    Slot& record = slots_[at->first];
    if (at->second > oldest_generation || record.endpoints != 0) {
      ++at;
      continue;
    }
    slot_of_.erase(record.key);
    record = {};
    free_slots_.push_back(static_cast<core::ServiceSlot>(at->first));
    at = retired_slots_.erase(at);
    ++freed;
  }
  releases_ += freed;
  return freed;
}

}  // namespace sluice::compile
