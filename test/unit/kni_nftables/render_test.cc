#include "kni/nftables/render.h"

#include <string>

#include <gmock/gmock.h>

#include "kni/nftables/plan.h"
#include "kni/nftables/ruleset_text.h"
#include "kni/nftables/service.h"
#include "kni/nftables/slots.h"
#include "test/support/golden.h"
#include "test/support/random_cluster.h"
#include "test/unit/kni_nftables/fixture.h"

namespace sluice::kni::nft {
namespace {

using kni::test::TableSource;
using sluice::test::expect_golden;
using testing::HasSubstr;
using testing::Not;

/// The small cluster with an annotation at "web".
TableSource web_with(const std::string& annotation, const std::string& value) {
  TableSource source;
  fill_small_cluster(source);
  source.state.services[{"default", "web"}].annotations[annotation] = value;
  return source;
}

core::ServiceSlot slot_of(const core::ForwardingTable& table, const std::string& name) {
  for (std::uint32_t i = 0; i < table.slot_limit(); ++i) {
    const auto slot = static_cast<core::ServiceSlot>(i);
    if (table.service(slot) != nullptr && table.service(slot)->name == name) {
      return slot;
    }
  }
  return core::ServiceSlot::kNone;
}

TEST(Render, OneOfEachKind) {
  TableSource source;
  fill_small_cluster(source);
  const Rendered rendered = render(*source.make());
  expect_golden(ruleset_text(rendered.rulesets.v4), SLUICE_GOLDEN "/nftables/small-v4.nft");
  expect_golden(ruleset_text(rendered.rulesets.v6), SLUICE_GOLDEN "/nftables/small-v6.nft");
  EXPECT_TRUE(rendered.unsupported.empty());
}

TEST(Render, EveryNodeSettingThatRulesFollow) {
  TableSource source;
  source.config.detect_local = compile::NodeConfig::DetectLocal::kInterfaceNamePrefix;
  source.config.interface_name_prefix = "cali";
  source.config.node_port_addresses = {"0.0.0.0/0", "::/0"};
  source.config.masquerade_bit = 3;
  fill_small_cluster(source);
  expect_golden(ruleset_text(render(*source.make()).rulesets.v4),
                SLUICE_GOLDEN "/nftables/prefix-match-all-v4.nft");
  source.config.masquerade_all = true;
  EXPECT_THAT(ruleset_text(render(*source.make()).rulesets.v6),
              HasSubstr("ip6 daddr @cluster-ips meta mark set meta mark | 0x00000008\n"));
}

TEST(Render, ASlotIsWhatTheKernelComputes) {
  // numgen writes the register in host order.
  const std::uint32_t slot = kLocalSlots + 1;
  const std::string bytes = KeyBytes().slot(slot).take();
  EXPECT_EQ(std::memcmp(bytes.data(), &slot, sizeof(slot)), 0);
}

TEST(Render, SchedulersTheKernelCannotDoAreReportedPerService) {
  TableSource source = web_with("sluice.dev/scheduler", "rr");
  const auto table = source.make();
  const ServicePieces pieces = render_service(*table, slot_of(*table, "default/web"));
  ASSERT_EQ(pieces.unsupported.size(), 1u);
  EXPECT_EQ(pieces.unsupported[0].service_port, "default/web");
  EXPECT_THAT(pieces.unsupported[0].what, HasSubstr("rr"));
}

TEST(Render, ANameCannotEndItsComment) {
  TableSource source;
  fill_small_cluster(source);
  const std::string name = "default/x\" }\nflush ruleset";
  const auto table = kni::test::with_name(source.make(), "default/web", name);
  EXPECT_THAT(ruleset_text(render(*table).rulesets.v4),
              HasSubstr("comment \"default/x____flush_ruleset\""));
}

std::size_t count_in(const ServicePieces& pieces, const char* set) {
  return static_cast<std::size_t>(
      std::count_if(pieces.elements.begin(), pieces.elements.end(),
                    [&](const auto& element) { return element.set == std::string_view(set); }));
}

TEST(Render, AServiceWhoseEndpointsAreOfTheOtherFamilyIsRefusedAndPutsNoAddressOfThemAnywhere) {
  TableSource source;
  fill_small_cluster(source);
  model::Service& web = source.state.services[{"default", "web"}];
  web.annotations["sluice.dev/forwarding-mode"] = "ipip";
  web.session_affinity = "ClientIP";
  model::EndpointSlice& slice = source.state.slices[{"default", "web-a"}];
  slice.address_type = "IPv6";
  slice.endpoints[0].addresses = {"fd42:1::10"};
  slice.endpoints[1].addresses = {"fd42:2::10"};
  slice.endpoints[2].addresses = {"fd42:3::10"};
  slice.ports[0].port = 80;
  const auto table = source.make();
  const core::ServiceSlot slot = slot_of(*table, "default/web");
  ASSERT_TRUE(table->service(slot)->crosses_families());
  const ServicePieces pieces = render_service(*table, slot);
  EXPECT_EQ(count_in(pieces, names::kServiceIps) + count_in(pieces, names::kServiceEndpoints) +
                count_in(pieces, names::kServiceNodePorts) + count_in(pieces, names::kNodePortEndpoints),
            0u);
  EXPECT_TRUE(pieces.hairpins.empty());
  EXPECT_TRUE(pieces.chains.empty());
  EXPECT_EQ(count_in(pieces, names::kEmptyServices), 2u);
  EXPECT_EQ(count_in(pieces, names::kEmptyNodePorts), 1u);
  ASSERT_EQ(pieces.unsupported.size(), 1u);
  EXPECT_THAT(pieces.unsupported[0].what, HasSubstr("of the other family"));
}

TEST(Render, FrontendsThatAModeCannotServeAreRefusedAndNotPassed) {
  TableSource source = web_with("sluice.dev/forwarding-mode", "dr");
  const auto table = source.make();
  const ServicePieces pieces = render_service(*table, slot_of(*table, "default/web"));
  EXPECT_EQ(count_in(pieces, names::kServiceIps), 1u);  // the cluster IP
  ASSERT_EQ(count_in(pieces, names::kEmptyServices), 1u);
  ASSERT_EQ(count_in(pieces, names::kEmptyNodePorts), 1u);
  for (const auto& element : pieces.elements) {
    if (element.set == std::string_view(names::kEmptyServices)) {
      EXPECT_EQ(element.value.data, names::kReject);
    }
  }
}

TEST(Render, WeightedRandomIsWhatTheKernelDoes) {
  TableSource source;
  fill_small_cluster(source);
  const auto plain = source.make();
  const auto before = render_service(*plain, slot_of(*plain, "default/web"));
  auto& annotations = source.state.services[{"default", "web"}].annotations;
  annotations["sluice.dev/scheduler"] = "wrandom";
  const core::Endpoint& first = plain->service(slot_of(*plain, "default/web"))->endpoints[0];
  annotations["sluice.dev/weights"] = core::to_string(first.address) + "=7";
  const auto weighted = source.make();
  const auto after = render_service(*weighted, slot_of(*weighted, "default/web"));
  EXPECT_TRUE(after.unsupported.empty());
  EXPECT_GT(after.elements.size(), before.elements.size());
}

TEST(Slots, WeightsBecomeShares) {
  core::ServicePort service;
  service.endpoints.resize(3);
  service.endpoints[0].weight = 10;
  service.endpoints[1].weight = 20;
  service.endpoints[2].weight = 30;
  const std::vector<core::EndpointIndex> all = {core::EndpointIndex{0}, core::EndpointIndex{1},
                                                core::EndpointIndex{2}};
  const SlotList list = make_slots(service, all, Spread::kWeighted);
  EXPECT_EQ(list.slots.size(), 6u);
  EXPECT_EQ(list.places, 8u);
  EXPECT_EQ(std::count(list.slots.begin(), list.slots.end(), core::EndpointIndex{2}), 3);
  EXPECT_FALSE(list.rounded);
}

TEST(Slots, WeightsThatNeedTooManyAreRoundedAndSaid) {
  core::ServicePort service;
  service.endpoints.resize(2);
  service.endpoints[0].weight = 65535;
  service.endpoints[1].weight = 1;
  const SlotList list = make_slots(service, {core::EndpointIndex{0}, core::EndpointIndex{1}}, Spread::kWeighted);
  EXPECT_TRUE(list.rounded);
  EXPECT_LE(list.slots.size(), kMostSlots + 1);
  EXPECT_EQ(std::count(list.slots.begin(), list.slots.end(), core::EndpointIndex{1}), 1);
}

TEST(Slots, EveryEndpointHasAsManyAndTheFirstHalfOfThePlacesIsTaken) {
  core::ServicePort service;
  service.endpoints.resize(40);
  for (std::uint32_t count = 1; count <= 40; ++count) {
    service.cluster.push_back(static_cast<core::EndpointIndex>(count - 1));
    const SlotList list = make_slots(service, service.cluster, Spread::kUniform);
    EXPECT_TRUE(may_have_empty(list.places)) << count;
    EXPECT_LE(list.slots.size(), list.places) << count;
    EXPECT_GT(list.slots.size(), list.places / 2) << count;
    for (const core::EndpointIndex i : service.cluster) {
      EXPECT_EQ(std::count(list.slots.begin(), list.slots.end(), i), list.slots.size() / count);
    }
  }
  EXPECT_EQ(make_slots(service, {}, Spread::kUniform).places, 0u);
}

core::ServicePort with_endpoints(std::size_t count) {
  core::ServicePort service;
  service.scheduler = core::SchedulerKind::kMh;
  for (std::size_t i = 0; i < count; ++i) {
    core::Endpoint e;
    e.address = *core::parse_address("10.42.0." + std::to_string(i + 1));
    e.port = 8080;
    service.endpoints.push_back(e);
    service.cluster.push_back(static_cast<core::EndpointIndex>(i));
  }
  return service;
}

TEST(Slots, MaglevSharesAreEvenAndFewMoveWhenAnEndpointGoes) {
  const core::ServicePort service = with_endpoints(10);
  std::vector<core::EndpointIndex> rest = service.cluster;
  rest.pop_back();
  const SlotList all = make_slots(service, service.cluster, Spread::kMaglev);
  const SlotList without = make_slots(service, rest, Spread::kMaglev);
  ASSERT_EQ(all.slots.size(), kMaglevSlots);
  ASSERT_EQ(without.slots.size(), kMaglevSlots);
  std::size_t moved = 0;
  for (std::size_t i = 0; i < kMaglevSlots; ++i) {
    moved += all.slots[i] != service.cluster.back() && all.slots[i] != without.slots[i] ? 1 : 0;
  }
  EXPECT_LT(moved, kMaglevSlots / 20);
  const auto share = std::count(all.slots.begin(), all.slots.end(), service.cluster[3]);
  EXPECT_GE(share, kMaglevSlots / 10 - 2);
  EXPECT_LE(share, kMaglevSlots / 10 + 2);
}

TEST(Slots, MaglevDoesNotDependOnTheOrderOfTheListAndTakesTheSizeThatIsAskedFor) {
  core::ServicePort service = with_endpoints(5);
  std::vector<core::EndpointIndex> turned(service.cluster.rbegin(), service.cluster.rend());
  EXPECT_EQ(make_slots(service, service.cluster, Spread::kMaglev).slots,
            make_slots(service, turned, Spread::kMaglev).slots);
  service.maglev_size = 4093;
  EXPECT_EQ(make_slots(service, service.cluster, Spread::kMaglev).slots.size(), 4093u);
  EXPECT_TRUE(make_slots(service, {}, Spread::kMaglev).slots.empty());
}

TEST(Render, MhHashesTheSourceAndWithItsFlagThePort) {
  TableSource source = web_with("sluice.dev/scheduler", "mh");
  const auto table = source.make();
  const ServicePieces pieces = render_service(*table, slot_of(*table, "default/web"));
  EXPECT_TRUE(pieces.unsupported.empty());
  const std::string chain = "cs-" + std::to_string(kMaglevSlots);
  const Ruleset rules = render(*table).rulesets.v4;
  ASSERT_TRUE(rules.chains.contains(chain));
  EXPECT_EQ(rule_text(core::Family::kIpv4, rules.chains.at(chain).rules[0]),
            "dnat ip to ip daddr . meta l4proto . th dport . jhash ip saddr mod 1021 seed "
            "0x51c1ce00 map @svc-eps");
  source.state.services[{"default", "web"}].annotations["sluice.dev/scheduler-flags"] = "mh-port";
  const Ruleset with_port = render(*source.make()).rulesets.v4;
  ASSERT_TRUE(with_port.chains.contains("ct-" + std::to_string(kMaglevSlots)));
  EXPECT_THAT(ruleset_text(with_port), HasSubstr("jhash ip saddr . th sport mod 1021 seed"));
}

TEST(Render, BesideWorkersOnlyWhatBeginsOnTheHostIsSeen) {
  TableSource source;
  fill_small_cluster(source);
  const auto table = source.make();
  const std::string text = ruleset_text(render(*table, {"slc-"}).rulesets.v4);
  for (const char* line : {"    iifname != \"slc-*\" jump services\n    }",
                           "    iifname != \"slc-*\" ct state new jump firewall-check\n",
                           "    iifname != \"slc-*\" ct state new jump cluster-ips-check\n"}) {
    EXPECT_THAT(text, HasSubstr(std::string(line).substr(0, std::string(line).find("\n"))));
  }
  EXPECT_THAT(text, HasSubstr("priority -100; policy accept;\n    jump services\n"));  // output
  const auto change = render_change(*table, *table, render(*table).shares, {"slc-"});
  EXPECT_TRUE(make_plan(change.before.v4, change.after.v4).empty());
}

TEST(Render, MasqueradingBesideWorkersKeepsOffTheirPorts) {
  core::NodePart node;
  node.snat_first_port = 40960;
  node.snat_last_port = 65535;
  EXPECT_EQ(core::masquerade_ports(node, core::Family::kIpv4), (core::PortRange{1024, 40959}));
  node.snat_first_port = 2048;
  node.snat_last_port = 40000;
  EXPECT_EQ(core::masquerade_ports(node, core::Family::kIpv4), (core::PortRange{40001, 65535}));
  const std::string text = ruleset_text(render_node(node, core::Family::kIpv4, {"slc-"}));
  EXPECT_THAT(text, HasSubstr("meta l4proto udp meta mark set meta mark ^ 0x00004000 "
                              "masquerade to :40001-65535 fully-random\n"));
  node.v4.snat_addresses = {*core::parse_address("192.0.2.9")};
  EXPECT_EQ(core::masquerade_ports(node, core::Family::kIpv4), std::nullopt);
}

TEST(Render, EndpointsOfAServiceRememberUnderNumbersOfTheirOwnThatARestartKeeps) {
  TableSource source;
  fill_small_cluster(source);
  const auto table = source.make();
  const Rendered rendered = render(*table);
  EXPECT_EQ(rendered.memories.size(), 2u);
  TableSource later;
  later.put(sluice::test::make_service("first", "10.43.0.9"));
  fill_small_cluster(later);
  EXPECT_EQ(render(*later.make()).memories, rendered.memories);
}

TEST(RenderChange, TheSetOfSourcesIsThereWhileAServiceHasAffinity) {
  TableSource source;
  fill_small_cluster(source);
  const auto with = source.make();
  source.state.services[{"default", "sticky"}].session_affinity = "None";
  const auto without = source.make();
  RenderedChange off = render_change(*with, *without, render(*with).shares);
  EXPECT_EQ(make_plan(off.before.v4, off.after.v4).deleted_sets.size(), 1u);
  EXPECT_EQ(off.forgotten, render(*with).memories);
  const RenderedChange on = render_change(*without, *with, render(*without).shares);
  EXPECT_EQ(make_plan(on.before.v4, on.after.v4).new_sets.size(), 1u);
  EXPECT_TRUE(on.forgotten.empty());
}

TEST(RenderChange, CostsWhatChangedOnly) {
  TableSource source;
  fill_small_cluster(source);
  const auto before = source.make();
  const Rendered all = render(*before);
  source.put(kni::test::on_node(
      sluice::test::make_slice(
          "web", "a", {"10.42.1.10", "10.42.2.10", "10.42.3.10", "10.42.3.9", "10.42.3.8"}),
      0, 1));
  const auto after = source.make();
  const RenderedChange change = render_change(*before, *after, all.shares);
  const Plan plan = make_plan(change.before.v4, change.after.v4);
  EXPECT_EQ(plan.new_chains.size(), 4u);      // x-8, c-8 and those of node ports
  EXPECT_TRUE(plan.deleted_chains.empty());   // others use x-4; what picks stays
  EXPECT_TRUE(make_plan(change.before.v6, change.after.v6).empty());
}

// A verdict map's change costs the kernel a look at all that is behind the map.
TEST(RenderChange, AnEndpointThatComesWhereThereIsPlaceChangesSlotsOnly) {
  TableSource source;
  fill_small_cluster(source);
  const auto before = source.make();
  source.put(kni::test::on_node(
      sluice::test::make_slice("web", "a", {"10.42.1.10", "10.42.2.10", "10.42.3.10", "10.42.3.9"}),
      0, 1));
  const auto after = source.make();
  const RenderedChange change = render_change(*before, *after, render(*before).shares);
  const Plan plan = make_plan(change.before.v4, change.after.v4);
  EXPECT_TRUE(plan.new_chains.empty() && plan.deleted_chains.empty() && plan.filled.empty());
  ASSERT_FALSE(plan.added.empty());
  for (const auto& elements : plan.added) {
    EXPECT_EQ(elements.spec->kind, SetSpec::Kind::kEndpointMap) << *elements.set;
  }
}

TEST(RenderChange, AShapeThatComesBackCostsNoChain) {
  TableSource source;
  fill_small_cluster(source);
  const auto before = source.make();
  SharesOfBoth shares = render(*before).shares;
  source.put(sluice::test::make_slice(
      "web", "a", {"10.42.1.10", "10.42.2.10", "10.42.3.10", "10.42.3.9", "10.42.3.8"}));
  const auto between = source.make();
  RenderedChange away = render_change(*before, *between, shares);
  merge(shares, away);
  source.put(sluice::test::make_slice("web", "a", {"10.42.1.10", "10.42.2.10", "10.42.3.10"}));
  const RenderedChange back = render_change(*between, *source.make(), shares);
  const Plan plan = make_plan(back.before.v4, back.after.v4);
  for (const auto& [name, chain] : plan.new_chains) {
    EXPECT_THAT(*name, Not(HasSubstr("c-")));
  }
}

// A packet that read its rules before a commit reads maps behind it, and finds a chain of that
// commit empty: its connection was refused.
TEST(Plan, ChainsThatElementsNameComeIntoForceBeforeThem) {
  TableSource source;
  fill_small_cluster(source);
  const auto before = source.make();
  const SharesOfBoth shares = render(*before).shares;
  source.put(sluice::test::make_slice(
      "web", "a", {"10.42.1.10", "10.42.2.10", "10.42.3.10", "10.42.3.9", "10.42.3.8"}));
  const RenderedChange change = render_change(*before, *source.make(), shares);
  Plan rest = make_plan(change.before.v4, change.after.v4);
  const Plan first = take_first(rest);
  EXPECT_FALSE(first.new_chains.empty());
  EXPECT_EQ(first.new_chains.size(), first.filled.size());
  EXPECT_TRUE(first.added.empty() && first.removed.empty() && first.deleted_chains.empty());
  EXPECT_TRUE(rest.new_chains.empty() && rest.new_sets.empty() && rest.filled.empty());
  EXPECT_FALSE(rest.added.empty());
}

TEST(Plan, WhereElementsAreNotKnownEverySetIsFlushedAndFilledButWhatRulesRemember) {
  TableSource source;
  fill_small_cluster(source);
  const Ruleset wanted = render(*source.make()).rulesets.v4;
  Ruleset there = wanted;
  there.elements.clear();
  const Plan plan = make_plan(there, wanted, Known::kNone);
  EXPECT_EQ(plan.flushed.size(), wanted.sets.size() - 1);
  std::size_t added = 0;
  for (const auto& change : plan.added) {
    added += change.elements.size();
  }
  std::size_t all = 0;
  for (const auto& [set, elements] : wanted.elements) {
    all += elements.size();
  }
  EXPECT_EQ(added, all);
  EXPECT_TRUE(plan.new_sets.empty() && plan.deleted_sets.empty() && plan.emptied.empty());
}

TEST(RenderChange, NoChangeIsNothing) {
  TableSource source;
  fill_small_cluster(source);
  const auto before = source.make();
  const RenderedChange change = render_change(*before, *source.make(), render(*before).shares);
  EXPECT_TRUE(make_plan(change.before.v4, change.after.v4).empty());
}

/// Carries a plan out on a model.
void carry_out(const Plan& plan, Ruleset& on) {
  for (const auto& change : plan.removed) {
    for (const auto* element : change.elements) {
      EXPECT_EQ(std::erase(on.elements[*change.set], *element), 1u) << *change.set;
    }
  }
  for (const std::string* chain : plan.deleted_chains) {
    EXPECT_EQ(on.chains.erase(*chain), 1u) << *chain;
  }
  for (const std::string* set : plan.deleted_sets) {
    EXPECT_EQ(on.sets.erase(*set), 1u) << *set;
    on.elements.erase(*set);
  }
  for (const auto& [name, spec] : plan.new_sets) {
    EXPECT_TRUE(on.sets.emplace(*name, *spec).second) << *name;
  }
  for (const auto& [name, chain] : plan.new_chains) {
    EXPECT_TRUE(on.chains.emplace(*name, Chain{chain->hook, {}}).second) << *name;
  }
  for (const std::string* chain : plan.emptied) {
    if (const auto found = on.chains.find(*chain); found != on.chains.end()) {
      found->second.rules.clear();
    }
  }
  for (const auto& [name, chain] : plan.filled) {
    on.chains[*name].rules = chain->rules;
  }
  for (const auto& change : plan.added) {
    for (const auto* element : change.elements) {
      Elements& elements = on.elements[*change.set];
      EXPECT_TRUE(std::none_of(elements.begin(), elements.end(), [&](const auto& there) {
        return there.first == element->first;
      })) << *change.set;
      elements.push_back(*element);
    }
  }
}

TEST(RenderChange, ManyRandomChangesComeToWhatAWholeRenderSays) {
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    sluice::test::RandomCluster random(seed);
    TableSource source;
    source.config = random.config();
    core::TablePtr now = source.make();
    Rendered model = render(*now);
    for (int step = 0; step < 25; ++step) {
      source.put(random.service());
      source.put(random.slice());
      if (random.chance(10)) {
        source.host = random.host();
      }
      if (random.chance(10)) {
        source.config = random.config();
        source.config.masquerade_all = random.chance(50);
      }
      const core::TablePtr next = source.make();
      RenderedChange change = render_change(*now, *next, model.shares);
      carry_out(make_plan(change.before.v4, change.after.v4), model.rulesets.v4);
      carry_out(make_plan(change.before.v6, change.after.v6), model.rulesets.v6);
      merge(model.shares, change);
      Rendered whole = render(*next);
      add_unused(whole.rulesets, model.shares, next->node());
      for (const core::Family f : {core::Family::kIpv4, core::Family::kIpv6}) {
        ASSERT_TRUE(make_plan(model.rulesets.of(f), whole.rulesets.of(f)).empty())
            << "seed " << seed << " step " << step;
      }
      for (const auto& [shape, count] : model.shares.v4.shapes) {
        const auto found = whole.shares.v4.shapes.find(shape);
        EXPECT_EQ(count, found == whole.shares.v4.shapes.end() ? 0 : found->second);
      }
      EXPECT_EQ(model.shares.v4.hairpins, whole.shares.v4.hairpins);
      now = next;
    }
  }
}

}  // namespace
}  // namespace sluice::kni::nft
