#include "control/compile/counted_addresses.h"

#include <algorithm>
#include <cstring>

namespace sluice::compile {

std::size_t CountedAddresses::Hash::operator()(const core::IpAddress& address) const noexcept {
  std::uint64_t words[2];
  std::memcpy(words, address.data(), sizeof words);
  const std::uint64_t h = (words[0] ^ (words[1] * 0xff51afd7ed558ccdULL)) * 0x9e3779b97f4a7c15ULL;
  return h ^ (h >> 32);
}

void CountedAddresses::add(const core::IpAddress& address) {
  if (++counts_[address] == 1) {
    list(address.family()).touched.push_back(address);
    changed_ = true;
  }
}

void CountedAddresses::remove(const core::IpAddress& address) {
  const auto at = counts_.find(address);
  if (at != counts_.end() && --at->second == 0) {
    counts_.erase(at);
    list(address.family()).touched.push_back(address);
    changed_ = true;
  }
}

const std::vector<core::IpAddress>& CountedAddresses::of(core::Family family) {
  List& mine = list(family);
  if (mine.touched.empty()) {
    return mine.sorted;
  }
  std::sort(mine.touched.begin(), mine.touched.end());
  mine.touched.erase(std::unique(mine.touched.begin(), mine.touched.end()), mine.touched.end());
  std::vector<core::IpAddress> kept;
  kept.reserve(mine.sorted.size() + mine.touched.size());
  std::set_difference(mine.sorted.begin(), mine.sorted.end(), mine.touched.begin(),
                      mine.touched.end(), std::back_inserter(kept));
  const auto middle = static_cast<std::ptrdiff_t>(kept.size());
  std::copy_if(mine.touched.begin(), mine.touched.end(), std::back_inserter(kept),
               [&](const core::IpAddress& a) { return counts_.contains(a); });
  std::inplace_merge(kept.begin(), kept.begin() + middle, kept.end());
  mine.sorted = std::move(kept);
  mine.touched.clear();
  return mine.sorted;
}

void CountedAddresses::clear() {
  counts_.clear();
  v4_ = {};
  v6_ = {};
  changed_ = true;
}

}  // namespace sluice::compile
