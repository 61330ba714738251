#include "control/compile/slice_index.h"

namespace sluice::compile {

void SliceIndex::put(const model::EndpointSlice& slice) {
  if (const auto owner = model::owner_of(slice)) {
    slices_[*owner].insert(slice.name);
    owner_.insert_or_assign(slice.name, *owner);
  }
}

void SliceIndex::rebuild(const model::ClusterState& state) {
  slices_.clear();
  owner_.clear();
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
      const auto set = slices_.find(old->second);
      set->second.erase(name);
      if (set->second.empty()) {
        slices_.erase(set);
      }
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
