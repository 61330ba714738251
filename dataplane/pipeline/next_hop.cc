#include "dataplane/pipeline/next_hop.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "dataplane/pipeline/next_hop_directory.h"

namespace sluice::pipeline {
namespace {

bool longer_first(const Route& a, const Route& b) noexcept {
  if (a.prefix.family() != b.prefix.family()) {
    return a.prefix.family() < b.prefix.family();
  }
  if (a.prefix.length() != b.prefix.length()) {
    return a.prefix.length() > b.prefix.length();
  }
  return a.prefix.address() < b.prefix.address();
}

std::uint64_t hash_of(PortIndex port, const core::IpAddress& address) noexcept {
  std::uint64_t a = 0;
  std::uint64_t b = 0;
  std::memcpy(&a, address.data(), 8);
  std::memcpy(&b, address.data() + 8, 8);
  std::uint64_t h = a * 0x9e3779b97f4a7c15ULL ^ (b + static_cast<std::uint8_t>(port));
  h = (h ^ (h >> 29)) * 0xbf58476d1ce4e5b9ULL;
  return h ^ (h >> 32);
}

}  // namespace

RouteTable::RouteTable(std::vector<Route> routes) : routes_(std::move(routes)) {
  std::stable_sort(routes_.begin(), routes_.end(), longer_first);
  const auto same = [](const Route& a, const Route& b) { return a.prefix == b.prefix; };
  routes_.erase(std::unique(routes_.begin(), routes_.end(), same), routes_.end());
  for (std::size_t i = 0; i < routes_.size(); ++i) {
    const core::Cidr& prefix = routes_[i].prefix;
    if (groups_.empty() || groups_.back().family != prefix.family() ||
        groups_.back().length != prefix.length()) {
      groups_.push_back({prefix.family(), prefix.length(), i, i});
    }
    groups_.back().end = i + 1;
  }
}

const Route* RouteTable::find(const core::IpAddress& to) const noexcept {
  for (const Group& group : groups_) {
    if (group.family != to.family()) {
      continue;
    }
    const core::Cidr wanted(to, group.length);
    const Route* first = routes_.data() + group.begin;
    const Route* last = routes_.data() + group.end;
    const Route* at = std::lower_bound(
        first, last, wanted,
        [](const Route& r, const core::Cidr& c) { return r.prefix.address() < c.address(); });
    if (at != last && at->prefix == wanted) {
      return at;
    }
  }
  return nullptr;
}

NextHopDirectory::NextHopDirectory(std::size_t size)
    : words_(std::clamp<std::size_t>(size, 2, static_cast<std::size_t>(NextHopIndex::kNone))),
      names_(words_.size()),
      cells_(std::make_unique<Cells>(std::bit_ceil(words_.size() * 2))),
      current_(cells_.get()) {
  words_.write(kHostHop, NextHopWord::make({}, PortIndex::kNone, NeighbourState::kHost));
}

NextHopIndex NextHopDirectory::find(PortIndex port, const core::IpAddress& address) const noexcept {
  const Cells& cells = *current_.load(std::memory_order_acquire);
  const std::size_t mask = cells.size() - 1;
  for (std::size_t at = hash_of(port, address) & mask;; at = (at + 1) & mask) {
    const std::uint32_t index = cells[at].load(std::memory_order_acquire);
    if (index == 0) {
      return NextHopIndex::kNone;
    }
    const Name& name = names_[index];
    if (name.port == port && name.address == address) {
      return static_cast<NextHopIndex>(index);
    }
  }
}

void NextHopDirectory::insert(Cells& cells, std::uint32_t index) {
  const std::size_t mask = cells.size() - 1;
  std::size_t at = hash_of(names_[index].port, names_[index].address) & mask;
  while (cells[at].load(std::memory_order_relaxed) != 0) {
    at = (at + 1) & mask;
  }
  cells[at].store(index, std::memory_order_release);
}

NextHopIndex NextHopDirectory::add(PortIndex port, const core::IpAddress& address,
                                   std::size_t leave) {
  if (const NextHopIndex known = find(port, address); known != NextHopIndex::kNone) {
    Name& name = names_[static_cast<std::uint16_t>(known)];
    forgotten_ -= name.forgotten ? 1 : 0;
    name.forgotten = false;
    return known;
  }
  if (available() <= leave) {
    return NextHopIndex::kNone;
  }
  std::uint32_t index = 0;
  if (!free_.empty()) {
    index = free_.back();
    free_.pop_back();
  } else {
    index = static_cast<std::uint32_t>(used_++);
  }
  names_[index] = {port, true, false, address};
  words_.write(static_cast<NextHopIndex>(index),
               NextHopWord::make({}, port, NeighbourState::kUnresolved));
  insert(*cells_, index);
  return static_cast<NextHopIndex>(index);
}

void NextHopDirectory::forget(PortIndex port, const core::IpAddress& address) {
  const NextHopIndex index = find(port, address);
  if (index != NextHopIndex::kNone && !names_[static_cast<std::uint16_t>(index)].forgotten) {
    names_[static_cast<std::uint16_t>(index)].forgotten = true;
    ++forgotten_;
  }
}

void NextHopDirectory::retire() {
  auto cells = std::make_unique<Cells>(cells_->size());
  for (std::uint32_t index = 1; index < used_; ++index) {
    Name& name = names_[index];
    if (!name.listed) {
      continue;
    }
    if (name.forgotten) {
      name.listed = false;
      name.forgotten = false;
      retired_.push_back(index);
    } else {
      insert(*cells, index);
    }
  }
  forgotten_ = 0;
  current_.store(cells.get(), std::memory_order_release);
  old_cells_ = std::exchange(cells_, std::move(cells));
}

void NextHopDirectory::recycle() {
  free_.insert(free_.end(), retired_.begin(), retired_.end());
  retired_.clear();
  old_cells_.reset();
}

}  // namespace sluice::pipeline
