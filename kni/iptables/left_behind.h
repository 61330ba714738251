#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <unordered_map>

#include "kni/iptables/present.h"
#include "kni/iptables/restore_text.h"

namespace sluice::kni::ipt {

/// Our chains as our syncs left them, to be compared with what is listed later. How many rules a
/// chain has is known from the sync that wrote it; what they say in the words of iptables-save,
/// from the first look behind it. So a rule that goes or comes is seen at any look, one that gives
/// way to another at any but the first behind a sync that wrote its chain. Pure; thread: one.
class LeftBehind {
 public:
  void forget() { tables_ = {}; }
  /// A restore that came into force.
  void take(const WrittenChains& written);
  /// @return whether every chain has the rules it was left with, and no other one of ours has any.
  /// Remembers what chains say that were written since the last look.
  bool is_still(const Present& present);

 private:
  struct Chain {
    std::size_t rules = 0;
    std::uint64_t digest = 0;  ///< 0: not seen yet
  };
  using Chains = std::unordered_map<std::string, Chain>;
  static bool is_still(const Present::InTable& there, Chains& left);

  std::array<Chains, kTables.size()> tables_;
};

}  // namespace sluice::kni::ipt
