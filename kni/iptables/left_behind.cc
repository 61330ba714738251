#include "kni/iptables/left_behind.h"

#include <algorithm>

namespace sluice::kni::ipt {

void LeftBehind::take(const WrittenChains& written) {
  for (const Table table : kTables) {
    const auto at = static_cast<std::size_t>(table);
    for (const auto& [chain, rules] : written[at]) {
      if (!is_ours(table, chain)) {
        continue;
      }
      if (rules) {
        tables_[at][chain] = {*rules, 0};
      } else {
        tables_[at].erase(chain);
      }
    }
  }
}

bool LeftBehind::is_still(const Present& present) {
  return std::all_of(kTables.begin(), kTables.end(), [&](Table table) {
    return is_still(present.of(table), tables_[static_cast<std::size_t>(table)]);
  });
}

bool LeftBehind::is_still(const Present::InTable& there, Chains& left) {
  std::size_t found = 0;
  for (const auto& [name, seen] : there.ours) {
    const auto known = left.find(name);
    if (known == left.end()) {
      if (seen.rules != 0) {
        return false;  // an empty one stays where others lead to it
      }
      continue;
    }
    Chain& chain = known->second;
    if (chain.rules != seen.rules || (chain.digest != 0 && chain.digest != seen.digest)) {
      return false;
    }
    chain.digest = seen.digest;
    ++found;
  }
  return found == left.size();
}

}  // namespace sluice::kni::ipt
