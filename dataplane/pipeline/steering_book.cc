#include "dataplane/pipeline/steering_book.h"

#include <bit>

namespace sluice::pipeline {
namespace {

std::size_t shard_of(std::uint64_t hash) noexcept {
  return L4AddressSet::shard_of(hash);
}

}  // namespace

void L4AddressSetBuilder::add(const L4Address& a) {
  const std::size_t shard = shard_of(hash_of(a));
  if (users_[shard][a]++ == 0) {
    dirty_[shard] = true;
    ++size_;
  }
}

void L4AddressSetBuilder::remove(const L4Address& a) {
  const std::size_t shard = shard_of(hash_of(a));
  const auto at = users_[shard].find(a);
  if (at != users_[shard].end() && --at->second == 0) {
    users_[shard].erase(at);
    dirty_[shard] = true;
    --size_;
  }
}

L4AddressSet L4AddressSetBuilder::freeze() {
  for (std::size_t s = 0; s < L4AddressSet::kShards; ++s) {
    if (!dirty_[s]) {
      continue;
    }
    dirty_[s] = false;
    if (users_[s].empty()) {
      current_.shards_[s] = nullptr;
      continue;
    }
    auto shard = std::make_shared<L4AddressSet::Shard>();
    shard->cells.resize(std::bit_ceil(users_[s].size() * 2 + 1));
    const std::size_t mask = shard->cells.size() - 1;
    for (const auto& [address, count] : users_[s]) {
      std::size_t at = hash_of(address) & mask;
      while (shard->cells[at].port != 0) {
        at = (at + 1) & mask;
      }
      shard->cells[at] = address;
    }
    current_.shards_[s] = std::move(shard);
  }
  return current_;
}

}  // namespace sluice::pipeline
