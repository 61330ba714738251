#include "kni/nftables/service.h"

#include <algorithm>
#include <cctype>
#include <functional>
#include <iterator>
#include <unordered_set>

#include "dataplane/core/fwd/text.h"
#include "dataplane/core/fwd/unsupported.h"
#include "kni/nftables/slots.h"

namespace sluice::kni::nft {
namespace {

using core::EndpointIndex;
using core::FrontendKind;
using core::SchedulerKind;
using core::TrafficPolicy;

constexpr std::size_t kMostComment = 127;   // nft's limit is 128 with the end mark
constexpr std::size_t kMostReadable = 200;  // names have 256 bytes in the kernel

Pick::Kind pick_of(const core::ServicePort& s) {
  if (s.scheduler != SchedulerKind::kSh && s.scheduler != SchedulerKind::kMh) {
    return Pick::Kind::kRandom;
  }
  const bool with_port = (s.scheduler_flags & core::kSchedPort) != 0;
  return with_port ? Pick::Kind::kSourcePortHash : Pick::Kind::kSourceHash;
}

bool can_schedule(SchedulerKind scheduler) {
  static const std::vector<SchedulerKind> kCan = nftables_capabilities().schedulers;
  return std::find(kCan.begin(), kCan.end(), scheduler) != kCan.end();
}

bool has_weights(SchedulerKind scheduler) {
  return scheduler == SchedulerKind::kWrandom || scheduler == SchedulerKind::kWrr ||
         scheduler == SchedulerKind::kSh;
}

Spread spread_of(SchedulerKind scheduler) {
  if (scheduler == SchedulerKind::kMh) {
    return Spread::kMaglev;
  }
  return has_weights(scheduler) ? Spread::kWeighted : Spread::kUniform;
}

/// FNV-1a: the same after a restart, so that what is remembered goes on counting.
std::uint32_t number_of(const std::string& name) {
  std::uint32_t hash = 0x811c9dc5u;
  for (const char c : name) {
    hash = (hash ^ static_cast<unsigned char>(c)) * 0x01000193u;
  }
  return hash;
}

/// The text itself when it is an identifier for nft and short enough, as Kubernetes names are.
std::string readable(const std::string& text) {
  const bool fits = std::all_of(text.begin(), text.end(), [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '/' || c == '-' || c == '.' || c == '_';
  });
  if (fits && text.size() <= kMostReadable) {
    return text;
  }
  const std::string hash = std::to_string(std::hash<std::string>()(text));
  return "hash-" + hash + "-" + std::to_string(std::hash<std::string>()(hash + text));
}

/// "ns/name/port/tcp": unique.
std::string object_name(const core::ServicePort& s) {
  std::string out = s.name;
  std::replace(out.begin(), out.end(), ':', '/');
  return readable(out + "/" + std::string(core::protocol_name(s.protocol)));
}

std::string object_name(const core::ServicePort& s, const core::Endpoint& e) {
  std::string address = core::to_string(e.address);
  std::replace(address.begin(), address.end(), ':', '.');
  return readable(object_name(s) + "/" + address + "/" + std::to_string(e.port));
}

/// One service port in progress.
class Writer {
 public:
  Writer(const core::ForwardingTable& table, core::ServiceSlot slot)
      : table_(table), slot_(slot), s_(*table.service(slot)) {}

  ServicePieces render() {
    const bool can = !s_.crosses_families();  // no map of ours has addresses of both
    if (can) {
      cluster_ = make_slots(s_, s_.cluster, spread_of(s_.scheduler));
      local_ = make_slots(s_, s_.local, spread_of(s_.scheduler));
    }
    report();
    if (can && s_.affinity_seconds != 0) {
      add_affinity();
    }
    for_each_address([&](const core::IpAddress& address) {
      add_frontend({address, s_.port, s_.protocol, false});
    });
    if (s_.node_port != 0) {
      add_frontend(core::FrontendKey::of_node_port(s_.family, s_.node_port, s_.protocol));
    }
    if (can) {
      add_hairpins();
    }
    return std::move(out_);
  }

 private:
  template <class Visit>
  void for_each_address(Visit visit) const {
    visit(s_.cluster_ip);
    std::vector<core::IpAddress> others = s_.external_ips;
    others.insert(others.end(), s_.load_balancer_vips.begin(), s_.load_balancer_vips.end());
    std::sort(others.begin(), others.end());
    others.erase(std::unique(others.begin(), others.end()), others.end());
    for (const core::IpAddress& address : others) {
      if (address != s_.cluster_ip) {
        visit(address);
      }
    }
  }

  [[nodiscard]] std::string key_of(const core::FrontendKey& f) const {
    KeyBytes key;
    if (!f.node_port) {
      key.address(f.address);
    }
    return key.protocol(f.protocol).port(f.port).take();
  }

  void put(const char* set, std::string key, std::string data = {}, bool comment = false) {
    ServicePieces::Element element{set, std::move(key), {std::move(data), {}}};
    if (comment) {
      element.value.comment = core::safe_name(s_.name, kMostComment);
    }
    out_.elements.push_back(std::move(element));
  }

  void add_frontend(const core::FrontendKey& frontend) {
    const auto found = table_.find_frontend(frontend);
    if (!found || found->slot != slot_) {
      return;  // another Service has it
    }
    const std::string key = key_of(frontend);
    if (s_.dispatches(found->kind) && !s_.crosses_families()) {
      put(frontend.node_port ? names::kServiceNodePorts : names::kServiceIps, key,
          target(found->kind, frontend.node_port), true);
      if (s_.affinity_seconds == 0) {
        add_slots(frontend.node_port, key);
      }
    }
    add_refusal(found->kind, frontend.node_port, key);
    if (found->kind == FrontendKind::kLoadBalancerVip) {
      add_firewall(key);
    }
  }

  void add_refusal(FrontendKind kind, bool node_port, const std::string& key) {
    const bool internal = kind == FrontendKind::kClusterIp;
    const bool crosses = s_.crosses_families();
    const bool serves = internal ? s_.has_internal : s_.has_external && !s_.mode_refuses(kind);
    if (serves && !crosses) {
      return;
    }
    const core::EmptyVerdict verdict =
        crosses ? core::EmptyVerdict::kReject : s_.when_empty(kind);
    put(node_port ? names::kEmptyNodePorts : names::kEmptyServices, key,
        verdict == core::EmptyVerdict::kReject ? names::kReject : names::kDrop, true);
  }

  void add_slots(bool node_port, const std::string& key) {
    const char* map = node_port ? names::kNodePortEndpoints : names::kServiceEndpoints;
    const auto add = [&](const std::vector<EndpointIndex>& list, std::uint32_t slot) {
      for (const EndpointIndex i : list) {
        const core::Endpoint& e = s_.endpoint(i);
        put(map, KeyBytes(key, sizeof(slot)).slot(slot).take(),
            KeyBytes().address(e.address).port(e.port).take());
        ++slot;
      }
    };
    out_.elements.reserve(out_.elements.size() + cluster_.slots.size() + local_.slots.size());
    add(cluster_.slots, 0);
    add(local_.slots, kLocalSlots);
  }

  /// F-1..F-7. The ranges of one key must not overlap: one inside another is left out.
  void add_firewall(const std::string& key) {
    if (s_.allowed_sources.empty()) {
      return;
    }
    put(names::kFirewalled, key);
    for (const core::Cidr& range : s_.allowed_sources) {
      const bool inside = std::any_of(
          s_.allowed_sources.begin(), s_.allowed_sources.end(), [&](const core::Cidr& other) {
            const bool first = other.length() < range.length() ||
                               (other.length() == range.length() && &other < &range);
            return first && other.contains(range.address());
          });
      if (!inside) {
        put(names::kAllowed,
            key + address_key(range.address()) + key + address_key(last_of(range)));
      }
    }
  }

  static core::IpAddress last_of(const core::Cidr& range) {
    const core::IpAddress& first = range.address();
    std::uint8_t bytes[16] = {};
    std::copy_n(first.data(), first.size(), bytes);
    for (unsigned bit = range.length(); bit < first.size() * 8; ++bit) {
      bytes[bit / 8] = static_cast<std::uint8_t>(bytes[bit / 8] | (0x80u >> bit % 8));
    }
    return first.is_v4() ? core::IpAddress(core::Ipv4Address::load(bytes))
                         : core::IpAddress(core::Ipv6Address::load(bytes));
  }

  void add_hairpins() {
    for (const EndpointIndex i : s_.all_reachable) {
      const core::Endpoint& e = s_.endpoint(i);
      if (e.local) {
        out_.hairpins.push_back(KeyBytes()
                                    .address(e.address)
                                    .address(e.address)
                                    .protocol(s_.protocol)
                                    .port(e.port)
                                    .take());
      }
    }
  }

  /// Name of the chain that traffic to a frontend of `kind` goes to.
  std::string target(FrontendKind kind, bool node_port) {
    const bool internal = kind == FrontendKind::kClusterIp;
    if (s_.affinity_seconds != 0) {
      const bool local = internal && s_.internal_policy == TrafficPolicy::kLocal;
      return (!internal ? "affinity-external-"
              : local   ? "affinity-local-"
                        : "affinity-cluster-") +
             object_name(s_);
    }
    const Shape shape = shape_of(internal, node_port);
    const auto needed = with_needed(shape);
    out_.shapes.insert(out_.shapes.end(), needed.begin(), needed.end());
    return chain_name(shape);
  }

  [[nodiscard]] Shape shape_of(bool internal, bool node_port) const {
    using Kind = Shape::Kind;
    const std::uint32_t n = cluster_.places;
    const std::uint32_t m = local_.places;
    const auto shape = [&](Kind kind, std::uint32_t cluster, std::uint32_t local) {
      return Shape{kind, node_port, pick_of(s_), cluster, local};
    };
    if (internal) {
      return s_.internal_policy == TrafficPolicy::kLocal ? shape(Kind::kLocal, 0, m)
                                                         : shape(Kind::kCluster, n, 0);
    }
    if (s_.external_policy == TrafficPolicy::kLocal) {
      const bool full = s_.mode == core::ForwardingMode::kFullNat;
      return shape(full ? Kind::kFullLocal : Kind::kExternalLocal, n, m);
    }
    return shape(s_.marks_external() ? Kind::kMarked : Kind::kVouched, n, 0);
  }

  void add_affinity();
  void add_affinity_list(const std::string& name, const std::vector<EndpointIndex>& list);
  void add_affinity_external();
  void number_memories();
  void report();
  void report_maglev();

  const core::ForwardingTable& table_;
  const core::ServiceSlot slot_;
  const core::ServicePort& s_;
  SlotList cluster_;
  SlotList local_;
  std::map<EndpointIndex, std::uint32_t> memory_;
  ServicePieces out_;
};

/// Section 12.
void Writer::add_affinity() {
  number_memories();
  if (s_.uses_cluster) {
    add_affinity_list("affinity-cluster-", s_.cluster);
  }
  if (s_.uses_local) {
    add_affinity_list("affinity-local-", s_.local);
  }
  if (s_.externally_accessible) {
    add_affinity_external();
  }
}

/// Endpoints of one Service never share a number. Two Services may, once in 2^32: then a source
/// that is new to one of them begins at the endpoint that it was remembered for by the other.
void Writer::number_memories() {
  std::unordered_set<std::uint32_t> taken;
  for (const EndpointIndex i : s_.all_reachable) {
    std::uint32_t number = number_of(object_name(s_, s_.endpoint(i)));
    while (!taken.insert(number).second) {
      ++number;
    }
    memory_[i] = number;
    out_.memories.push_back(number);
  }
}

/// the first candidate that remembers the source, else a uniform choice: the first one with
/// chance 1/n, the second of the rest with 1/(n-1), and so on. Where the set has no place for
/// another source, remembering it ends the rule; then the choice is made once more without it.
void Writer::add_affinity_list(const std::string& prefix, const std::vector<EndpointIndex>& list) {
  Chain& chain = out_.chains[prefix + object_name(s_)];
  const auto rule = [&](std::vector<Statement> statements, EndpointIndex i, bool remember) {
    if (remember) {
      statements.push_back(Remember{names::kAffinity, memory_[i], s_.affinity_seconds});
    }
    const core::Endpoint& e = s_.endpoint(i);
    statements.insert(statements.end(), {ProtocolIs{s_.protocol}, DnatTo{e.address, e.port}});
    chain.rules.push_back(make_rule(s_.family, std::move(statements)));
  };
  for (const EndpointIndex i : list) {
    rule({Recall{names::kAffinity, memory_[i]}}, i, true);
  }
  for (const bool remember : {true, false}) {
    auto left = static_cast<std::uint32_t>(list.size());
    for (const EndpointIndex i : list) {
      rule(left > 1 ? std::vector<Statement>{OneIn{left}} : std::vector<Statement>{}, i, remember);
      --left;
    }
  }
}

/// P-5 of a Service with affinity, all policies and modes.
void Writer::add_affinity_external() {
  Chain& chain = out_.chains["affinity-external-" + object_name(s_)];
  const core::NodePart& node = table_.node();
  const auto rule = [&](std::vector<Statement> statements) {
    chain.rules.push_back(make_rule(s_.family, std::move(statements)));
  };
  const Go cluster{"affinity-cluster-" + object_name(s_), false};
  const MarkSet mark{node.mark_bit};
  if (s_.external_policy == TrafficPolicy::kCluster) {
    if (s_.marks_external()) {
      rule({mark});
    } else {
      rule({FibLocal{Side::kSaddr}, mark});
    }
    rule({cluster});
    return;
  }
  if (s_.mode == core::ForwardingMode::kFullNat) {
    rule({mark});
  }
  if (const auto pods = pod_local(node.of(s_.family).detector, false)) {
    rule({*pods, cluster});
  }
  rule({FibLocal{Side::kSaddr}, mark});
  rule({FibLocal{Side::kSaddr}, cluster});
  rule({Go{"affinity-local-" + object_name(s_), false}});
}

void Writer::report() {
  static const core::Capabilities kCan = nftables_capabilities();
  out_.unsupported = core::unsupported_of(s_, kCan);
  const auto say = [&](std::string what) {
    out_.unsupported.push_back({s_.name, std::move(what)});
  };
  if (cluster_.rounded || local_.rounded) {
    say("weights: rounded, because their sum without common divisor is more than " +
        std::to_string(kMostSlots));
  }
  if (s_.affinity_seconds != 0 && s_.scheduler != SchedulerKind::kRandom &&
      can_schedule(s_.scheduler)) {
    say("session affinity: a source that is new is sent to a random endpoint, without scheduler " +
        std::string(core::name_of(s_.scheduler)) + " and weights");
  }
  if (s_.scheduler == SchedulerKind::kMh) {
    report_maglev();
  }
}

void Writer::report_maglev() {
  constexpr std::size_t kSlotsEach = 10;
  const std::uint32_t slots = maglev_slots_of(s_);
  if (slots < s_.maglev_size) {
    out_.unsupported.push_back({s_.name, "scheduler mh: the table has " + std::to_string(slots) +
                                             " slots, not " + std::to_string(s_.maglev_size)});
  }
  if (std::max(s_.cluster.size(), s_.local.size()) * kSlotsEach > slots) {
    out_.unsupported.push_back({s_.name, "scheduler mh: uneven shares, " + std::to_string(slots) +
                                             " slots are few for so many endpoints; "
                                             "sluice.dev/maglev-table-size can name more"});
  }
}

}  // namespace

ServicePieces render_service(const core::ForwardingTable& table, core::ServiceSlot slot) {
  return Writer(table, slot).render();
}

core::Capabilities nftables_capabilities() {
  return {
      "nftables",
      {SchedulerKind::kRandom, SchedulerKind::kWrandom, SchedulerKind::kWrr, SchedulerKind::kSh,
       SchedulerKind::kMh},
      {core::ForwardingMode::kByRule, core::ForwardingMode::kNat, core::ForwardingMode::kFullNat}};
}

}  // namespace sluice::kni::nft
