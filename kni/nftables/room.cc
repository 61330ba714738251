#include "kni/nftables/room.h"

#include <algorithm>

namespace sluice::kni::nft {
namespace {

constexpr std::size_t kLarge = 1024;  // a set of fewer elements has grown before it matters

}  // namespace

std::uint32_t room_for(std::size_t elements) noexcept {
  return elements < kLarge ? 0 : static_cast<std::uint32_t>(2 * elements);
}

void declare_sizes(Ruleset& ruleset) {
  using Kind = SetSpec::Kind;
  for (auto& [name, spec] : ruleset.sets) {
    const auto elements = ruleset.elements.find(name);
    const bool hashed = spec.kind != Kind::kIntervalSet && spec.kind != Kind::kTimeoutSet;
    if (hashed && elements != ruleset.elements.end()) {
      spec.size = room_for(elements->second.size());
    }
  }
}

Rooms::Rooms(const Ruleset& before) {
  for (const auto& [name, spec] : before.sets) {
    rooms_[name] = {spec.size, 0};
  }
}

std::map<std::string, Rooms::Room> Rooms::after(const Plan& plan) const {
  std::map<std::string, Room> out;
  const auto room = [&](const std::string& set) -> Room& {
    const auto found = rooms_.find(set);
    return out.emplace(set, found == rooms_.end() ? Room() : found->second).first->second;
  };
  for (const auto& [name, spec] : plan.new_sets) {
    out[*name] = {spec->size, 0};
  }
  for (const Plan::ElementChange& change : plan.removed) {
    Room& of = room(*change.set);
    of.used -= std::min(of.used, change.elements.size());
  }
  for (const Plan::ElementChange& change : plan.added) {
    room(*change.set).used += change.elements.size();
  }
  return out;
}

bool Rooms::admit(const Plan& plan) const {
  const auto changed = after(plan);
  return std::all_of(changed.begin(), changed.end(),
                     [](const auto& item) { return fits(item.second.used, item.second.size); });
}

void Rooms::take(const Plan& plan) {
  for (const auto& [set, room] : after(plan)) {
    rooms_[set] = room;
  }
}

}  // namespace sluice::kni::nft
