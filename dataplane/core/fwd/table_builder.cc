#include "dataplane/core/fwd/table_builder.h"

#include <algorithm>
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

// A shard is rebuilt as a whole: at 100,000 frontends it has about 400 cells in use, and open
// addressing without tombstones stays simple.
std::shared_ptr<const Shard> rebuild(const Shard* old,
                                     const std::vector<std::pair<FrontendKey, Frontend>>& changes) {
  std::vector<Shard::Cell> kept;
  const auto changed = [&](const FrontendKey& key) {
    const auto at = std::lower_bound(
        changes.begin(), changes.end(), key,
        [](const auto& change, const FrontendKey& wanted) { return change.first < wanted; });
    return at != changes.end() && at->first == key;
  };
  if (old != nullptr) {
    for (const Shard::Cell& cell : old->cells) {
      if (cell.value.slot != ServiceSlot::kNone && !changed(cell.key)) {
        kept.push_back(cell);
      }
    }
  }
  for (const auto& [key, value] : changes) {
    if (value.slot != ServiceSlot::kNone) {
      kept.push_back({key, value});
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
  if (block.block == nullptr) {
    services_.erase(i);
  } else {
    services_.insert_or_assign(services_.end(), i, std::move(block.block));  // often in order
  }
}

void TableBuilder::remove_service(ServiceSlot slot) {
  const auto i = static_cast<std::uint32_t>(slot);
  if (base_->service(slot) == nullptr) {
    services_.erase(i);
  } else {
    services_[i] = nullptr;
  }
}

void TableBuilder::set_frontend(const FrontendKey& key, Frontend frontend) {
  const auto present = base_->find_frontend(key);
  if (present && *present == frontend) {
    frontends_.erase(key);
  } else {
    frontends_.insert_or_assign(frontends_.end(), key, frontend);  // keys often come in order
  }
}

void TableBuilder::remove_frontend(const FrontendKey& key) {
  if (base_->find_frontend(key)) {
    frontends_[key] = Frontend{};
  } else {
    frontends_.erase(key);
  }
}

void TableBuilder::apply_services(ForwardingTable& next) {
  bool left = false;
  for (auto at = services_.begin(); at != services_.end();) {
    const std::size_t number = at->first / ForwardingTable::kPageSize;
    if (number >= next.pages_.size()) {
      next.pages_.resize(number + 1);
    }
    const auto& old = next.pages_[number];
    auto page = old != nullptr ? std::make_shared<ForwardingTable::Page>(*old)
                               : std::make_shared<ForwardingTable::Page>();
    for (; at != services_.end() && at->first / ForwardingTable::kPageSize == number; ++at) {
      auto& cell = (*page)[at->first % ForwardingTable::kPageSize];
      left = left ||
             (cell != nullptr && (at->second == nullptr || destination_left(*cell, *at->second)));
      next.service_count_ += static_cast<std::size_t>(at->second != nullptr);
      next.service_count_ -= static_cast<std::size_t>(cell != nullptr);
      cell = at->second;
    }
    next.pages_[number] = std::move(page);
  }
  next.epoch_ += left ? 1U : 0U;
}

void TableBuilder::apply_frontends(ForwardingTable& next, const ParallelFor& parallel) {
  constexpr std::size_t kFewShards = 16;  // are done before a thread runs
  if (frontends_.empty()) {
    return;
  }
  std::vector<std::vector<std::pair<FrontendKey, Frontend>>> by_shard(ForwardingTable::kShards);
  for (const auto& [key, value] : frontends_) {
    by_shard[key.hash() >> 56].emplace_back(key, value);  // stays sorted by key
  }
  std::vector<std::size_t> touched;
  for (std::size_t number = 0; number < by_shard.size(); ++number) {
    if (!by_shard[number].empty()) {
      touched.push_back(number);
    }
  }
  const auto one = [&](std::size_t i) {
    auto& shard = next.shards_[touched[i]];
    shard = rebuild(shard.get(), by_shard[touched[i]]);
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

Result<void> TableBuilder::check_service(const ForwardingTable& next, std::uint32_t slot,
                                         const ServicePort* block) const {
  Result<void> result;
  if (block != nullptr) {
    result = check_block(*block).and_then([&] { return check_reachable(next, *block); });
  }
  // Frontends that used to lead to this slot must still be right.
  const auto number = static_cast<ServiceSlot>(slot);
  if (const ServicePort* old = base_->service(number); result && old != nullptr) {
    for_each_claim(*old, [&](const FrontendKey& key, FrontendKind) {
      const auto found = next.find_frontend(key);
      if (result && found && found->slot == number) {
        result = check_frontend(next, key, *found);
      }
    });
  }
  return result;
}

namespace {

/// Calls `check` for every entry of `all` until one fails, pieces of a large map at once.
/// @return the first error in the order of the map.
template <class Map, class Check>
Result<void> check_each(const Map& all, const ParallelFor& parallel, const Check& check) {
  constexpr std::size_t kPiece = 128;
  std::vector<typename Map::const_iterator> starts;
  std::size_t n = 0;
  for (auto at = all.begin(); at != all.end(); ++at, ++n) {
    if (n % kPiece == 0) {
      starts.push_back(at);
    }
  }
  std::vector<Result<void>> results(starts.size());
  const auto piece = [&](std::size_t i) {
    const auto end = i + 1 < starts.size() ? starts[i + 1] : all.end();
    for (auto at = starts[i]; results[i] && at != end; ++at) {
      results[i] = check(at->first, at->second);
    }
  };
  parallel(starts.size(), piece);
  const auto bad =
      std::find_if(results.begin(), results.end(), [](const auto& result) { return !result; });
  return bad == results.end() ? Result<void>{} : *bad;
}

}  // namespace

Result<void> TableBuilder::check(const ForwardingTable& next, const ParallelFor& parallel) const {
  Result<void> result = node_ != nullptr ? check_node(*node_) : Result<void>{};
  return result
      .and_then([&] {
        return check_each(services_, parallel, [&](std::uint32_t slot, const auto& block) {
          return check_service(next, slot, block.get());
        });
      })
      .and_then([&] {
        return check_each(frontends_, parallel,
                          [&](const FrontendKey& key, const Frontend& frontend) {
                            return frontend.slot == ServiceSlot::kNone
                                       ? Result<void>{}
                                       : check_frontend(next, key, frontend);
                          });
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
