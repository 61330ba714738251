#include "dataplane/pipeline/steering_book.h"

#include <bit>
#include <cstring>

namespace sluice::pipeline {
namespace {

std::size_t shard_of(std::uint64_t hash) noexcept {
  return hash >> 56;
}

}  // namespace

std::uint64_t hash_of(const L4Address& a) noexcept {
  std::uint64_t low = 0;
  std::uint64_t high = 0;
  std::memcpy(&low, a.address.data(), 8);
  std::memcpy(&high, a.address.data() + 8, 8);
  std::uint64_t h = low * 0x9e3779b97f4a7c15ULL;
  h ^= std::rotl(h, 31) + high * 0xc2b2ae3d27d4eb4fULL;
  h ^= (std::uint64_t{a.port} << 8 | static_cast<std::uint8_t>(a.protocol)) * 0x165667b19e3779f9ULL;
  h = (h ^ (h >> 30)) * 0xbf58476d1ce4e5b9ULL;
  h = (h ^ (h >> 27)) * 0x94d049bb133111ebULL;
  return h ^ (h >> 31);
}

bool L4AddressSet::contains(const L4Address& a) const noexcept {
  const std::uint64_t hash = hash_of(a);
  const Shard* shard = shards_[shard_of(hash)].get();
  if (shard == nullptr) {
    return false;
  }
  const std::size_t mask = shard->cells.size() - 1;
  for (std::size_t at = hash & mask; shard->cells[at].port != 0; at = (at + 1) & mask) {
    if (shard->cells[at] == a) {
      return true;
    }
  }
  return false;
}

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
