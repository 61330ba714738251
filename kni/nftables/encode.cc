#include "kni/nftables/encode.h"

#include <libnftnl/chain.h>
#include <libnftnl/common.h>
#include <libnftnl/set.h>
#include <libnftnl/table.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>

#include <memory>

#include "kni/nftables/encode_rule.h"
#include "kni/nftables/layout.h"
#include "kni/nftables/set_user_data.h"

namespace sluice::kni::nft {
namespace {

constexpr std::size_t kScratch = 128 * 1024;      // beyond any single message of libnftnl
constexpr std::size_t kMostElements = 60'000;     // bytes of one list; a nest's length has 16 bits
constexpr std::uint32_t kNoVerdictLength = 0xffffff00;  // NFT_DATA_VERDICT

struct FreeChain {
  void operator()(nftnl_chain* c) const noexcept { nftnl_chain_free(c); }
};
struct FreeSet {
  void operator()(nftnl_set* s) const noexcept { nftnl_set_free(s); }
};

std::string table_text(core::Family family, const std::string& name) {
  return std::string(family == core::Family::kIpv4 ? "ip " : "ip6 ") + name + " table ";
}

std::string name_of(core::Family family, const char* kind, const std::string& name) {
  return std::string(family == core::Family::kIpv4 ? "ip " : "ip6 ") + kTable + " " + kind + " " +
         name;
}

std::uint32_t type_number(Field field, core::Family family) {
  switch (field) {
    case Field::kSaddr:
    case Field::kDaddr:
      return family == core::Family::kIpv4 ? 7 : 8;
    case Field::kProtocol:
      return 12;
    case Field::kSport:
    case Field::kDport:
      return 13;
    case Field::kSlot:
      break;
  }
  return 4;  // integer
}

class Encoder {
 public:
  Encoder(Batch& batch, const Plan& plan)
      : batch_(batch), plan_(plan), family_(plan.family), scratch_(kScratch) {}

  void encode() {
    for (const std::string* chain : plan_.emptied) {
      named(NFT_MSG_DELRULE, NFTA_RULE_TABLE, NFTA_RULE_CHAIN, "chain", *chain);
    }
    for (const std::string* set : plan_.flushed) {
      named(NFT_MSG_DELSETELEM, NFTA_SET_ELEM_LIST_TABLE, NFTA_SET_ELEM_LIST_SET, "elements of",
            *set);
    }
    for (const Plan::ElementChange& change : plan_.removed) {
      elements(NFT_MSG_DELSETELEM, 0, change);
    }
    for (const std::string* set : plan_.deleted_sets) {  // before the chains its verdicts name
      named(NFT_MSG_DELSET, NFTA_SET_TABLE, NFTA_SET_NAME, "set", *set);
    }
    for (const std::string* chain : plan_.deleted_chains) {
      named(NFT_MSG_DELCHAIN, NFTA_CHAIN_TABLE, NFTA_CHAIN_NAME, "chain", *chain);
    }
    for (const auto& [name, spec] : plan_.new_sets) {
      new_set(*name, *spec);
    }
    for (const auto& [name, chain] : plan_.new_chains) {
      new_chain(*name, *chain);
    }
    for (const auto& [name, chain] : plan_.filled) {
      for (const Rule& rule : chain->rules) {
        batch_.append(*build_rule(scratch_, family_, *name, rule),
                      name_of(family_, "chain", *name));
      }
    }
    for (const Plan::ElementChange& change : plan_.added) {
      elements(NFT_MSG_NEWSETELEM, NLM_F_CREATE, change);
    }
  }

 private:
  /// A message that has nothing but the table and a name.
  void named(std::uint16_t type, std::uint16_t table, std::uint16_t attribute, const char* kind,
             const std::string& name) {
    batch_.begin(type, family_, 0, name_of(family_, kind, name));
    batch_.put_text(table, kTable);
    batch_.put_text(attribute, name);
    batch_.end();
  }

  void new_set(const std::string& name, const SetSpec& spec) {
    const std::unique_ptr<nftnl_set, FreeSet> set(nftnl_set_alloc());
    nftnl_set* s = set.get();
    nftnl_set_set_str(s, NFTNL_SET_TABLE, kTable);
    nftnl_set_set_str(s, NFTNL_SET_NAME, name.c_str());
    nftnl_set_set_u32(s, NFTNL_SET_FAMILY, family_number(family_));
    nftnl_set_set_u32(s, NFTNL_SET_ID, ++set_id_);
    nftnl_set_set_u32(s, NFTNL_SET_FLAGS, set_flags(spec.kind));
    nftnl_set_set_u32(s, NFTNL_SET_KEY_TYPE, key_type(spec.key, family_));
    nftnl_set_set_u32(s, NFTNL_SET_KEY_LEN,
                      static_cast<std::uint32_t>(key_size(spec.key, family_)));
    if (spec.kind == SetSpec::Kind::kVerdictMap) {
      nftnl_set_set_u32(s, NFTNL_SET_DATA_TYPE, kNoVerdictLength);
    } else if (spec.kind == SetSpec::Kind::kEndpointMap) {
      const std::vector<Field> value = {Field::kDaddr, Field::kDport};
      nftnl_set_set_u32(s, NFTNL_SET_DATA_TYPE, key_type(value, family_));
      nftnl_set_set_u32(s, NFTNL_SET_DATA_LEN,
                        static_cast<std::uint32_t>(key_size(value, family_)));
    } else if (spec.kind == SetSpec::Kind::kIntervalSet) {
      std::vector<std::uint8_t> parts;
      for (const Field field : spec.key) {
        parts.push_back(static_cast<std::uint8_t>(field_size(field, family_)));
      }
      nftnl_set_set_data(s, NFTNL_SET_DESC_CONCAT, parts.data(),
                         static_cast<std::uint32_t>(parts.size()));
    }
    if (spec.size != 0) {
      nftnl_set_set_u32(s, NFTNL_SET_DESC_SIZE, spec.size);
    }
    const std::string user_data = set_user_data(spec, family_);
    nftnl_set_set_data(s, NFTNL_SET_USERDATA, user_data.data(),
                       static_cast<std::uint32_t>(user_data.size()));
    nlmsghdr* h = header(NFT_MSG_NEWSET);
    nftnl_set_nlmsg_build_payload(h, s);
    batch_.append(*h, name_of(family_, "set", name));
  }

  void new_chain(const std::string& name, const Chain& chain) {
    const std::unique_ptr<nftnl_chain, FreeChain> c(nftnl_chain_alloc());
    nftnl_chain_set_str(c.get(), NFTNL_CHAIN_TABLE, kTable);
    nftnl_chain_set_str(c.get(), NFTNL_CHAIN_NAME, name.c_str());
    if (chain.hook) {
      nftnl_chain_set_str(c.get(), NFTNL_CHAIN_TYPE, chain.hook->type.c_str());
      nftnl_chain_set_u32(c.get(), NFTNL_CHAIN_HOOKNUM, chain.hook->number);
      nftnl_chain_set_s32(c.get(), NFTNL_CHAIN_PRIO, chain.hook->priority);
      nftnl_chain_set_u32(c.get(), NFTNL_CHAIN_POLICY, NF_ACCEPT);
    }
    nlmsghdr* h = header(NFT_MSG_NEWCHAIN);
    nftnl_chain_nlmsg_build_payload(h, c.get());
    batch_.append(*h, name_of(family_, "chain", name));
  }

  nlmsghdr* header(std::uint16_t type) {
    return nftnl_nlmsg_build_hdr(scratch_.data(), type, family_number(family_), NLM_F_CREATE, 0);
  }

  void elements(std::uint16_t type, std::uint16_t flags, const Plan::ElementChange& change) {
    std::size_t next = 0;
    while (next < change.elements.size()) {
      batch_.begin(type, family_, flags, name_of(family_, "elements of", *change.set));
      batch_.put_text(NFTA_SET_ELEM_LIST_TABLE, kTable);
      batch_.put_text(NFTA_SET_ELEM_LIST_SET, *change.set);
      const std::size_t list = batch_.open(NFTA_SET_ELEM_LIST_ELEMENTS);
      while (next < change.elements.size() && batch_.size() - list < kMostElements) {
        element(*change.spec, *change.elements[next++], type == NFT_MSG_NEWSETELEM);
      }
      batch_.close(list);
      batch_.end();
    }
  }

  void element(const SetSpec& spec, const Elements::value_type& e, bool with_value) {
    const std::size_t nest = batch_.open(NFTA_LIST_ELEM);
    const std::string_view key = e.first;
    if (spec.kind == SetSpec::Kind::kIntervalSet) {
      put_data(NFTA_SET_ELEM_KEY, key.substr(0, key.size() / 2));
      put_data(NFTA_SET_ELEM_KEY_END, key.substr(key.size() / 2));
    } else {
      put_data(NFTA_SET_ELEM_KEY, key);
    }
    if (with_value && spec.kind == SetSpec::Kind::kVerdictMap) {
      put_goto(e.second.data);
    } else if (with_value && spec.kind == SetSpec::Kind::kEndpointMap) {
      put_data(NFTA_SET_ELEM_DATA, e.second.data);
    }
    if (with_value && !e.second.comment.empty()) {
      batch_.put(NFTA_SET_ELEM_USERDATA, comment_user_data(e.second.comment));
    }
    batch_.close(nest);
  }

  void put_data(std::uint16_t attribute, std::string_view bytes) {
    const std::size_t nest = batch_.open(attribute);
    batch_.put(NFTA_DATA_VALUE, bytes);
    batch_.close(nest);
  }

  void put_goto(const std::string& chain) {
    const std::size_t data = batch_.open(NFTA_SET_ELEM_DATA);
    const std::size_t verdict = batch_.open(NFTA_DATA_VERDICT);
    batch_.put_be32(NFTA_VERDICT_CODE, static_cast<std::uint32_t>(NFT_GOTO));
    batch_.put_text(NFTA_VERDICT_CHAIN, chain);
    batch_.close(verdict);
    batch_.close(data);
  }

  Batch& batch_;
  const Plan& plan_;
  core::Family family_;
  std::vector<char> scratch_;
  std::uint32_t set_id_ = 0;
};

}  // namespace

std::uint32_t key_type(const std::vector<Field>& key, core::Family family) noexcept {
  std::uint32_t type = 0;
  for (const Field field : key) {
    type = type << 6 | type_number(field, family);
  }
  return type;
}

std::uint32_t set_flags(SetSpec::Kind kind) noexcept {
  constexpr std::uint32_t kConcat = 0x80;  // NFT_SET_CONCAT, absent from older headers
  switch (kind) {
    case SetSpec::Kind::kSet:
      return 0;
    case SetSpec::Kind::kIntervalSet:
      return NFT_SET_INTERVAL | kConcat;
    case SetSpec::Kind::kVerdictMap:
    case SetSpec::Kind::kEndpointMap:
      return NFT_SET_MAP;
    case SetSpec::Kind::kTimeoutSet:
      break;
  }
  return NFT_SET_EVAL | NFT_SET_TIMEOUT;
}

void encode_table(Batch& batch, core::Family family, const std::string& name) {
  batch.begin(NFT_MSG_NEWTABLE, family, NLM_F_CREATE, table_text(family, name));
  batch.put_text(NFTA_TABLE_NAME, name);
  if (name == kTable) {
    batch.put_be32(NFTA_TABLE_FLAGS, 0);  // not dormant; those of others are only removed
  }
  batch.end();
}

void encode_table_end(Batch& batch, core::Family family, const std::string& name) {
  batch.begin(NFT_MSG_DELTABLE, family, 0, table_text(family, name));
  batch.put_text(NFTA_TABLE_NAME, name);
  batch.end();
}

void encode_forgetting(Batch& batch, core::Family family, const std::vector<std::string>& keys) {
  const std::string set = names::kAffinity;
  const SetSpec spec = affinity_set();
  Elements elements;
  for (const std::string& key : keys) {
    elements.emplace_back(key, ElementValue());
  }
  Plan plan;
  plan.family = family;
  Plan::ElementChange change{&set, &spec, {}};
  for (const auto& element : elements) {
    change.elements.push_back(&element);
  }
  plan.removed.push_back(std::move(change));
  encode(batch, plan);
}

void encode(Batch& batch, const Plan& plan) {
  Encoder(batch, plan).encode();
}

}  // namespace sluice::kni::nft
