#pragma once

#include <cstddef>
#include <map>
#include <optional>

#include "control/model/model.h"

namespace sluice::model {

/// Which Services differ from what was last applied (SY-3). A Service that was changed and changed
/// back is no difference. Its size is the number of pending Service changes. Thread: one.
class ServiceChangeTracker {
 public:
  /// One Service changed. @param before, after  nullptr: there was or is none.
  /// @return a sync is wanted: some Service, not only this one, differs from what was applied.
  bool update(const ObjectName& name, const Service* before, const Service* after);
  /// Everything seen so far was taken into a sync.
  void taken() { pending_.clear(); }
  [[nodiscard]] std::size_t pending() const { return pending_.size(); }

 private:
  /// The object before the first change that was not taken yet; nullopt: there was none.
  std::map<ObjectName, std::optional<Service>> pending_;
};

}  // namespace sluice::model
