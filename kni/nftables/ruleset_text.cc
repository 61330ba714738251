#include "kni/nftables/ruleset_text.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>
#include <set>
#include <string_view>

namespace sluice::kni::nft {
namespace {

template <class... Visitors>
struct Overloaded : Visitors... {
  using Visitors::operator()...;
};
template <class... Visitors>
Overloaded(Visitors...) -> Overloaded<Visitors...>;

std::string ip(core::Family family) {
  return family == core::Family::kIpv4 ? "ip" : "ip6";
}

std::string side_text(Side side) {
  return side == Side::kSaddr ? "saddr" : "daddr";
}

std::string hex(std::uint32_t value) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string out = "0x";
  for (int shift = 28; shift >= 0; shift -= 4) {
    out += kDigits[(value >> shift) & 0xf];
  }
  return out;
}

std::string field_text(core::Family family, Field field) {
  switch (field) {
    case Field::kSaddr:
      return ip(family) + " saddr";
    case Field::kDaddr:
      return ip(family) + " daddr";
    case Field::kProtocol:
      return "meta l4proto";
    case Field::kSport:
      return "th sport";
    case Field::kDport:
      return "th dport";
    case Field::kSlot:
      break;
  }
  return "numgen random mod 2";  // what a slot's type is taken from
}

std::string key_text(core::Family family, const std::vector<Field>& key) {
  std::string out;
  for (const Field field : key) {
    out += (out.empty() ? "" : " . ") + field_text(family, field);
  }
  return out;
}

std::string pick_text(core::Family family, const Pick& pick) {
  std::string out =
      pick.kind == Pick::Kind::kRandom ? "numgen random" : "jhash " + ip(family) + " saddr";
  if (pick.kind == Pick::Kind::kSourcePortHash) {
    out += " . th sport";
  }
  out += " mod " + std::to_string(pick.modulus);
  if (pick.kind != Pick::Kind::kRandom) {
    char seed[24];
    std::snprintf(seed, sizeof(seed), " seed 0x%08x", seed_of(pick));
    out += seed;
  }
  return pick.offset == 0 ? out : out + " offset " + std::to_string(pick.offset);
}

std::string number_text(std::uint32_t number) {
  return "numgen random mod 1 offset " + std::to_string(number);
}

std::string_view equal_text(bool negate) {
  return negate ? "!= " : "";
}

std::string statement_text(core::Family family, const Statement& statement) {
  const std::string f = ip(family);
  return std::visit(
      Overloaded{
          [](const CtStateNew&) -> std::string { return "ct state new"; },
          [](const CtStatusDnat&) -> std::string { return "ct status dnat"; },
          [](const FibLocal& s) { return "fib " + side_text(s.side) + " type local"; },
          [&](const InPrefix& s) {
            return f + " " + side_text(s.side) + " " + std::string(equal_text(s.negate)) +
                   core::to_string(s.cidr);
          },
          [](const IngressIs& s) {
            return "iifname " + std::string(equal_text(s.negate)) + "\"" + s.name +
                   (s.prefix ? "*\"" : "\"");
          },
          [](const ProtocolIs& s) {
            return "meta l4proto " + std::string(core::protocol_name(s.protocol));
          },
          [](const OneIn& s) { return "numgen random mod " + std::to_string(s.n) + " 0"; },
          [](const MarkHas& s) { return "meta mark & " + hex(s.bit) + " == " + hex(s.bit); },
          [](const MarkSet& s) { return "meta mark set meta mark | " + hex(s.bit); },
          [](const MarkClear& s) { return "meta mark set meta mark ^ " + hex(s.bit); },
          [&](const InSet& s) {
            return key_text(family, s.key) + " " + std::string(equal_text(s.negate)) + "@" + s.set;
          },
          [&](const VerdictMap& s) { return key_text(family, s.key) + " vmap @" + s.map; },
          [&](const DnatMap& s) {
            return "dnat " + f + " to " + key_text(family, s.key) + " . " +
                   pick_text(family, s.pick) + " map @" + s.map;
          },
          [](const DnatTo& s) { return "dnat to " + core::to_string(s.address, s.port); },
          [&](const Remember& s) {
            return "update @" + s.set + " { " + f + " saddr . " + number_text(s.number) +
                   " timeout " + std::to_string(s.seconds) + "s }";
          },
          [&](const Recall& s) { return f + " saddr . " + number_text(s.number) + " @" + s.set; },
          [](const Masquerade& s) {
            const std::string ports = s.ports ? "to :" + std::to_string(s.ports->first) + "-" +
                                                    std::to_string(s.ports->last) + " "
                                              : "";
            return "masquerade " + ports + "fully-random";
          },
          [](const Count&) -> std::string { return "counter"; },
          [](const Reject&) -> std::string { return "reject"; },
          [](const Drop&) -> std::string { return "drop"; },
          [](const Go& s) { return (s.jump ? "jump " : "goto ") + s.chain; },
      },
      statement);
}

/// Reads the parts of padded key bytes.
class KeyReader {
 public:
  KeyReader(core::Family family, const std::string& bytes) : family_(family), at_(bytes.data()) {}
  std::string next(Field field) {
    const char* at = at_;
    at_ += padded_size(field, family_);
    const auto byte = [at](std::size_t i) { return static_cast<unsigned char>(at[i]); };
    switch (field) {
      case Field::kSaddr:
      case Field::kDaddr:
        return core::to_string(family_ == core::Family::kIpv4
                                   ? core::IpAddress(core::Ipv4Address::load(at))
                                   : core::IpAddress(core::Ipv6Address::load(at)));
      case Field::kProtocol:
        return std::string(core::protocol_name(static_cast<core::Protocol>(byte(0))));
      case Field::kSport:
      case Field::kDport:
        return std::to_string(byte(0) << 8 | byte(1));
      case Field::kSlot:
        break;
    }
    std::uint32_t slot = 0;
    std::memcpy(&slot, at, sizeof(slot));
    return std::to_string(slot);
  }

 private:
  core::Family family_;
  const char* at_;
};

std::string element_key_text(core::Family family, const SetSpec& spec, const std::string& bytes) {
  KeyReader first(family, bytes);
  const bool interval = spec.kind == SetSpec::Kind::kIntervalSet;
  const std::string rest = interval ? bytes.substr(key_size(spec.key, family)) : bytes;
  KeyReader last(family, rest);
  std::string out;
  for (const Field field : spec.key) {
    const std::string from = first.next(field);
    const std::string to = last.next(field);
    out += (out.empty() ? "" : " . ") + from + (interval && from != to ? "-" + to : "");
  }
  return out;
}

std::string element_text(core::Family family, const SetSpec& spec, const std::string& key,
                         const ElementValue& value) {
  std::string out = element_key_text(family, spec, key);
  if (!value.comment.empty()) {
    out += " comment \"" + value.comment + "\"";
  }
  if (spec.kind == SetSpec::Kind::kVerdictMap) {
    out += " : goto " + value.data;
  } else if (spec.kind == SetSpec::Kind::kEndpointMap) {
    KeyReader reader(family, value.data);
    const std::string address = reader.next(Field::kDaddr);
    out += " : " + address + " . " + reader.next(Field::kDport);
  }
  return out;
}

std::string type_text(core::Family family, const SetSpec& spec) {
  using Kind = SetSpec::Kind;
  const std::string out = "typeof " + key_text(family, spec.key);
  const std::string end = spec.size == 0 ? ";" : "; size " + std::to_string(spec.size) + ";";
  switch (spec.kind) {
    case Kind::kSet:
      return out + end;
    case Kind::kIntervalSet:
      return out + "; flags interval;";
    case Kind::kVerdictMap:
      return out + " : verdict" + end;
    case Kind::kEndpointMap:
      return out + " : " + key_text(family, {Field::kDaddr, Field::kDport}) + end;
    case Kind::kTimeoutSet:
      break;
  }
  return out + "; flags dynamic,timeout" + end;
}

std::string set_text(const Ruleset& ruleset, const std::string& name, const SetSpec& spec) {
  const bool map =
      spec.kind == SetSpec::Kind::kVerdictMap || spec.kind == SetSpec::Kind::kEndpointMap;
  std::string out = std::string("  ") + (map ? "map " : "set ") + name + " {\n    " +
                    type_text(ruleset.family, spec) + "\n";
  const auto found = ruleset.elements.find(name);
  if (found != ruleset.elements.end() && !found->second.empty()) {
    std::set<std::string> lines;
    for (const auto& [key, value] : found->second) {
      lines.insert("      " + element_text(ruleset.family, spec, key, value) + ",\n");
    }
    out += "    elements = {\n";
    for (const std::string& line : lines) {
      out += line;
    }
    out += "    }\n";
  }
  return out + "  }\n";
}

std::string chain_text(core::Family family, const std::string& name, const Chain& chain) {
  constexpr std::array<const char*, 5> kHooks = {"prerouting", "input", "forward", "output",
                                                 "postrouting"};
  std::string out = "  chain " + name + " {\n";
  if (chain.hook) {
    out += "    type " + chain.hook->type + " hook " + kHooks.at(chain.hook->number) +
           " priority " + std::to_string(chain.hook->priority) + "; policy accept;\n";
  }
  for (const Rule& rule : chain.rules) {
    out += "    " + rule_text(family, rule) + "\n";
  }
  return out + "  }\n";
}

}  // namespace

std::string rule_text(core::Family family, const Rule& rule) {
  std::string out;
  for (const Statement& statement : rule.statements) {
    out += (out.empty() ? "" : " ") + statement_text(family, statement);
  }
  return out;
}

std::string ruleset_text(const Ruleset& ruleset) {
  std::string out = "table " + ip(ruleset.family) + " " + kTable + " {\n";
  for (const auto& [name, spec] : ruleset.sets) {
    out += set_text(ruleset, name, spec);
  }
  for (const auto& [name, chain] : ruleset.chains) {
    out += chain_text(ruleset.family, name, chain);
  }
  return out + "}\n";
}

}  // namespace sluice::kni::nft
