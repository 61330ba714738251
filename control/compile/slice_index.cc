#include "control/compile/slice_index.h"

#include <algorithm>

namespace sluice::compile {

void SliceIndex::put(const model::EndpointSlice& slice) {
  if (auto owner = model::owner_of(slice)) {
    Names& names = slices_.try_emplace(std::move(*owner)).first->second;
    const auto at = std::lower_bound(names.begin(), names.end(), slice.name);
    if (at == names.end() || *at != slice.name) {
      names.insert(at, slice.name);
    }
  }
}

void SliceIndex::take_out(const model::ObjectName& owner, const model::ObjectName& slice) {
  const auto of_owner = slices_.find(owner);
  if (of_owner == slices_.end()) {
    return;
  }
  Names& names = of_owner->second;
  const auto at = std::lower_bound(names.begin(), names.end(), slice);
  if (at != names.end() && *at == slice) {
    names.erase(at);
  }
  if (names.empty()) {
    slices_.erase(of_owner);
  }
}

void SliceIndex::rebuild(const model::ClusterState& state) {
  slices_.clear();
  slices_.reserve(state.services.size());
  for (const auto& [name, slice] : state.slices) {
    put(slice);
  }
}

void SliceIndex::update(const model::ClusterState& state,
                        const std::vector<model::SliceMove>& moves) {
  for (const model::SliceMove& move : moves) {
    if (move.from) {
      take_out(*move.from, move.slice);
    }
  }
  for (const model::SliceMove& move : moves) {
    if (const auto now = state.slices.find(move.slice); now != state.slices.end()) {
      put(now->second);
    }
  }
}

std::vector<const model::EndpointSlice*> SliceIndex::slices_of(
    SliceFinder& slices, const model::ObjectName& service) const {
  std::vector<const model::EndpointSlice*> out;
  const auto at = slices_.find(service);
  if (at == slices_.end()) {
    return out;
  }
  out.reserve(at->second.size());
  for (const model::ObjectName& name : at->second) {
    if (const auto* slice = slices.find(name); slice != nullptr) {
      out.push_back(slice);
    }
  }
  return out;
}

}  // namespace sluice::compile
