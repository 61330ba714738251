#include "control/compile/id_registry.h"

#include <algorithm>

#include "control/compile/name_hash.h"

namespace sluice::compile {
std::size_t IdRegistry::Hash::operator()(const ServicePortKey& key) const {
  const std::size_t h =
      combine_hashes(NameHash{}(key.service), std::hash<std::string>{}(key.port_name));
  return combine_hashes(
      h, static_cast<std::size_t>(key.protocol) << 8 | static_cast<std::size_t>(key.family));
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
  slots_[static_cast<std::uint32_t>(slot)] = {key, {}, true};
  slot_of_.emplace(key, slot);
  return slot;
}

core::EndpointId IdRegistry::new_endpoint(core::ServiceSlot slot) {
  core::EndpointId id = core::EndpointId::kNone;
  if (!free_endpoints_.empty()) {
    id = free_endpoints_.back();
    free_endpoints_.pop_back();
  } else if (owner_.size() < limits_.endpoints) {
    id = static_cast<core::EndpointId>(owner_.size());
    owner_.emplace_back();
  } else {
    return id;
  }
  owner_[static_cast<std::uint32_t>(id)] = slot;
  ++endpoints_in_use_;
  return id;
}

std::vector<core::EndpointId> IdRegistry::acquire_endpoints(
    core::ServiceSlot slot, const std::vector<EndpointAddress>& wanted) {
  std::vector<core::EndpointId> out(wanted.size(), core::EndpointId::kNone);
  std::vector<Member>& members = slots_[static_cast<std::uint32_t>(slot)].members;
  const auto before = [](const Member& m, const EndpointAddress& e) { return m.endpoint < e; };
  const std::size_t known = members.size();
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    const auto end = members.begin() + static_cast<std::ptrdiff_t>(known);
    const auto at = std::lower_bound(members.begin(), end, wanted[i], before);
    if (at != end && at->endpoint == wanted[i]) {
      out[i] = at->id;
      if (!retired_endpoints_.empty()) {
        retired_endpoints_.erase(static_cast<std::uint32_t>(at->id));
      }
    } else if (out[i] = new_endpoint(slot); out[i] != core::EndpointId::kNone) {
      members.push_back({wanted[i], out[i]});  // sorted in below
    }
  }
  const auto less = [](const Member& a, const Member& b) { return a.endpoint < b.endpoint; };
  const auto middle = members.begin() + static_cast<std::ptrdiff_t>(known);
  std::sort(middle, members.end(), less);
  std::inplace_merge(members.begin(), middle, members.end(), less);
  return out;
}

void IdRegistry::retire_slot(core::ServiceSlot slot, std::uint64_t generation) {
  const auto i = static_cast<std::uint32_t>(slot);
  if (i < slots_.size() && slots_[i].used) {
    retired_slots_[i] = generation;
  }
}

void IdRegistry::retire_endpoint(core::EndpointId id, std::uint64_t generation) {
  const auto i = static_cast<std::uint32_t>(id);
  if (i < owner_.size() && owner_[i] != core::ServiceSlot::kNone) {
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
    Slot& slot = slots_[static_cast<std::uint32_t>(owner_[at->first])];
    std::erase_if(slot.members, [&](const Member& m) { return m.id == id; });
    owner_[at->first] = core::ServiceSlot::kNone;
    --endpoints_in_use_;
    free_endpoints_.push_back(id);
    at = retired_endpoints_.erase(at);
    ++freed;
  }
  for (auto at = retired_slots_.begin(); at != retired_slots_.end();) {
    Slot& record = slots_[at->first];
    if (at->second > oldest_generation || !record.members.empty()) {
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
