#pragma once

#include <iterator>

#include "control/model/model.h"

namespace sluice::compile {

/// Finds objects by name. Names that are asked for in the order of the map cost a step each, not a
/// search. Thread: one; the map does not change meanwhile.
template <class Map>
class NameFinder {
 public:
  explicit NameFinder(const Map& map) : map_(map), next_(map.end()) {}

  /// @return null: there is none.
  [[nodiscard]] const typename Map::mapped_type* find(const model::ObjectName& name) {
    const auto at = next_ != map_.end() && next_->first == name ? next_ : map_.find(name);
    if (at == map_.end()) {
      return nullptr;
    }
    next_ = std::next(at);
    return &at->second;
  }

 private:
  const Map& map_;
  typename Map::const_iterator next_;  ///< behind what was found last
};

using ServiceFinder = NameFinder<decltype(model::ClusterState::services)>;
using SliceFinder = NameFinder<decltype(model::ClusterState::slices)>;

}  // namespace sluice::compile
