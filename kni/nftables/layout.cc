#include "kni/nftables/layout.h"

#include <linux/netfilter.h>

#include <algorithm>
#include <utility>

#include "kni/nftables/slots.h"

namespace sluice::kni::nft {
namespace {

using core::Family;

constexpr std::int32_t kBeforeDnat = -110;
constexpr std::int32_t kDnat = -100;
constexpr std::int32_t kFilter = 0;
constexpr std::int32_t kSnat = 100;

using Fields = std::vector<Field>;
const Fields kAddress = {Field::kDaddr};
const Fields kFrontend = {Field::kDaddr, Field::kProtocol, Field::kDport};
const Fields kNodePort = {Field::kProtocol, Field::kDport};

Fields with(Fields key, Field more) {
  key.push_back(more);
  return key;
}

core::Cidr loopback(Family family) {
  return family == Family::kIpv4 ? *core::parse_cidr("127.0.0.0/8") : *core::parse_cidr("::1/128");
}

/// Adds rules to one table.
class Writer {
 public:
  explicit Writer(Ruleset& ruleset) : ruleset_(ruleset) {}

  void base(const char* name, const char* type, std::uint32_t hook, std::int32_t priority) {
    ruleset_.chains[name].hook = Hook{type, hook, priority};
  }
  void rule(const char* chain, std::vector<Statement> statements) {
    ruleset_.chains[chain].rules.push_back(make_rule(ruleset_.family, std::move(statements)));
  }

 private:
  Ruleset& ruleset_;
};

/// What a rule of a hook that sees arriving packets begins with.
std::vector<Statement> arriving(const Scope& scope, std::vector<Statement> rest) {
  if (!scope.taps.empty()) {
    rest.insert(rest.begin(), IngressIs{scope.taps, true, true});
  }
  return rest;
}

Go jump(const char* chain) {
  return {chain, true};
}

void add_firewall_hooks(Writer& w, const Scope& scope) {
  w.base("filter-prerouting-pre-dnat", "filter", NF_INET_PRE_ROUTING, kBeforeDnat);
  w.base("filter-output-pre-dnat", "filter", NF_INET_LOCAL_OUT, kBeforeDnat);
  w.rule("filter-prerouting-pre-dnat",
         arriving(scope, {CtStateNew{}, jump("firewall-check")}));
  w.rule("filter-output-pre-dnat", {CtStateNew{}, jump("firewall-check")});
}

void add_hooks(Writer& w, const Scope& scope) {
  add_firewall_hooks(w, scope);
  w.base("nat-prerouting", "nat", NF_INET_PRE_ROUTING, kDnat);
  w.base("nat-output", "nat", NF_INET_LOCAL_OUT, kDnat);
  w.rule("nat-prerouting", arriving(scope, {jump("services")}));
  w.rule("nat-output", {jump("services")});
  w.base("filter-input", "filter", NF_INET_LOCAL_IN, kFilter);
  w.rule("filter-input", arriving(scope, {CtStateNew{}, jump("nodeport-endpoints-check")}));
  w.rule("filter-input", arriving(scope, {CtStateNew{}, jump("service-endpoints-check")}));
  w.base("filter-forward", "filter", NF_INET_FORWARD, kFilter);
  w.base("filter-output", "filter", NF_INET_LOCAL_OUT, kFilter);
  for (const char* check : {"service-endpoints-check", "cluster-ips-check"}) {
    w.rule("filter-forward", arriving(scope, {CtStateNew{}, jump(check)}));
    w.rule("filter-output", {CtStateNew{}, jump(check)});
  }
  w.base("nat-postrouting", "nat", NF_INET_POST_ROUTING, kSnat);
  w.rule("nat-postrouting", {jump("masquerading")});
}

/// Section 13: to a node-port address, then the map.
void add_node_port_lookup(Writer& w, const char* chain, const char* map, bool match_all,
                          Family family) {
  if (match_all) {
    w.rule(chain, {FibLocal{Side::kDaddr}, InPrefix{Side::kDaddr, loopback(family), true},
                   VerdictMap{kNodePort, map}});
  } else {
    w.rule(chain, {InSet{kAddress, names::kNodePortIps, false}, VerdictMap{kNodePort, map}});
  }
}

/// P-2..P-5.
void add_services(Writer& w, const core::NodePart& node, Family family) {
  const core::NodePart::PerFamily& mine = node.of(family);
  const InSet to_cluster_ip{kAddress, names::kClusterIps, false};
  if (node.masquerade_all) {
    w.rule("services", {to_cluster_ip, MarkSet{node.mark_bit}});
  } else if (const auto others = pod_local(mine.detector, true)) {
    w.rule("services", {to_cluster_ip, *others, MarkSet{node.mark_bit}});
  }
  w.rule("services", {VerdictMap{kFrontend, names::kServiceIps}});
  add_node_port_lookup(w, "services", names::kServiceNodePorts, mine.node_ports.match_all, family);
}

void add_checks(Writer& w, const core::NodePart& node, Family family) {
  const core::NodePart::PerFamily& mine = node.of(family);
  w.rule("firewall-check",
         {InSet{kFrontend, names::kFirewalled, false},
          InSet{with(kFrontend, Field::kSaddr), names::kAllowed, true}, Count{}, Drop{}});
  add_node_port_lookup(w, "nodeport-endpoints-check", names::kEmptyNodePorts,
                       mine.node_ports.match_all, family);
  w.rule("service-endpoints-check", {VerdictMap{kFrontend, names::kEmptyServices}});
  w.rule("cluster-ips-check", {InSet{kAddress, names::kClusterIps, false}, Count{}, Reject{}});
  for (const core::Cidr& cidr : mine.service_cidrs) {
    w.rule("cluster-ips-check", {InPrefix{Side::kDaddr, cidr, false}, Count{}, Drop{}});
  }
  w.rule(names::kReject, {Count{}, Reject{}});
  w.rule(names::kDrop, {Count{}, Drop{}});
}

/// P-9.
void add_masquerading(Writer& w, const core::NodePart& node, std::optional<core::PortRange> ports) {
  const auto marked = [&](std::vector<Statement> match, Masquerade how) {
    match.insert(match.begin(), MarkHas{node.mark_bit});
    match.insert(match.end(), {MarkClear{node.mark_bit}, how});
    w.rule("masquerading", std::move(match));
  };
  const auto hairpin = [&](std::vector<Statement> match, Masquerade how) {
    match.insert(match.end(),
                 {CtStatusDnat{},
                  InSet{{Field::kSaddr, Field::kDaddr, Field::kProtocol, Field::kDport},
                        names::kHairpin,
                        false},
                  how});
    w.rule("masquerading", std::move(match));
  };
  if (ports) {
    using core::Protocol;
    for (const Protocol p : {Protocol::kTcp, Protocol::kUdp, Protocol::kSctp}) {
      marked({ProtocolIs{p}}, {ports});
      hairpin({ProtocolIs{p}}, {ports});
    }
  }
  marked({}, {});
  hairpin({}, {});
}

/// The shape that takes the first slot of the same list.
Shape first_of(const Shape& shape) {
  Shape first = shape;
  (shape.kind == Shape::Kind::kLocal ? first.local : first.cluster) = 1;
  return first;
}

/// @param places  0: the dispatch ends untranslated.
void add_pick(std::vector<Rule>& rules, const Shape& shape, Family family, std::uint32_t places,
              std::uint32_t offset) {
  if (places == 0) {
    return;
  }
  const Fields key = shape.node_port ? kNodePort : kFrontend;
  const char* map = shape.node_port ? names::kNodePortEndpoints : names::kServiceEndpoints;
  const auto pick = [&](std::uint32_t among, std::uint32_t attempt) {
    const std::uint32_t hash = shape.pick == Pick::Kind::kRandom ? 0 : attempt;
    rules.push_back(make_rule(family, {DnatMap{key, {shape.pick, among, offset, hash}, map}}));
  };
  pick(places, 0);
  if (may_have_empty(places)) {
    for (std::uint32_t i = 1; i < kAttempts; ++i) {
      pick(places, i);
    }
    pick(places / 2, kAttempts);
  }
  if (places > 1) {
    rules.push_back(make_rule(family, {Go{chain_name(first_of(shape)), false}}));
  }
}

Shape part_of(const Shape& shape, Shape::Kind kind) {
  Shape part = shape;
  part.kind = kind;
  part.cluster = kind == Shape::Kind::kLocal ? 0 : shape.cluster;
  part.local = kind == Shape::Kind::kLocal ? shape.local : 0;
  return part;
}

}  // namespace

const std::map<std::string, SetSpec>& node_sets() {
  using Kind = SetSpec::Kind;
  static const std::map<std::string, SetSpec> kSets = {
      {names::kClusterIps, {Kind::kSet, kAddress}},
      {names::kNodePortIps, {Kind::kSet, kAddress}},
      {names::kServiceIps, {Kind::kVerdictMap, kFrontend}},
      {names::kServiceNodePorts, {Kind::kVerdictMap, kNodePort}},
      {names::kServiceEndpoints, {Kind::kEndpointMap, with(kFrontend, Field::kSlot)}},
      {names::kNodePortEndpoints, {Kind::kEndpointMap, with(kNodePort, Field::kSlot)}},
      {names::kEmptyServices, {Kind::kVerdictMap, kFrontend}},
      {names::kEmptyNodePorts, {Kind::kVerdictMap, kNodePort}},
      {names::kFirewalled, {Kind::kSet, kFrontend}},
      {names::kAllowed, {Kind::kIntervalSet, with(kFrontend, Field::kSaddr)}},
      {names::kHairpin,
       {Kind::kSet, {Field::kSaddr, Field::kDaddr, Field::kProtocol, Field::kDport}}},
  };
  return kSets;
}

std::string address_key(const core::IpAddress& address) {
  return KeyBytes().address(address).take();
}

std::optional<Statement> pod_local(const core::LocalDetector& detector, bool negate) {
  using Kind = core::LocalDetector::Kind;
  switch (detector.kind) {
    case Kind::kNone:
      return std::nullopt;
    case Kind::kCidr:
      return InPrefix{Side::kSaddr, detector.cidr, negate};
    case Kind::kBridge:
      return IngressIs{detector.interface, false, negate};
    case Kind::kInterfacePrefix:
      return IngressIs{detector.interface, true, negate};
  }
  return std::nullopt;
}

SetSpec affinity_set() {
  return {SetSpec::Kind::kTimeoutSet, {Field::kSaddr, Field::kSlot}, kMostRemembered};
}

Ruleset render_node(const core::NodePart& node, Family family, const Scope& scope) {
  Ruleset ruleset;
  ruleset.family = family;
  Writer w(ruleset);
  ruleset.sets = node_sets();
  add_hooks(w, scope);
  add_services(w, node, family);
  add_checks(w, node, family);
  add_masquerading(w, node,
                   scope.taps.empty() ? std::nullopt : core::masquerade_ports(node, family));
  for (const auto& [name, spec] : ruleset.sets) {
    ruleset.elements[name];
  }
  const auto add = [&](const char* set, const std::vector<core::IpAddress>& addresses) {
    for (const core::IpAddress& address : addresses) {
      ruleset.elements[set].emplace_back(address_key(address), ElementValue());
    }
  };
  add(names::kClusterIps, node.of(family).active_cluster_ips);
  if (!node.of(family).node_ports.match_all) {
    add(names::kNodePortIps, node.of(family).node_ports.addresses);
  }
  return ruleset;
}

bool rules_differ(const core::NodePart& before, const core::NodePart& after, Family family) {
  const auto& b = before.of(family);
  const auto& a = after.of(family);
  return before.mark_bit != after.mark_bit || before.masquerade_all != after.masquerade_all ||
         b.detector != a.detector || b.node_ports.match_all != a.node_ports.match_all ||
         b.service_cidrs != a.service_cidrs;
}

bool picks(const Shape& shape) {
  return shape.kind == Shape::Kind::kCluster || shape.kind == Shape::Kind::kLocal;
}

std::string chain_name(const Shape& shape) {
  using Kind = Shape::Kind;
  std::string name = shape.node_port ? "n" : "";
  const auto n = std::to_string(shape.cluster);
  const auto m = std::to_string(shape.local);
  const std::string hash = shape.pick == Pick::Kind::kSourceHash       ? "s-"
                           : shape.pick == Pick::Kind::kSourcePortHash ? "t-"
                                                                       : "-";
  switch (shape.kind) {
    case Kind::kCluster:
      return name + "c" + hash + n;
    case Kind::kLocal:
      return name + "o" + hash + m;
    case Kind::kMarked:
      return name + "x" + hash + n;
    case Kind::kExternalLocal:
      return name + "l" + hash + n + "-" + m;
    case Kind::kVouched:
      return name + "h" + hash + n;
    case Kind::kFullLocal:
      break;
  }
  return name + "f" + hash + n + "-" + m;
}

std::vector<Shape> with_needed(const Shape& shape) {
  using Kind = Shape::Kind;
  std::vector<Shape> shapes = {shape};
  const auto need = [&](Kind kind) { shapes.push_back(part_of(shape, kind)); };
  const bool marks_some = shape.kind == Kind::kExternalLocal || shape.kind == Kind::kVouched;
  if (marks_some) {
    need(Kind::kMarked);
  }
  if (shape.kind != Kind::kCluster && shape.kind != Kind::kLocal) {
    need(Kind::kCluster);
  }
  if (shape.local > 0 && shape.kind != Kind::kLocal) {
    need(Kind::kLocal);
  }
  const std::size_t named = shapes.size();
  for (std::size_t i = 0; i < named; ++i) {
    if (picks(shapes[i]) && std::max(shapes[i].cluster, shapes[i].local) > 1) {
      shapes.push_back(first_of(shapes[i]));
    }
  }
  return shapes;
}

Chain shape_chain(const Shape& shape, const core::NodePart& node, Family family) {
  using Kind = Shape::Kind;
  Chain chain;
  const auto rule = [&](std::vector<Statement> statements) {
    chain.rules.push_back(make_rule(family, std::move(statements)));
  };
  const auto go = [&](Kind kind) { return Go{chain_name(part_of(shape, kind)), false}; };
  const auto local_pods = pod_local(node.of(family).detector, false);
  switch (shape.kind) {
    case Kind::kCluster:
      add_pick(chain.rules, shape, family, shape.cluster, 0);
      break;
    case Kind::kLocal:
      add_pick(chain.rules, shape, family, shape.local, kLocalSlots);
      break;
    case Kind::kMarked:
      rule({MarkSet{node.mark_bit}});
      rule({go(Kind::kCluster)});
      break;
    case Kind::kVouched:
      rule({FibLocal{Side::kSaddr}, go(Kind::kMarked)});
      rule({go(Kind::kCluster)});
      break;
    case Kind::kExternalLocal:
    case Kind::kFullLocal:
      const bool full = shape.kind == Kind::kFullLocal;
      if (full) {
        rule({MarkSet{node.mark_bit}});
      }
      if (local_pods) {
        rule({*local_pods, go(Kind::kCluster)});
      }
      rule({FibLocal{Side::kSaddr}, go(full ? Kind::kCluster : Kind::kMarked)});
      if (shape.local > 0) {
        rule({go(Kind::kLocal)});
      }
      break;
  }
  return chain;
}

}  // namespace sluice::kni::nft
