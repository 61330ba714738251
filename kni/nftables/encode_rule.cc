#include "kni/nftables/encode_rule.h"

#include <arpa/inet.h>  // before the kernel's own headers, which leave out what it has
#include <libnftnl/common.h>
#include <libnftnl/expr.h>
#include <libnftnl/rule.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_conntrack_common.h>
#include <linux/netfilter/nf_nat.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/rtnetlink.h>

#include <array>
#include <cstring>
#include <memory>

#include "kni/nftables/batch.h"

namespace sluice::kni::nft {
namespace {

constexpr std::uint32_t kWordsPerRegister = 4;
constexpr std::uint32_t kScratchWord = 8;  // beyond the longest key that has a pick
constexpr std::uint32_t kStateNew = 1u << (IP_CT_NEW + 1);
constexpr std::uint8_t kPortUnreachable4 = 3;    // ICMP code
constexpr std::uint8_t kPortUnreachable6 = 4;    // ICMPv6 code

struct FreeRule {
  void operator()(nftnl_rule* rule) const noexcept { nftnl_rule_free(rule); }
};

/// Register that begins at a 4-byte word, by the number the kernel prefers.
constexpr std::uint32_t register_at(std::uint32_t word) {
  return word % kWordsPerRegister == 0 ? NFT_REG_1 + word / kWordsPerRegister : NFT_REG32_00 + word;
}

/// Appends the expressions of one rule.
class Writer {
 public:
  Writer(nftnl_rule* rule, core::Family family) : rule_(rule), family_(family) {}

  void operator()(const CtStateNew&) { flag_of_ct(NFT_CT_STATE, kStateNew); }
  void operator()(const CtStatusDnat&) { flag_of_ct(NFT_CT_STATUS, IPS_DST_NAT); }
  void operator()(const FibLocal& s) {
    nftnl_expr* e = add("fib");
    nftnl_expr_set_u32(e, NFTNL_EXPR_FIB_DREG, NFT_REG_1);
    nftnl_expr_set_u32(e, NFTNL_EXPR_FIB_RESULT, NFT_FIB_RESULT_ADDRTYPE);
    nftnl_expr_set_u32(e, NFTNL_EXPR_FIB_FLAGS,
                       s.side == Side::kSaddr ? NFTA_FIB_F_SADDR : NFTA_FIB_F_DADDR);
    compare_u32(NFT_CMP_EQ, RTN_LOCAL);
  }
  void operator()(const InPrefix& s) {
    load(s.side == Side::kSaddr ? Field::kSaddr : Field::kDaddr, 0);
    const std::size_t size = s.cidr.address().size();
    if (s.cidr.length() < size * 8) {
      std::array<std::uint8_t, 16> mask{};
      for (unsigned bit = 0; bit < s.cidr.length(); ++bit) {
        mask[bit / 8] = static_cast<std::uint8_t>(mask[bit / 8] | (0x80u >> bit % 8));
      }
      const std::array<std::uint8_t, 16> none{};
      bitwise(mask.data(), none.data(), size);
    }
    compare(s.negate ? NFT_CMP_NEQ : NFT_CMP_EQ, s.cidr.address().data(), size);
  }
  void operator()(const IngressIs& s) {
    load_meta(NFT_META_IIFNAME, 0);
    std::array<char, 16> name{};
    std::strncpy(name.data(), s.name.c_str(), name.size() - 1);
    compare(s.negate ? NFT_CMP_NEQ : NFT_CMP_EQ, name.data(),
            s.prefix ? std::strlen(name.data()) : name.size());
  }
  void operator()(const ProtocolIs& s) {
    load_meta(NFT_META_L4PROTO, 0);
    const auto number = static_cast<std::uint8_t>(s.protocol);
    compare(NFT_CMP_EQ, &number, sizeof(number));
  }
  void operator()(const OneIn& s) {
    random(NFT_REG_1, s.n, 0);
    compare_u32(NFT_CMP_EQ, 0);
  }
  void operator()(const MarkHas& s) {
    load_meta(NFT_META_MARK, 0);
    const std::uint32_t none = 0;
    bitwise(&s.bit, &none, sizeof(s.bit));
    compare_u32(NFT_CMP_EQ, s.bit);
  }
  void operator()(const MarkSet& s) { change_mark(~s.bit, s.bit); }
  void operator()(const MarkClear& s) { change_mark(~0u, s.bit); }
  void operator()(const InSet& s) {
    load_key(s.key);
    nftnl_expr* e = lookup(s.set);
    if (s.negate) {
      nftnl_expr_set_u32(e, NFTNL_EXPR_LOOKUP_FLAGS, NFT_LOOKUP_F_INV);
    }
  }
  void operator()(const VerdictMap& s) {
    load_key(s.key);
    nftnl_expr_set_u32(lookup(s.map), NFTNL_EXPR_LOOKUP_DREG, NFT_REG_VERDICT);
  }
  void operator()(const DnatMap& s) {
    pick(s.pick, load_key(s.key));
    nftnl_expr_set_u32(lookup(s.map), NFTNL_EXPR_LOOKUP_DREG, NFT_REG_1);
    const std::uint32_t port_word = family_ == core::Family::kIpv4 ? 1 : kWordsPerRegister;
    nat(NFT_REG_1, register_at(port_word), 0);
  }
  void operator()(const DnatTo& s) {
    immediate(NFT_REG_1, s.address.data(), s.address.size());
    const std::uint16_t port = htons(s.port);
    immediate(NFT_REG_2, &port, sizeof(port));
    nat(NFT_REG_1, NFT_REG_2, NF_NAT_RANGE_PROTO_SPECIFIED);
  }
  void operator()(const Remember& s) {
    load_remembered(s.number);
    nftnl_expr* e = add("dynset");
    nftnl_expr_set_u32(e, NFTNL_EXPR_DYNSET_OP, NFT_DYNSET_OP_UPDATE);
    nftnl_expr_set_u32(e, NFTNL_EXPR_DYNSET_SREG_KEY, NFT_REG_1);
    nftnl_expr_set_str(e, NFTNL_EXPR_DYNSET_SET_NAME, s.set.c_str());
    nftnl_expr_set_u64(e, NFTNL_EXPR_DYNSET_TIMEOUT, std::uint64_t{s.seconds} * 1000);
  }
  void operator()(const Recall& s) {
    load_remembered(s.number);
    lookup(s.set);
  }
  void operator()(const Masquerade& s) {
    if (s.ports) {
      const std::uint16_t first = htons(s.ports->first);
      const std::uint16_t last = htons(s.ports->last);
      immediate(NFT_REG_1, &first, sizeof(first));
      immediate(NFT_REG_2, &last, sizeof(last));
    }
    nftnl_expr* e = add("masq");
    if (s.ports) {
      nftnl_expr_set_u32(e, NFTNL_EXPR_MASQ_REG_PROTO_MIN, NFT_REG_1);
      nftnl_expr_set_u32(e, NFTNL_EXPR_MASQ_REG_PROTO_MAX, NFT_REG_2);
    }
    // Without "specified" the kernel takes the ports and then any port (nf_nat_core.c).
    const std::uint32_t range = s.ports ? NF_NAT_RANGE_PROTO_SPECIFIED : 0;
    nftnl_expr_set_u32(e, NFTNL_EXPR_MASQ_FLAGS, NF_NAT_RANGE_PROTO_RANDOM_FULLY | range);
  }
  void operator()(const Count&) { add("counter"); }
  void operator()(const Reject&) {
    nftnl_expr* e = add("reject");
    nftnl_expr_set_u32(e, NFTNL_EXPR_REJECT_TYPE, NFT_REJECT_ICMP_UNREACH);
    nftnl_expr_set_u8(e, NFTNL_EXPR_REJECT_CODE,
                      family_ == core::Family::kIpv4 ? kPortUnreachable4 : kPortUnreachable6);
  }
  void operator()(const Drop&) { verdict(NF_DROP, nullptr); }
  void operator()(const Go& s) {
    verdict(static_cast<std::uint32_t>(s.jump ? NFT_JUMP : NFT_GOTO), s.chain.c_str());
  }

 private:
  nftnl_expr* add(const char* name) {
    nftnl_expr* e = nftnl_expr_alloc(name);
    nftnl_rule_add_expr(rule_, e);
    return e;
  }

  /// Loads one field at a word.
  void load(Field field, std::uint32_t word) {
    const bool v4 = family_ == core::Family::kIpv4;
    if (field == Field::kProtocol) {
      load_meta(NFT_META_L4PROTO, word);
      return;
    }
    nftnl_expr* e = add("payload");
    const bool transport = field == Field::kDport || field == Field::kSport;
    const std::uint32_t offset = field == Field::kDport   ? 2
                                 : field == Field::kSport ? 0
                                 : field == Field::kSaddr ? (v4 ? 12 : 8)
                                                          : (v4 ? 16 : 24);
    nftnl_expr_set_u32(e, NFTNL_EXPR_PAYLOAD_DREG, register_at(word));
    nftnl_expr_set_u32(e, NFTNL_EXPR_PAYLOAD_BASE,
                       transport ? NFT_PAYLOAD_TRANSPORT_HEADER : NFT_PAYLOAD_NETWORK_HEADER);
    nftnl_expr_set_u32(e, NFTNL_EXPR_PAYLOAD_OFFSET, offset);
    nftnl_expr_set_u32(e, NFTNL_EXPR_PAYLOAD_LEN,
                       static_cast<std::uint32_t>(field_size(field, family_)));
  }

  void load_meta(std::uint32_t key, std::uint32_t word) {
    nftnl_expr* e = add("meta");
    nftnl_expr_set_u32(e, NFTNL_EXPR_META_KEY, key);
    nftnl_expr_set_u32(e, NFTNL_EXPR_META_DREG, register_at(word));
  }

  /// @return the first word behind the key.
  std::uint32_t load_key(const std::vector<Field>& key) {
    std::uint32_t word = 0;
    for (const Field field : key) {
      load(field, word);
      word += static_cast<std::uint32_t>(padded_size(field, family_) / 4);
    }
    return word;
  }

  void random(std::uint32_t dreg, std::uint32_t modulus, std::uint32_t offset) {
    nftnl_expr* e = add("numgen");
    nftnl_expr_set_u32(e, NFTNL_EXPR_NG_DREG, dreg);
    nftnl_expr_set_u32(e, NFTNL_EXPR_NG_TYPE, NFT_NG_RANDOM);
    nftnl_expr_set_u32(e, NFTNL_EXPR_NG_MODULUS, modulus);
    nftnl_expr_set_u32(e, NFTNL_EXPR_NG_OFFSET, offset);
  }

  /// Key of a set that remembers: source and number.
  void load_remembered(std::uint32_t number) {
    load(Field::kSaddr, 0);
    random(register_at(static_cast<std::uint32_t>(padded_size(Field::kSaddr, family_) / 4)), 1,
           number);
  }

  void pick(const Pick& p, std::uint32_t word) {
    if (p.kind == Pick::Kind::kRandom) {
      random(register_at(word), p.modulus, p.offset);
      return;
    }
    load(Field::kSaddr, kScratchWord);
    std::size_t hashed = padded_size(Field::kSaddr, family_);
    if (p.kind == Pick::Kind::kSourcePortHash) {
      load(Field::kSport, kScratchWord + static_cast<std::uint32_t>(hashed / 4));
      hashed += padded_size(Field::kSport, family_);
    }
    nftnl_expr* e = add("hash");
    nftnl_expr_set_u32(e, NFTNL_EXPR_HASH_TYPE, NFT_HASH_JENKINS);
    nftnl_expr_set_u32(e, NFTNL_EXPR_HASH_SREG, register_at(kScratchWord));
    nftnl_expr_set_u32(e, NFTNL_EXPR_HASH_DREG, register_at(word));
    nftnl_expr_set_u32(e, NFTNL_EXPR_HASH_LEN, static_cast<std::uint32_t>(hashed));
    nftnl_expr_set_u32(e, NFTNL_EXPR_HASH_MODULUS, p.modulus);
    nftnl_expr_set_u32(e, NFTNL_EXPR_HASH_OFFSET, p.offset);
    nftnl_expr_set_u32(e, NFTNL_EXPR_HASH_SEED, seed_of(p));
  }

  nftnl_expr* lookup(const std::string& set) {
    nftnl_expr* e = add("lookup");
    nftnl_expr_set_u32(e, NFTNL_EXPR_LOOKUP_SREG, NFT_REG_1);
    nftnl_expr_set_str(e, NFTNL_EXPR_LOOKUP_SET, set.c_str());
    return e;
  }

  void compare(std::uint32_t op, const void* data, std::size_t size) {
    nftnl_expr* e = add("cmp");
    nftnl_expr_set_u32(e, NFTNL_EXPR_CMP_SREG, NFT_REG_1);
    nftnl_expr_set_u32(e, NFTNL_EXPR_CMP_OP, op);
    nftnl_expr_set(e, NFTNL_EXPR_CMP_DATA, data, static_cast<std::uint32_t>(size));
  }
  void compare_u32(std::uint32_t op, std::uint32_t host_order) {
    compare(op, &host_order, sizeof(host_order));
  }

  void bitwise(const void* mask, const void* flip, std::size_t size) {
    nftnl_expr* e = add("bitwise");
    const auto length = static_cast<std::uint32_t>(size);
    nftnl_expr_set_u32(e, NFTNL_EXPR_BITWISE_SREG, NFT_REG_1);
    nftnl_expr_set_u32(e, NFTNL_EXPR_BITWISE_DREG, NFT_REG_1);
    nftnl_expr_set_u32(e, NFTNL_EXPR_BITWISE_LEN, length);
    nftnl_expr_set(e, NFTNL_EXPR_BITWISE_MASK, mask, length);
    nftnl_expr_set(e, NFTNL_EXPR_BITWISE_XOR, flip, length);
  }

  void flag_of_ct(std::uint32_t key, std::uint32_t flag) {
    nftnl_expr* e = add("ct");
    nftnl_expr_set_u32(e, NFTNL_EXPR_CT_KEY, key);
    nftnl_expr_set_u32(e, NFTNL_EXPR_CT_DREG, NFT_REG_1);
    const std::uint32_t none = 0;
    bitwise(&flag, &none, sizeof(flag));
    compare_u32(NFT_CMP_NEQ, 0);
  }

  void change_mark(std::uint32_t mask, std::uint32_t flip) {
    load_meta(NFT_META_MARK, 0);
    bitwise(&mask, &flip, sizeof(mask));
    nftnl_expr* e = add("meta");
    nftnl_expr_set_u32(e, NFTNL_EXPR_META_KEY, NFT_META_MARK);
    nftnl_expr_set_u32(e, NFTNL_EXPR_META_SREG, NFT_REG_1);
  }

  void immediate(std::uint32_t dreg, const void* data, std::size_t size) {
    nftnl_expr* e = add("immediate");
    nftnl_expr_set_u32(e, NFTNL_EXPR_IMM_DREG, dreg);
    nftnl_expr_set(e, NFTNL_EXPR_IMM_DATA, data, static_cast<std::uint32_t>(size));
  }

  void verdict(std::uint32_t code, const char* chain) {
    nftnl_expr* e = add("immediate");
    nftnl_expr_set_u32(e, NFTNL_EXPR_IMM_DREG, NFT_REG_VERDICT);
    nftnl_expr_set_u32(e, NFTNL_EXPR_IMM_VERDICT, code);
    if (chain != nullptr) {
      nftnl_expr_set_str(e, NFTNL_EXPR_IMM_CHAIN, chain);
    }
  }

  void nat(std::uint32_t address, std::uint32_t port, std::uint32_t flags) {
    nftnl_expr* e = add("nat");
    nftnl_expr_set_u32(e, NFTNL_EXPR_NAT_TYPE, NFT_NAT_DNAT);
    nftnl_expr_set_u32(e, NFTNL_EXPR_NAT_FAMILY, family_number(family_));
    nftnl_expr_set_u32(e, NFTNL_EXPR_NAT_REG_ADDR_MIN, address);
    nftnl_expr_set_u32(e, NFTNL_EXPR_NAT_REG_PROTO_MIN, port);
    if (flags != 0) {
      nftnl_expr_set_u32(e, NFTNL_EXPR_NAT_FLAGS, flags);
    }
  }

  nftnl_rule* rule_;
  core::Family family_;
};

}  // namespace

const nlmsghdr* build_rule(std::vector<char>& buffer, core::Family family, const std::string& chain,
                           const Rule& rule) {
  const std::unique_ptr<nftnl_rule, FreeRule> r(nftnl_rule_alloc());
  nftnl_rule_set_str(r.get(), NFTNL_RULE_TABLE, kTable);
  nftnl_rule_set_str(r.get(), NFTNL_RULE_CHAIN, chain.c_str());
  nftnl_rule_set_u32(r.get(), NFTNL_RULE_FAMILY, family_number(family));
  std::array<char, 2 + sizeof(rule.digest)> user_data{static_cast<char>(kDigestUserData),
                                                      sizeof(rule.digest)};
  std::memcpy(user_data.data() + 2, &rule.digest, sizeof(rule.digest));
  nftnl_rule_set_data(r.get(), NFTNL_RULE_USERDATA, user_data.data(), user_data.size());
  Writer writer(r.get(), family);
  for (const Statement& statement : rule.statements) {
    std::visit(writer, statement);
  }
  nlmsghdr* h = nftnl_nlmsg_build_hdr(buffer.data(), NFT_MSG_NEWRULE, family_number(family),
                                      NLM_F_CREATE | NLM_F_APPEND, 0);
  nftnl_rule_nlmsg_build_payload(h, r.get());
  return h;
}

}  // namespace sluice::kni::nft
