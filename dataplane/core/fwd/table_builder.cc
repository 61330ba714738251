#include "dataplane/core/fwd/table_builder.h"

#include <algorithm>
#include <array>
#include <bit>
#include <numeric>
#include <utility>

#include "dataplane/core/fwd/invariants.h"
#include "dataplane/core/sched/pick_plan.h"

namespace sluice::core {
namespace {

using Shard = ForwardingTable::Shard;

void index_endpoints(ServicePort& block) {
  block.by_address.resize(block.endpoints.size());
  for (std::size_t i = 0; i < block.by_address.size(); ++i) {
    block.by_address[i] = static_cast<EndpointIndex>(i);
  }
  std::sort(block.by_address.begin(), block.by_address.end(),
            [&](EndpointIndex a, EndpointIndex b) {
              const Endpoint& x = block.endpoint(a);
              const Endpoint& y = block.endpoint(b);
              const auto order = x.address <=> y.address;
              return order < 0 || (order == 0 && x.port < y.port);
            });
}

void put(Shard& shard, const FrontendKey& key, Frontend value) {
  const std::size_t mask = shard.cells.size() - 1;
  std::size_t i = key.hash() & mask;
  while (shard.cells[i].value.slot != ServiceSlot::kNone) {
    i = (i + 1) & mask;
  }
  shard.cells[i] = {key, value};
  ++shard.used;
}

/// Of changes that are sorted by `same` things, the last of each, in place. @return how many.
template <class List, class Same>
std::size_t keep_last_of_each(List& list, Same&& same) {
  std::size_t kept = 0;
  for (std::size_t i = 0; i < list.size(); ++i) {
    if (kept == 0 || !same(list[kept - 1], list[i])) {
      ++kept;
    }
    if (kept - 1 != i) {
      list[kept - 1] = std::move(list[i]);
    }
  }
  return kept;
}

}  // namespace

bool destination_left(const ServicePort& before, const ServicePort& after) noexcept {
  return std::any_of(before.endpoints.begin(), before.endpoints.end(), [&](const Endpoint& old) {
    return endpoint_left(old, after.find_endpoint(old.address, old.port), after.protocol);
  });
}

TableBuilder::TableBuilder(TablePtr base)
    : base_(base != nullptr ? std::move(base) : std::make_shared<const ForwardingTable>()) {}

void TableBuilder::set_node(NodePart node) {
  if (node == base_->node()) {
    node_ = nullptr;
  } else {
    node_ = std::make_shared<const NodePart>(std::move(node));
  }
}

void TableBuilder::set_service(ServiceSlot slot, ServicePort block) {
  set_service(slot, prepare(std::move(block), base_->service(slot)));
}

TableBuilder::Prepared TableBuilder::prepare(ServicePort block, const ServicePort* present) {
  index_endpoints(block);
  if (present != nullptr && *present == block) {
    return {};
  }
  plan_picks(block, present);
  return {std::make_shared<const ServicePort>(std::move(block))};
}

void TableBuilder::set_service(ServiceSlot slot, Prepared block) {
  const auto i = static_cast<std::uint32_t>(slot);
  services_.push_back({i, block.block != nullptr ? std::move(block.block) : present(i)});
}

ForwardingTable::BlockPtr TableBuilder::present(std::uint32_t slot) const {
  const ForwardingTable::Page* page = base_->page(slot / ForwardingTable::kPageSize);
  return page == nullptr ? nullptr : (*page)[slot % ForwardingTable::kPageSize];
}

void TableBuilder::remove_service(ServiceSlot slot) {
  services_.push_back({static_cast<std::uint32_t>(slot), nullptr});
}

void TableBuilder::set_frontend(const FrontendKey& key, Frontend frontend) {
  frontends_.push_back({key, frontend});
}

void TableBuilder::remove_frontend(const FrontendKey& key) {
  frontends_.push_back({key, Frontend{}});
}

/// Leaves the slots whose block is another one, in order.
void TableBuilder::settle_services() {
  const auto less = [](const auto& a, const auto& b) { return a.slot < b.slot; };
  if (!std::is_sorted(services_.begin(), services_.end(), less)) {  // most often they are
    std::stable_sort(services_.begin(), services_.end(), less);
  }
  services_.resize(keep_last_of_each(
      services_, [](const auto& a, const auto& b) { return a.slot == b.slot; }));
  std::erase_if(services_, [&](const ServiceChange& change) {
    return change.block.get() == base_->service(static_cast<ServiceSlot>(change.slot));
  });
}

void TableBuilder::apply_services(ForwardingTable& next) {
  bool left = false;
  settle_services();
  for (auto at = services_.begin(); at != services_.end();) {
    const std::size_t number = at->slot / ForwardingTable::kPageSize;
    if (number >= next.pages_.size()) {
      next.pages_.resize(number + 1);
    }
    const auto& old = next.pages_[number];
    auto page = old != nullptr ? std::make_shared<ForwardingTable::Page>(*old)
                               : std::make_shared<ForwardingTable::Page>();
    for (; at != services_.end() && at->slot / ForwardingTable::kPageSize == number; ++at) {
      auto& cell = (*page)[at->slot % ForwardingTable::kPageSize];
      left = left ||
             (cell != nullptr && (at->block == nullptr || destination_left(*cell, *at->block)));
      next.service_count_ += static_cast<std::size_t>(at->block != nullptr);
      next.service_count_ -= static_cast<std::size_t>(cell != nullptr);
      cell = at->block;
    }
    next.pages_[number] = std::move(page);
  }
  next.epoch_ += left ? 1U : 0U;
}

/// Puts the changes of a shard side by side, in the order they came.
void TableBuilder::sort_by_shard() {
  const auto shard_of = [](const FrontendChange& change) { return change.key.hash() >> 56; };
  std::array<std::size_t, ForwardingTable::kShards + 1> starts{};
  std::vector<std::uint8_t> shards;
  shards.reserve(frontends_.size());
  for (const FrontendChange& change : frontends_) {
    shards.push_back(static_cast<std::uint8_t>(shard_of(change)));
    ++starts[shards.back() + 1U];
  }
  std::partial_sum(starts.begin(), starts.end(), starts.begin());
  std::vector<FrontendChange> sorted(frontends_.size());
  auto next = starts;
  for (std::size_t i = 0; i < frontends_.size(); ++i) {
    sorted[next[shards[i]]++] = frontends_[i];
  }
  frontends_ = std::move(sorted);
  by_shard_.resize(ForwardingTable::kShards);
  for (std::size_t number = 0; number < by_shard_.size(); ++number) {
    by_shard_[number] = FrontendChanges(frontends_)
                            .subspan(starts[number], starts[number + 1] - starts[number]);
  }
}

/// Leaves what changes the base, sorted by key.
void TableBuilder::settle_shard(FrontendChanges& changes) const {
  std::stable_sort(changes.begin(), changes.end(),
                   [](const auto& a, const auto& b) { return a.key < b.key; });
  changes = changes.first(keep_last_of_each(
      changes, [](const auto& a, const auto& b) { return a.key == b.key; }));
  const auto end = std::remove_if(changes.begin(), changes.end(), [&](const FrontendChange& c) {
    return base_->find_frontend(c.key).value_or(Frontend{}) == c.value;
  });
  changes = changes.first(static_cast<std::size_t>(end - changes.begin()));
}

// A shard is rebuilt as a whole: at 100,000 frontends it has about 400 cells in use, and open
// addressing without tombstones stays simple.
std::shared_ptr<const Shard> TableBuilder::rebuild(const Shard* old, FrontendChanges changes) {
  std::vector<Shard::Cell> kept;
  kept.reserve((old != nullptr ? old->used : 0U) + changes.size());
  const auto changed = [&](const FrontendKey& key) {
    const auto at =
        std::lower_bound(changes.begin(), changes.end(), key,
                         [](const auto& change, const auto& k) { return change.key < k; });
    return at != changes.end() && at->key == key;
  };
  if (old != nullptr) {
    for (const Shard::Cell& cell : old->cells) {
      if (cell.value.slot != ServiceSlot::kNone && !changed(cell.key)) {
        kept.push_back(cell);
      }
    }
  }
  for (const FrontendChange& change : changes) {
    if (change.value.slot != ServiceSlot::kNone) {
      kept.push_back({change.key, change.value});
    }
  }
  if (kept.empty()) {
    return nullptr;
  }
  auto shard = std::make_shared<Shard>();
  shard->cells.resize(std::bit_ceil(kept.size() * 2));
  for (const Shard::Cell& cell : kept) {
    put(*shard, cell.key, cell.value);
  }
  return shard;
}

void TableBuilder::apply_frontends(ForwardingTable& next, const ParallelFor& parallel) {
  constexpr std::size_t kFewShards = 16;  // are done before a thread runs
  if (frontends_.empty()) {
    return;
  }
  sort_by_shard();
  std::vector<std::size_t> touched;
  for (std::size_t number = 0; number < by_shard_.size(); ++number) {
    if (!by_shard_[number].empty()) {
      touched.push_back(number);
    }
  }
  const auto one = [&](std::size_t i) {
    FrontendChanges& changes = by_shard_[touched[i]];
    settle_shard(changes);
    if (!changes.empty()) {
      auto& shard = next.shards_[touched[i]];
      shard = rebuild(shard.get(), changes);
    }
  };
  touched.size() <= kFewShards ? one_after_another(touched.size(), one)
                               : parallel(touched.size(), one);
  for (const std::size_t number : touched) {
    const auto used = [&](const ForwardingTable& table) {
      return table.shards_[number] != nullptr ? std::size_t{table.shards_[number]->used} : 0;
    };
    next.frontend_count_ += used(next) - used(*base_);
  }
}

Result<void> TableBuilder::check_service(const ForwardingTable& next,
                                         const ServiceChange& change) const {
  Result<void> result;
  if (const ServicePort* block = change.block.get(); block != nullptr) {
    result = check_block(*block).and_then([&] { return check_reachable(next, *block); });
  }
  // Frontends that used to lead to this slot must still be right.
  const auto slot = static_cast<ServiceSlot>(change.slot);
  if (const ServicePort* old = base_->service(slot); result && old != nullptr) {
    for_each_claim(*old, [&](const FrontendKey& key, FrontendKind) {
      const auto found = next.find_frontend(key);
      if (result && found && found->slot == slot) {
        result = check_frontend(next, key, *found);
      }
    });
  }
  return result;
}

namespace {

/// Calls `check` for every element of `all` until one fails, pieces of that length at once.
/// @return the first error in the order of the list.
template <class List, class Check>
Result<void> check_each(const List& all, std::size_t length, const ParallelFor& parallel,
                        const Check& check) {
  std::vector<Result<void>> results((all.size() + length - 1) / length);
  const auto piece = [&](std::size_t i) {
    const std::size_t end = std::min(all.size(), (i + 1) * length);
    for (std::size_t at = i * length; results[i] && at < end; ++at) {
      results[i] = check(all[at]);
    }
  };
  parallel(results.size(), piece);
  const auto bad =
      std::find_if(results.begin(), results.end(), [](const auto& result) { return !result; });
  return bad == results.end() ? Result<void>{} : *bad;
}

}  // namespace

Result<void> TableBuilder::check(const ForwardingTable& next, const ParallelFor& parallel) const {
  constexpr std::size_t kServices = 128;
  constexpr std::size_t kFewFrontends = 128;  // are done before a thread runs
  constexpr std::size_t kShards = 16;
  const auto check_change = [&](const FrontendChange& change) {
    return change.value.slot == ServiceSlot::kNone
               ? Result<void>{}
               : check_frontend(next, change.key, change.value);
  };
  const auto check_shard = [&](FrontendChanges changes) {
    return check_each(changes, std::max<std::size_t>(1, changes.size()), one_after_another,
                      check_change);
  };
  Result<void> result = node_ != nullptr ? check_node(*node_) : Result<void>{};
  return result
      .and_then([&] {
        return check_each(services_, kServices, parallel, [&](const ServiceChange& change) {
          return check_service(next, change);
        });
      })
      .and_then([&] {
        const std::size_t piece = frontends_.size() > kFewFrontends ? kShards : by_shard_.size();
        return check_each(by_shard_, std::max<std::size_t>(1, piece), parallel, check_shard);
      });
}

Result<TablePtr> TableBuilder::freeze(const ParallelFor& parallel) {
  auto next = std::make_shared<ForwardingTable>(*base_);
  next->generation_ = base_->generation_ + 1;
  if (node_ != nullptr) {
    next->node_ = node_;
  }
  apply_services(*next);
  apply_frontends(*next, parallel);
  if (auto sound = check(*next, parallel); !sound) {
    return tl::make_unexpected(sound.error());
  }
  return TablePtr(std::move(next));
}

}  // namespace sluice::core
