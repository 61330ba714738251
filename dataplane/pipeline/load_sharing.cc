#include "dataplane/pipeline/load_sharing.h"

#include <algorithm>
#include <utility>

#include "dataplane/core/sched/pick_plan.h"

namespace sluice::pipeline {
namespace {

std::vector<core::EndpointId> counted_ids(const core::ServicePort* service) {
  std::vector<core::EndpointId> ids;
  if (service != nullptr && core::picks_by_load(service->scheduler)) {
    for (const core::Endpoint& e : service->endpoints) {
      ids.push_back(e.id);
    }
  }
  return ids;
}

}  // namespace

void LoadSharing::see(core::TablePtr table) {
  constexpr std::uint32_t kPage = core::ForwardingTable::kPageSize;
  const std::uint32_t limit =
      std::max(table->slot_limit(), table_ == nullptr ? 0u : table_->slot_limit());
  bool changed = false;
  for (std::uint32_t first = 0; first < limit; first += kPage) {
    const std::size_t page = first / kPage;
    if (table_ != nullptr && table_->page(page) == table->page(page)) {
      continue;
    }
    for (std::uint32_t slot = first; slot < first + kPage; ++slot) {
      std::vector<core::EndpointId> ids =
          counted_ids(table->service(static_cast<core::ServiceSlot>(slot)));
      const auto known = by_slot_.find(slot);
      const bool same = known == by_slot_.end() ? ids.empty() : known->second == ids;
      changed = changed || !same;
      if (!ids.empty()) {
        by_slot_[slot] = std::move(ids);
      } else if (known != by_slot_.end()) {
        by_slot_.erase(known);
      }
    }
  }
  table_ = std::move(table);
  if (changed) {
    ids_.clear();
    for (const auto& [slot, ids] : by_slot_) {
      ids_.insert(ids_.end(), ids.begin(), ids.end());
    }
  }
}

}  // namespace sluice::pipeline
