#include "dataplane/pipeline/steering_book.h"

#include <algorithm>
#include <utility>

namespace sluice::pipeline {
namespace {

constexpr std::size_t kFirstCells = 8;

}  // namespace

void L4AddressSetBuilder::add(const L4Address& a) {
  const std::uint64_t hash = hash_of(a);
  const std::size_t number = L4AddressSet::shard_of(hash);
  Shard& shard = shards_[number];
  if ((shard.used + 1) * 2 > shard.cells.size()) {
    grow(shard);
  }
  const std::size_t at = L4AddressSet::find(shard.cells, hash, a);
  if (shard.users[at]++ == 0) {
    shard.cells[at] = a;
    ++shard.used;
    ++size_;
    touch(number);
  }
}

void L4AddressSetBuilder::remove(const L4Address& a) {
  const std::uint64_t hash = hash_of(a);
  const std::size_t number = L4AddressSet::shard_of(hash);
  Shard& shard = shards_[number];
  if (shard.used == 0) {
    return;
  }
  const std::size_t at = L4AddressSet::find(shard.cells, hash, a);
  if (shard.users[at] != 0 && --shard.users[at] == 0) {
    close_gap(shard, at);
    --shard.used;
    --size_;
    touch(number);
  }
}

void L4AddressSetBuilder::touch(std::size_t number) {
  if (!std::exchange(shards_[number].dirty, true)) {
    dirty_.push_back(number);
  }
}

void L4AddressSetBuilder::grow(Shard& shard) {
  Shard larger;
  larger.cells.resize(std::max(kFirstCells, shard.cells.size() * 2));
  larger.users.resize(larger.cells.size());
  for (std::size_t i = 0; i < shard.cells.size(); ++i) {
    if (shard.cells[i].port != 0) {
      const std::size_t at =
          L4AddressSet::find(larger.cells, hash_of(shard.cells[i]), shard.cells[i]);
      larger.cells[at] = shard.cells[i];
      larger.users[at] = shard.users[i];
    }
  }
  shard.cells = std::move(larger.cells);
  shard.users = std::move(larger.users);
}

/// Empties a cell and moves up what stands behind it only because that cell was taken.
void L4AddressSetBuilder::close_gap(Shard& shard, std::size_t gap) {
  const std::size_t mask = shard.cells.size() - 1;
  for (std::size_t i = (gap + 1) & mask; shard.cells[i].port != 0; i = (i + 1) & mask) {
    const std::size_t home = hash_of(shard.cells[i]) & mask;
    if (((i - home) & mask) >= ((i - gap) & mask)) {
      shard.cells[gap] = shard.cells[i];
      shard.users[gap] = shard.users[i];
      gap = i;
    }
  }
  shard.cells[gap] = {};
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
      (*group)[L4AddressSet::place_of(*next)] =
          shard.used == 0 ? nullptr : std::make_shared<const L4AddressSet::Cells>(shard.cells);
    }
    place = std::move(group);
  }
  dirty_.clear();
  return current_;
}

}  // namespace sluice::pipeline
