#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace sluice::kni::ipt {

/// One line of what iptables-save prints or iptables-restore takes. Views into the line.
struct SavedLine {
  enum class Kind : std::uint8_t {
    kNothing,  ///< empty, or a comment
    kTable,    ///< "*nat"
    kChain,    ///< ":NAME POLICY [packets:bytes]"
    kAppend,   ///< "-A CHAIN rule"
    kInsert,   ///< "-I CHAIN rule", the place left out
    kTakeOut,  ///< "-D CHAIN rule"
    kDelete,   ///< "-X CHAIN"
    kFlush,    ///< "-F CHAIN"
    kCommit,
    kUnknown,
  };
  Kind kind = Kind::kNothing;
  std::string_view name;      ///< of the table or chain; of an unknown line the whole
  std::string_view rule;      ///< behind the chain's name
  std::uint64_t packets = 0;  ///< that the rule took; 0: the line has no counters
};
[[nodiscard]] SavedLine read_saved_line(std::string_view line);

/// The chain or target that a rule goes to; empty: none.
[[nodiscard]] std::string target_of(std::string_view rule);

}  // namespace sluice::kni::ipt
