#include "control/compile/slice_index.h"

#include <algorithm>

namespace sluice::compile {

void SliceIndex::put(const model::EndpointSlice& slice) {
  if (const auto owner = model::owner_of(slice)) {
    Names& names = slices_[*owner];
    const auto at = std::lower_bound(names.begin(), names.end(), slice.name);
    if (at == names.end() || *at != slice.name) {
      names.insert(at, slice.name);
    }
    owner_.insert_or_assign(slice.name, *owner);
  }
}

void SliceIndex::take_out(const model::ObjectName& owner, const model::ObjectName& slice) {
  const auto of_owner = slices_.find(owner);
  Names& names = of_owner->second;
  names.erase(std::lower_bound(names.begin(), names.end(), slice));
  if (names.empty()) {
    slices_.erase(of_owner);
  }
}

void SliceIndex::rebuild(const model::ClusterState& state) {
  slices_.clear();
  owner_.clear();
  slices_.reserve(state.services.size());
  owner_.reserve(state.slices.size());
  for (const auto& [name, slice] : state.slices) {
    put(slice);
  }
}

void SliceIndex::update(const model::ClusterState& state,
                        const std::vector<model::ObjectName>& slices) {
  for (const model::ObjectName& name : slices) {
    const auto old = owner_.find(name);
    const auto now = state.slices.find(name);
    const auto owner = now == state.slices.end() ? std::nullopt : model::owner_of(now->second);
    if (old != owner_.end() && owner == old->second) {
      continue;
    }
    if (old != owner_.end()) {
      take_out(old->second, name);
      owner_.erase(old);
    }
    if (owner) {
      put(now->second);
    }
  }
}

std::vector<const model::EndpointSlice*> SliceIndex::slices_of(
    const model::ClusterState& state, const model::ObjectName& service) const {
  std::vector<const model::EndpointSlice*> out;
  const auto at = slices_.find(service);
  if (at == slices_.end()) {
    return out;
  }
  out.reserve(at->second.size());
  for (const model::ObjectName& name : at->second) {
    if (const auto slice = state.slices.find(name); slice != state.slices.end()) {
      out.push_back(&slice->second);
    }
  }
  return out;
}

}  // namespace sluice::compile
