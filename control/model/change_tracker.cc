// Pending Service changes: rule SY-3 (section 17).
#include "control/model/change_tracker.h"

namespace sluice::model {
namespace {

std::optional<Service> copy_of(const Service* service) {
  return service == nullptr ? std::nullopt : std::optional(*service);
}

}  // namespace

bool ServiceChangeTracker::update(const ObjectName& name, const Service* before,
                                  const Service* after) {
  const auto at = pending_.try_emplace(name, copy_of(before)).first;
  if (at->second == copy_of(after)) {
    pending_.erase(at);
  }
  return !pending_.empty();
}

}  // namespace sluice::model
