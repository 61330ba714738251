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
  const bool udp = after.protocol == Protocol::kUdp;
  return std::any_of(before.endpoints.begin(), before.endpoints.end(), [&](const Endpoint& old) {
    const Endpoint* now = after.find_endpoint(old.address, old.port);
    return now == nullptr || (udp && old.serving && !now->serving);
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
    services_.insert_or_assign(i, std::move(block.block));
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

void TableBuilder::apply_frontends(ForwardingTable& next) {
  std::map<std::size_t, std::vector<std::pair<FrontendKey, Frontend>>> by_shard;
  for (const auto& [key, value] : frontends_) {
    by_shard[key.hash() >> 56].emplace_back(key, value);  // stays sorted by key
  }
  for (const auto& [number, changes] : by_shard) {
    auto& shard = next.shards_[number];
    const std::size_t before = shard != nullptr ? shard->used : 0;
    shard = rebuild(shard.get(), changes);
    next.frontend_count_ += (shard != nullptr ? shard->used : 0) - before;
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
    for (const auto& [key, kind] : claimed_frontends(*old)) {
      const auto found = next.find_frontend(key);
      if (result && found && found->slot == number) {
        result = check_frontend(next, key, *found);
      }
    }
  }
  return result;
}

Result<void> TableBuilder::check(const ForwardingTable& next, const ParallelFor& parallel) const {
  constexpr std::size_t kPiece = 128;  // Services looked at in one go
  std::vector<std::pair<std::uint32_t, const ServicePort*>> services;
  services.reserve(services_.size());
  for (const auto& [slot, block] : services_) {
    services.emplace_back(slot, block.get());
  }
  std::vector<Result<void>> results((services.size() + kPiece - 1) / kPiece);
  const auto piece = [&](std::size_t n) {
    const std::size_t end = std::min(services.size(), (n + 1) * kPiece);
    for (std::size_t i = n * kPiece; results[n] && i < end; ++i) {
      results[n] = check_service(next, services[i].first, services[i].second);
    }
  };
  parallel(results.size(), piece);
  Result<void> result = node_ != nullptr ? check_node(*node_) : Result<void>{};
  for (auto at = results.begin(); result && at != results.end(); ++at) {
    result = *at;
  }
  for (auto at = frontends_.begin(); result && at != frontends_.end(); ++at) {
    if (at->second.slot != ServiceSlot::kNone) {
      result = check_frontend(next, at->first, at->second);
    }
  }
  return result;
}

Result<TablePtr> TableBuilder::freeze(const ParallelFor& parallel) {
  auto next = std::make_shared<ForwardingTable>(*base_);
  next->generation_ = base_->generation_ + 1;
  if (node_ != nullptr) {
    next->node_ = node_;
  }
  apply_services(*next);
  apply_frontends(*next);
  if (auto sound = check(*next, parallel); !sound) {
    return tl::make_unexpected(sound.error());
  }
  return TablePtr(std::move(next));
}

}  // namespace sluice::core
