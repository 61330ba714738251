#include "dataplane/pipeline/steering_book.h"

#include <algorithm>
#include <array>
#include <bit>
#include <utility>

namespace sluice::pipeline {
namespace {

constexpr std::size_t kFirstCells = 8;

}  // namespace

void L4AddressSetBuilder::add(const L4Address& a, std::uint64_t hash) {
  const std::size_t number = L4AddressSet::shard_of(hash);
  Shard& shard = shards_[number];
  if ((shard.used + 1) * 2 > shard.users.size()) {
    own_cells(number);
    resize(shard, std::max(kFirstCells, shard.users.size() * 2));
  }
  const std::size_t at = L4AddressSet::find(*shard.cells, hash, a);
  if (shard.users[at]++ == 0) {
    own_cells(number)[at] = a;
    ++shard.used;
    ++size_;
  }
}

void L4AddressSetBuilder::add_all(const std::vector<L4Address>& all) {
  // Shard, then where its cells are, then the cells: each is asked for when the one before is here.
  constexpr std::size_t kAhead = 12;
  constexpr std::size_t kStep = kAhead / 3;
  make_room(all.size());
  std::array<std::uint64_t, kAhead> hashes{};
  const auto shard_at = [&](std::size_t i) -> const Shard& {
    return shards_[L4AddressSet::shard_of(hashes[i % kAhead])];
  };
  for (std::size_t i = 0; i < all.size() + kAhead; ++i) {
    if (i >= kAhead) {
      add(all[i - kAhead], hashes[i % kAhead]);
    }
    if (i < all.size()) {
      hashes[i % kAhead] = hash_of(all[i]);
      __builtin_prefetch(&shard_at(i));
    }
    __builtin_prefetch(shard_at(i + kAhead - kStep).cells.get());
    const std::size_t soon = i + kAhead - 2 * kStep;
    if (const Shard& shard = shard_at(soon); !shard.users.empty()) {
      const std::size_t home = hashes[soon % kAhead] & (shard.users.size() - 1);
      __builtin_prefetch(shard.cells->data() + home);
      __builtin_prefetch(shard.users.data() + home);
    }
  }
}

void L4AddressSetBuilder::make_room(std::size_t more) {
  const std::size_t each = (size_ + more) / shards_.size();
  if (more < size_ || each * 2 < kFirstCells) {
    return;
  }
  const std::size_t cells = std::bit_ceil(each * 2 + each / 2);
  for (std::size_t number = 0; number < shards_.size(); ++number) {
    if (shards_[number].users.size() < cells) {
      own_cells(number);
      resize(shards_[number], cells);
    }
  }
}

void L4AddressSetBuilder::remove(const L4Address& a) {
  const std::uint64_t hash = hash_of(a);
  const std::size_t number = L4AddressSet::shard_of(hash);
  Shard& shard = shards_[number];
  if (shard.used == 0) {
    return;
  }
  const std::size_t at = L4AddressSet::find(*shard.cells, hash, a);
  if (shard.users[at] != 0 && --shard.users[at] == 0) {
    own_cells(number);
    close_gap(shard, at);
    --shard.used;
    --size_;
  }
}

/// The cells of a shard, to be written: a copy if a set has them.
L4AddressSet::Cells& L4AddressSetBuilder::own_cells(std::size_t number) {
  Shard& shard = shards_[number];
  if (!std::exchange(shard.dirty, true)) {
    dirty_.push_back(number);
    shard.cells = shard.cells == nullptr ? std::make_shared<L4AddressSet::Cells>()
                                         : std::make_shared<L4AddressSet::Cells>(*shard.cells);
  }
  return *shard.cells;
}

void L4AddressSetBuilder::resize(Shard& shard, std::size_t cells) {
  L4AddressSet::Cells larger(cells);
  std::vector<std::uint32_t> users(cells);
  for (std::size_t i = 0; i < shard.users.size(); ++i) {
    if (const L4Address& a = (*shard.cells)[i]; a.port != 0) {
      const std::size_t at = L4AddressSet::find(larger, hash_of(a), a);
      larger[at] = a;
      users[at] = shard.users[i];
    }
  }
  *shard.cells = std::move(larger);
  shard.users = std::move(users);
}

/// Empties a cell and moves up what stands behind it only because that cell was taken.
void L4AddressSetBuilder::close_gap(Shard& shard, std::size_t gap) {
  L4AddressSet::Cells& cells = *shard.cells;
  const std::size_t mask = cells.size() - 1;
  for (std::size_t i = (gap + 1) & mask; cells[i].port != 0; i = (i + 1) & mask) {
    const std::size_t home = hash_of(cells[i]) & mask;
    if (((i - home) & mask) >= ((i - gap) & mask)) {
      cells[gap] = cells[i];
      shard.users[gap] = shard.users[i];
      gap = i;
    }
  }
  cells[gap] = {};
  shard.users[gap] = 0;
}

L4AddressSet L4AddressSetBuilder::freeze() {
  std::sort(dirty_.begin(), dirty_.end());
  for (auto next = dirty_.begin(); next != dirty_.end();) {
    const std::size_t number = L4AddressSet::group_of(*next);
    auto& place = current_.groups_[number];
    auto group = place == nullptr ? std::make_shared<L4AddressSet::Group>()
                                  : std::make_shared<L4AddressSet::Group>(*place);
    for (; next != dirty_.end() && L4AddressSet::group_of(*next) == number; ++next) {
      Shard& shard = shards_[*next];
      shard.dirty = false;
      (*group)[L4AddressSet::place_of(*next)] = shard.used == 0 ? nullptr : shard.cells;
    }
    place = std::move(group);
  }
  dirty_.clear();
  return current_;
}

}  // namespace sluice::pipeline
