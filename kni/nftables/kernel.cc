#include "kni/nftables/kernel.h"

#include <linux/netfilter/nf_tables.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "kni/nftables/encode.h"
#include "kni/nftables/set_user_data.h"
#include "kni/nftables/socket.h"

namespace sluice::kni::nft {
namespace {

using core::Family;

constexpr Family kFamilies[] = {Family::kIpv4, Family::kIpv6};
constexpr std::size_t kLargeBatch = 64 << 10;
constexpr int kTries = 5;  // of a listing that changes while it is read

std::string verdict_target(const Attributes& data) {
  const Attributes verdict = data.nest(NFTA_DATA_VERDICT);
  const bool go = static_cast<std::int32_t>(verdict.u32(NFTA_VERDICT_CODE)) == NFT_GOTO;
  return go ? verdict.text(NFTA_VERDICT_CHAIN) : std::string();
}

/// Reads one of our tables.
class Reader {
 public:
  Reader(Socket& socket, Family family) : socket_(socket), family_(family) { out_.family = family; }

  int read(Ruleset& to, bool with_elements) {
    for (const auto& step : {&Reader::read_sets, &Reader::read_chains, &Reader::read_rules}) {
      if (const int rc = (this->*step)(); rc != 0) {
        return rc;
      }
    }
    if (const int rc = with_elements ? read_elements() : 0; rc != 0) {
      return rc;
    }
    to = std::move(out_);
    return 0;
  }

 private:
  int list(std::uint16_t type, const std::string& attributes, std::uint16_t table,
           const std::function<void(const Attributes&)>& handler) {
    const std::uint8_t number = family_number(family_);
    return socket_.request(type, number, NLM_F_DUMP, attributes,
                           [&](std::uint8_t family, const Attributes& a) {
                             if (family == number && a.text(table) == kTable) {
                               handler(a);
                             }
                           });
  }

  int read_sets() {
    return list(NFT_MSG_GETSET, text_attribute(NFTA_SET_TABLE, kTable), NFTA_SET_TABLE,
                [&](const Attributes& a) {
                  if ((a.u32(NFTA_SET_FLAGS) & NFT_SET_ANONYMOUS) == 0) {
                    const std::string name = a.text(NFTA_SET_NAME);
                    out_.sets[name] = spec_of(name, a);
                  }
                });
  }

  /// The spec by which we make a set of this name, if the kernel's is such a one; else one that no
  /// set of ours has.
  [[nodiscard]] SetSpec spec_of(const std::string& name, const Attributes& a) const {
    const auto found = node_sets().find(name);
    const SetSpec wanted = found != node_sets().end() ? found->second
                           : name == names::kAffinity  ? affinity_set()
                                                       : SetSpec{};
    const bool same = a.u32(NFTA_SET_FLAGS) == set_flags(wanted.kind) &&
                      a.u32(NFTA_SET_KEY_TYPE) == key_type(wanted.key, family_) &&
                      a.u32(NFTA_SET_KEY_LEN) == key_size(wanted.key, family_);
    SetSpec spec = same ? wanted : SetSpec{};
    spec.size = a.nest(NFTA_SET_DESC).u32(NFTA_SET_DESC_SIZE);
    return spec;
  }

  int read_chains() {
    return list(NFT_MSG_GETCHAIN, {}, NFTA_CHAIN_TABLE, [&](const Attributes& a) {
      Chain& chain = out_.chains[a.text(NFTA_CHAIN_NAME)];
      const Attributes hook = a.nest(NFTA_CHAIN_HOOK);
      if (!a.find(NFTA_CHAIN_HOOK).empty()) {
        chain.hook = Hook{a.text(NFTA_CHAIN_TYPE), hook.u32(NFTA_HOOK_HOOKNUM),
                          static_cast<std::int32_t>(hook.u32(NFTA_HOOK_PRIORITY))};
        constexpr std::uint32_t kAccept = 1;  // NF_ACCEPT
        if (a.u32(NFTA_CHAIN_POLICY) != kAccept) {
          chain.hook->type.clear();  // none of ours is so: it is made anew
        }
      }
    });
  }

  /// Chain by chain: of a table the kernel walks all rules anew for every piece of the answer.
  int read_rules() {
    const std::string table = text_attribute(NFTA_RULE_TABLE, kTable);
    for (auto& [name, named] : out_.chains) {
      Chain& chain = named;  // clang 14 takes no structured binding into a lambda
      const int rc = list(NFT_MSG_GETRULE, table + text_attribute(NFTA_RULE_CHAIN, name),
                          NFTA_RULE_TABLE, [&](const Attributes& a) {
                            Rule rule;
                            rule.digest = read_digest(a.find(NFTA_RULE_USERDATA));
                            chain.rules.push_back(std::move(rule));
                          });
      if (rc != 0 && rc != ENOENT) {
        return rc;
      }
    }
    return 0;
  }

  int read_elements() {
    for (const auto& [name, set] : out_.sets) {
      const SetSpec& spec = set;  // clang 14 takes no structured binding into a lambda
      if (spec.kind == SetSpec::Kind::kTimeoutSet || spec.key.empty()) {
        continue;
      }
      Elements& elements = out_.elements[name];
      const std::string attributes = text_attribute(NFTA_SET_ELEM_LIST_TABLE, kTable) +
                                     text_attribute(NFTA_SET_ELEM_LIST_SET, name);
      const int rc =
          list(NFT_MSG_GETSETELEM, attributes, NFTA_SET_ELEM_LIST_TABLE, [&](const Attributes& a) {
            a.nest(NFTA_SET_ELEM_LIST_ELEMENTS)
                .for_each([&](std::uint16_t, std::string_view bytes) {
                  read_element(spec, Attributes(bytes), elements);
                });
          });
      if (rc != 0) {
        return rc;
      }
    }
    return 0;
  }

  static void read_element(const SetSpec& spec, const Attributes& a, Elements& elements) {
    std::string key(a.nest(NFTA_SET_ELEM_KEY).find(NFTA_DATA_VALUE));
    if (spec.kind == SetSpec::Kind::kIntervalSet) {
      // Without an end the element is a single value.
      const std::string_view end = a.nest(NFTA_SET_ELEM_KEY_END).find(NFTA_DATA_VALUE);
      key += end.empty() ? std::string(key) : std::string(end);
    }
    ElementValue value;
    if (spec.kind == SetSpec::Kind::kVerdictMap) {
      value.data = verdict_target(a.nest(NFTA_SET_ELEM_DATA));
    } else if (spec.kind == SetSpec::Kind::kEndpointMap) {
      value.data = a.nest(NFTA_SET_ELEM_DATA).find(NFTA_DATA_VALUE);
    }
    value.comment = read_comment(a.find(NFTA_SET_ELEM_USERDATA));
    elements.emplace_back(std::move(key), std::move(value));
  }

  Socket& socket_;
  Family family_;
  Ruleset out_;
};

/// Adds what a refusing rule has counted.
void add_refusals(const Attributes& rule, Refusals& to) {
  std::uint64_t packets = 0;
  bool rejects = false;
  rule.nest(NFTA_RULE_EXPRESSIONS).for_each([&](std::uint16_t, std::string_view bytes) {
    const Attributes expression(bytes);
    const std::string name = expression.text(NFTA_EXPR_NAME);
    if (name == "counter") {
      packets = expression.nest(NFTA_EXPR_DATA).u64(NFTA_COUNTER_PACKETS);
    }
    rejects = rejects || name == "reject";
  });
  (rejects ? to.rejected : to.dropped) += packets;
}

class NetlinkKernel : public Kernel {
 public:
  NetlinkKernel(Socket socket, Socket listener)
      : socket_(std::move(socket)), listener_(std::move(listener)) {}

  core::Result<std::uint32_t> generation() override {
    std::uint32_t g = 0;
    const int rc =
        socket_.request(NFT_MSG_GETGEN, AF_UNSPEC, 0, {},
                        [&](std::uint8_t, const Attributes& a) { g = a.u32(NFTA_GEN_ID); });
    if (rc != 0) {
      return tl::make_unexpected(core::Error{describe({rc, "asking for the generation"})});
    }
    return g;
  }

  core::Result<TableHandles> handles() override {
    TableHandles handles;
    const int rc = again([&] {
      handles = {};
      return socket_.request(NFT_MSG_GETTABLE, AF_UNSPEC, NLM_F_DUMP, {},
                             [&](std::uint8_t family, const Attributes& a) {
                               if (a.text(NFTA_TABLE_NAME) != kTable) {
                                 return;
                               }
                               if (family == family_number(Family::kIpv4)) {
                                 handles.v4 = a.u64(NFTA_TABLE_HANDLE);
                               } else if (family == family_number(Family::kIpv6)) {
                                 handles.v6 = a.u64(NFTA_TABLE_HANDLE);
                               }
                             });
    });
    if (rc != 0) {
      return tl::make_unexpected(core::Error{describe({rc, "listing tables"})});
    }
    return handles;
  }

  core::Result<Rulesets> read(Depth depth) override {
    Rulesets rulesets;
    const auto present = handles();
    if (!present) {
      return tl::make_unexpected(present.error());
    }
    for (const Family f : kFamilies) {
      if ((f == Family::kIpv4 ? present->v4 : present->v6) == 0) {
        continue;
      }
      const int rc = again([&] {
        return Reader(socket_, f).read(rulesets.of(f), depth == Depth::kElements);
      });
      if (rc != 0) {
        return tl::make_unexpected(core::Error{describe({rc, "reading our tables back"})});
      }
    }
    return rulesets;
  }

  core::Result<Refusals> refusals() override {
    Refusals refusals;
    for (const Family f : kFamilies) {
      for (const char* chain :
           {"firewall-check", "cluster-ips-check", names::kReject, names::kDrop}) {
        const std::string which =
            text_attribute(NFTA_RULE_TABLE, kTable) + text_attribute(NFTA_RULE_CHAIN, chain);
        const int rc =
            socket_.request(NFT_MSG_GETRULE, family_number(f), NLM_F_DUMP, which,
                            [&](std::uint8_t, const Attributes& a) { add_refusals(a, refusals); });
        if (rc != 0 && rc != ENOENT) {
          return tl::make_unexpected(core::Error{describe({rc, "reading counters"})});
        }
      }
    }
    return refusals;
  }

  /// While somebody listens the kernel makes a message of every element of a commit, which costs
  /// it as much as the rest or several times that (README.md).
  CommitResult commit(const Batch& batch) override {
    if (!deaf_ && batch.size() > kLargeBatch) {
      deaf_ = listener_.set_deaf(true) == 0;
    }
    const CommitResult result = socket_.commit(batch);
    listen_again();
    return result;
  }
  Events take_events() override {
    listen_again();
    Events events = listener_.take_events();
    events.refused = std::exchange(refused_, 0);
    return events;
  }

  core::Result<bool> forget(const std::function<bool(std::uint32_t)>& gone) override {
    CommitResult result;
    for (int i = 0; i < kTries; ++i) {
      Batch batch(std::nullopt);
      std::size_t count = 0;
      for (const Family f : kFamilies) {
        const std::vector<std::string> keys = remembered(f, gone);
        count += keys.size();
        encode_forgetting(batch, f, keys);
      }
      batch.finish();
      result = count == 0 ? CommitResult{} : commit(batch);
      if (result.error != ENOENT) {  // else one of them ended by itself: all stay
        return result.error == 0 ? core::Result<bool>(count != 0)
                                 : tl::make_unexpected(core::Error{describe(result)});
      }
    }
    return tl::make_unexpected(core::Error{describe(result)});
  }

 private:
  /// What is refused is tried again at the next look; until then generations tell of others.
  void listen_again() {
    if (deaf_) {
      deaf_ = listener_.set_deaf(false) != 0;
      refused_ += deaf_ ? 1 : 0;
    }
  }

  /// Keys of one family whose number is `gone`, but for those about to end.
  std::vector<std::string> remembered(Family f, const std::function<bool(std::uint32_t)>& gone) {
    constexpr std::uint64_t kSoon = 2000;  // ms
    std::vector<std::string> keys;
    const auto take = [&](std::uint16_t, std::string_view bytes) {
      const Attributes element(bytes);
      const std::string_view key = element.nest(NFTA_SET_ELEM_KEY).find(NFTA_DATA_VALUE);
      std::uint32_t number = 0;
      if (key.size() <= sizeof(number)) {
        return;
      }
      std::memcpy(&number, key.data() + key.size() - sizeof(number), sizeof(number));
      if (element.u64(NFTA_SET_ELEM_EXPIRATION) > kSoon && gone(number)) {
        keys.emplace_back(key);
      }
    };
    const std::string which = text_attribute(NFTA_SET_ELEM_LIST_TABLE, kTable) +
                              text_attribute(NFTA_SET_ELEM_LIST_SET, names::kAffinity);
    (void)socket_.request(NFT_MSG_GETSETELEM, family_number(f), NLM_F_DUMP, which,
                          [&](std::uint8_t, const Attributes& a) {
                            a.nest(NFTA_SET_ELEM_LIST_ELEMENTS).for_each(take);
                          });  // no such set: nothing is remembered
    return keys;
  }

  template <class Ask>
  static int again(Ask ask) {
    int rc = ask();
    for (int i = 1; i < kTries && rc == EAGAIN; ++i) {
      rc = ask();
    }
    return rc;
  }

  Socket socket_;
  Socket listener_;
  bool deaf_ = false;
  std::uint32_t refused_ = 0;
};

std::string meaning(int error) {
  switch (error) {
    case EPERM:
    case EACCES:
      return "not permitted; CAP_NET_ADMIN is needed";
    case ENOBUFS:
      return "the kernel had no room for its answer, so everything is written anew";
    case EMSGSIZE:
      return "the transaction is larger than the socket's send buffer may be";
    case EBUSY:
      return "something that is not ours refers to it";
    case EOPNOTSUPP:
    case EPROTONOSUPPORT:
    case EAFNOSUPPORT:
      return "this kernel has no nftables, or not this part of it";
    case ERESTART:
      return "others changed nftables at the same time";
    default:
      return std::strerror(error);
  }
}

/// Whether we may, and whether there is nftables at all. @return 0, or errno; EOPNOTSUPP: none.
int ask_for_nftables(Socket& socket) {
  const int rc =
      socket.request(NFT_MSG_GETGEN, AF_UNSPEC, 0, {}, [](std::uint8_t, const Attributes&) {});
  // EINVAL: there is nfnetlink, and nobody behind it who knows nftables.
  return rc == EINVAL ? EOPNOTSUPP : rc;
}

}  // namespace

core::Result<std::unique_ptr<Kernel>> open_kernel() {
  auto socket = Socket::open();
  if (!socket) {
    return tl::make_unexpected(socket.error());
  }
  if (const int error = ask_for_nftables(*socket); error != 0) {
    return tl::make_unexpected(core::Error{describe({error, "asking for the generation"})});
  }
  auto listener = Socket::open_listener(socket->port());
  if (!listener) {
    return tl::make_unexpected(listener.error());
  }
  return std::unique_ptr<Kernel>(
      std::make_unique<NetlinkKernel>(std::move(*socket), std::move(*listener)));
}

bool is_in_kernel() {
  auto socket = Socket::open();
  if (!socket) {
    return true;
  }
  return ask_for_nftables(*socket) != EOPNOTSUPP;
}

std::string describe(const CommitResult& result) {
  return "nftables: " + result.object + ": " + meaning(result.error);
}

}  // namespace sluice::kni::nft
