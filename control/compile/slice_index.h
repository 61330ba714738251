#pragma once

#include <unordered_map>
#include <vector>

#include "control/compile/name_finder.h"
#include "control/compile/name_hash.h"
#include "control/model/model.h"

namespace sluice::compile {

/// Which slices belong to which Service (SL-2, O-8: also to one that does not exist yet).
class SliceIndex {
 public:
  void rebuild(const model::ClusterState& state);
  /// Takes over the present owner of each slice that moved.
  void update(const model::ClusterState& state, const std::vector<model::SliceMove>& moves);
  /// Sorted by slice name.
  [[nodiscard]] std::vector<const model::EndpointSlice*> slices_of(
      SliceFinder& slices, const model::ObjectName& service) const;

 private:
  void put(const model::EndpointSlice& slice);
  void take_out(const model::ObjectName& owner, const model::ObjectName& slice);

  using Names = std::vector<model::ObjectName>;  ///< sorted
  std::unordered_map<model::ObjectName, Names, NameHash> slices_;
};

}  // namespace sluice::compile
