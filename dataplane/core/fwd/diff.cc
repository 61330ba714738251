#include "dataplane/core/fwd/diff.h"

#include <algorithm>
#include <set>

namespace sluice::core {
namespace {

void note_departures(ServiceSlot slot, const ServicePort& before, const ServicePort* after,
                     TableDiff& out) {
  for (const Endpoint& e : before.endpoints) {
    if (after == nullptr || after->find_endpoint(e.address, e.port) == nullptr) {
      out.departed.push_back({slot, e.id, before.protocol, e.address, e.port, after == nullptr});
    }
  }
}

void compare_slot(ServiceSlot slot, const ForwardingTable::BlockPtr& before,
                  const ForwardingTable::BlockPtr& after, TableDiff& out) {
  if (before == after) {
    return;
  }
  if (before == nullptr) {
    out.added.push_back(slot);
    return;
  }
  if (after == nullptr) {
    out.removed.push_back(slot);
  } else if (*before != *after) {
    out.changed.push_back(slot);
  }
  note_departures(slot, *before, after.get(), out);
}

void compare_pages(const ForwardingTable& before, const ForwardingTable& after, TableDiff& out) {
  static const ForwardingTable::Page kEmpty{};
  const std::size_t pages =
      std::max(before.slot_limit(), after.slot_limit()) / ForwardingTable::kPageSize;
  for (std::size_t p = 0; p < pages; ++p) {
    const auto* old_page = before.page(p);
    const auto* new_page = after.page(p);
    if (old_page == new_page) {
      continue;
    }
    old_page = old_page != nullptr ? old_page : &kEmpty;
    new_page = new_page != nullptr ? new_page : &kEmpty;
    for (std::size_t i = 0; i < ForwardingTable::kPageSize; ++i) {
      compare_slot(static_cast<ServiceSlot>(p * ForwardingTable::kPageSize + i), (*old_page)[i],
                   (*new_page)[i], out);
    }
  }
}

template <class Visit>
void for_each_cell(const ForwardingTable::Shard* shard, Visit&& visit) {
  if (shard == nullptr) {
    return;
  }
  for (const auto& cell : shard->cells) {
    if (cell.value.slot != ServiceSlot::kNone) {
      visit(cell);
    }
  }
}

}  // namespace

TableDiff diff(const ForwardingTable& before, const ForwardingTable& after) {
  TableDiff out;
  out.node_changed = before.node_ptr() != after.node_ptr() && before.node() != after.node();
  compare_pages(before, after, out);
  for (std::size_t i = 0; i < ForwardingTable::kShards; ++i) {
    if (before.shard(i) == after.shard(i)) {
      continue;
    }
    for_each_cell(before.shard(i), [&](const auto& cell) {
      const auto now = after.find_frontend(cell.key);
      if (!now) {
        out.frontends_removed.push_back(cell.key);
      } else if (*now != cell.value) {
        out.frontends_changed.push_back(cell.key);
      }
    });
    for_each_cell(after.shard(i), [&](const auto& cell) {
      if (!before.find_frontend(cell.key)) {
        out.frontends_added.push_back(cell.key);
      }
    });
  }
  for (auto* list : {&out.frontends_added, &out.frontends_changed, &out.frontends_removed}) {
    std::sort(list->begin(), list->end());
  }
  return out;
}

std::vector<ServiceSlot> touched_slots(const TableDiff& diff, const ForwardingTable& before,
                                       const ForwardingTable& after) {
  std::set<ServiceSlot> slots;
  for (const auto* list : {&diff.added, &diff.changed, &diff.removed}) {
    slots.insert(list->begin(), list->end());
  }
  for (const auto* keys :
       {&diff.frontends_added, &diff.frontends_changed, &diff.frontends_removed}) {
    for (const FrontendKey& key : *keys) {
      for (const ForwardingTable* table : {&before, &after}) {
        if (const auto frontend = table->find_frontend(key)) {
          slots.insert(frontend->slot);
        }
      }
    }
  }
  return {slots.begin(), slots.end()};
}

}  // namespace sluice::core
