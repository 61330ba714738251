#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "dataplane/core/fwd/masquerade_ports.h"
#include "dataplane/core/net/address.h"

namespace sluice::kni::nft {

// The rule-set model: what one of our tables (`ip sluice`, `ip6 sluice`) holds, as plain values.
// render.h makes it from a ForwardingTable, kernel.h reads it back, plan.h compares two of them,
// ruleset_text.h prints it as nft would accept it, encode.h writes it as netlink messages.

inline constexpr const char* kTable = "sluice";

/// What a rule loads from a packet, or what a key is made of.
enum class Field : std::uint8_t { kSaddr, kDaddr, kProtocol, kSport, kDport, kSlot };

enum class Side : std::uint8_t { kSaddr, kDaddr };

/// How a candidate's slot is chosen: offset + (something mod modulus).
struct Pick {
  enum class Kind : std::uint8_t { kRandom, kSourceHash, kSourcePortHash };
  Kind kind = Kind::kRandom;
  std::uint32_t modulus = 1;  ///< >= 1
  std::uint32_t offset = 0;
  std::uint32_t attempt = 0;  ///< of a hash: each another one
};
/// Seed of a hash: fixed, so that a source keeps its endpoint over restarts.
[[nodiscard]] constexpr std::uint32_t seed_of(const Pick& pick) noexcept {
  return 0x51c1ce00 + pick.attempt;
}

// Statements of a rule, in nft's words.
struct CtStateNew {};
struct CtStatusDnat {};
struct FibLocal {
  Side side;
};
struct InPrefix {
  Side side;
  core::Cidr cidr;
  bool negate;
};
struct IngressIs {
  std::string name;
  bool prefix;  ///< every interface whose name begins so
  bool negate;
};
struct ProtocolIs {
  core::Protocol protocol;
};
/// True once in n: numgen random mod n == 0.
struct OneIn {
  std::uint32_t n;
};
struct MarkHas {
  std::uint32_t bit;
};
struct MarkSet {
  std::uint32_t bit;
};
struct MarkClear {
  std::uint32_t bit;  ///< set before
};
struct InSet {
  std::vector<Field> key;
  std::string set;
  bool negate;
};
struct VerdictMap {
  std::vector<Field> key;
  std::string map;
};
struct DnatMap {
  std::vector<Field> key;  ///< the slot comes on top
  Pick pick;
  std::string map;
};
struct DnatTo {
  core::IpAddress address;
  std::uint16_t port;  ///< host order
};
/// Remembers the source under a number for `seconds` from now on, in a set of (source . number).
/// The number is written as a random choice among one: a form that nft lists and loads, which it
/// does not with constants inside keys.
struct Remember {
  std::string set;
  std::uint32_t number;
  std::uint32_t seconds;
};
/// The source is remembered under a number.
struct Recall {
  std::string set;
  std::uint32_t number;
};
struct Masquerade {
  std::optional<core::PortRange> ports;  ///< only behind a match of a protocol that has ports
};
struct Count {};
struct Reject {};
struct Drop {};
struct Go {
  std::string chain;
  bool jump;  ///< false: goto
};
using Statement = std::variant<CtStateNew, CtStatusDnat, FibLocal, InPrefix, IngressIs, ProtocolIs,
                               OneIn, MarkHas, MarkSet, MarkClear, InSet, VerdictMap, DnatMap,
                               DnatTo, Remember, Recall, Masquerade, Count, Reject, Drop, Go>;

/// Rules are equal when their digests are: a hash of the text, kept by the kernel as user data. One
/// read back from the kernel has no statements.
struct Rule {
  std::vector<Statement> statements;
  std::uint64_t digest = 0;  ///< 0: a rule that is not ours
  bool operator==(const Rule& other) const noexcept { return digest == other.digest; }
};

/// Where a base chain is hooked in.
struct Hook {
  std::string type;          ///< "filter", "nat"
  std::uint32_t number = 0;  ///< NF_INET_*
  std::int32_t priority = 0;
  bool operator==(const Hook&) const = default;
};

struct Chain {
  std::optional<Hook> hook;  ///< absent: a plain chain
  std::vector<Rule> rules;
  bool operator==(const Chain&) const = default;
};

struct SetSpec {
  enum class Kind : std::uint8_t {
    kSet,
    kIntervalSet,  ///< element keys are two keys: first and last
    kVerdictMap,
    kEndpointMap,  ///< to address . port
    kTimeoutSet,   ///< filled by rules; its elements are not part of the model
  };
  Kind kind = Kind::kSet;
  std::vector<Field> key;
  /// How many elements the kernel makes place for at once, and the most it takes; 0: it grows.
  std::uint32_t size = 0;
  /// The same but for the size: that is a matter of when a set was made.
  [[nodiscard]] bool is_like(const SetSpec& other) const {
    return kind == other.kind && key == other.key;
  }
};

/// Size of the set that rules fill; the kernel takes 16 bytes for each entry at once.
inline constexpr std::uint32_t kMostRemembered = 524288;

/// Value of an element, beside its key. Strings of bytes as the kernel has them.
struct ElementValue {
  std::string data;     ///< verdict map: the chain to go to; endpoint map: padded bytes
  std::string comment;  ///< at most 127 bytes
  bool operator==(const ElementValue&) const = default;
};
/// In no order, no key twice. A list: a whole rule set is only gone through, once.
using Elements = std::vector<std::pair<std::string, ElementValue>>;

/// One family's table, or a part of it.
struct Ruleset {
  core::Family family = core::Family::kIpv4;
  std::map<std::string, Chain> chains;
  std::map<std::string, SetSpec> sets;
  std::map<std::string, Elements> elements;  ///< by set
};

/// Padded bytes of a key; parts are appended in the order of the set's fields.
class KeyBytes {
 public:
  KeyBytes() = default;
  /// Goes on behind `begin`. @param more  bytes that are to come.
  KeyBytes(const std::string& begin, std::size_t more) {
    bytes_.reserve(begin.size() + more);
    bytes_ = begin;
  }
  KeyBytes& address(const core::IpAddress& a);
  KeyBytes& protocol(core::Protocol p);
  KeyBytes& port(std::uint16_t host_order);
  KeyBytes& slot(std::uint32_t slot);
  [[nodiscard]] std::string take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

/// Bytes of one part of a key, padded and not.
[[nodiscard]] std::size_t padded_size(Field field, core::Family family) noexcept;
[[nodiscard]] std::size_t field_size(Field field, core::Family family) noexcept;
/// Padded bytes of a whole key.
[[nodiscard]] std::size_t key_size(const std::vector<Field>& key, core::Family family) noexcept;

/// A rule with its digest.
[[nodiscard]] Rule make_rule(core::Family family, std::vector<Statement> statements);

}  // namespace sluice::kni::nft
