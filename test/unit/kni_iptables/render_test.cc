// Tables in, rules and input of iptables-restore out.
#include "kni/iptables/render.h"

#include <set>
#include <string>

#include <gmock/gmock.h>

#include "dataplane/core/fwd/unsupported.h"
#include "kni/iptables/names.h"
#include "kni/iptables/restore_text.h"
#include "kni/iptables/sync_text.h"
#include "test/support/golden.h"
#include "test/support/random_cluster.h"
#include "test/unit/kni_nftables/fixture.h"

namespace sluice::kni::ipt {
namespace {

using core::Family;
using kni::test::on_node;
using kni::test::TableSource;
using kni::test::with_name;
using sluice::test::expect_golden;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

struct IptablesSource : TableSource {
  IptablesSource() {
    profile = compile::Profile::kIptables;
    config.node_port_addresses = {};
    fill_small_cluster(*this);
  }
  model::Service& service(const char* name) { return state.services[{"default", name}]; }
};

Ruleset rules_of(IptablesSource& source, Family family = Family::kIpv4,
                 const RenderOptions& options = {}) {
  return render(*source.make(), family, options);
}

std::string all_text(const Ruleset& rules) {
  return ruleset_text(rules);
}

TEST(IptablesRender, BesideWorkersOnlyWhatBeginsOnTheHostIsSeenAndTheirPortsAreKeptFree) {
  IptablesSource source;
  source.config.snat_first_port = 40960;
  source.config.snat_last_port = 65535;
  const auto table = source.make();
  RenderOptions options;
  options.taps = "slc-";
  for (const Hook& hook : render_hooks(table->node(), Family::kIpv4, options)) {
    // KUBE-FIREWALL guards 127.0.0.0/8 against whatever comes.
    const bool all =
        hook.chain == "OUTPUT" || hook.chain == "POSTROUTING" || hook.target == "KUBE-FIREWALL";
    EXPECT_EQ(hook.rule.starts_with("! -i slc-+ "), !all) << hook.chain << " " << hook.rule;
  }
  const std::string text = all_text(render(*table, Family::kIpv4, options));
  EXPECT_THAT(text, HasSubstr("-j MASQUERADE --to-ports 1024-40959 --random-fully"));
}

TEST(IptablesRender, OneOfEachKind) {
  IptablesSource source;
  expect_golden(all_text(rules_of(source)), SLUICE_GOLDEN "/iptables/small-v4.rules");
  expect_golden(all_text(rules_of(source, Family::kIpv6)),
                SLUICE_GOLDEN "/iptables/small-v6.rules");
}

TEST(IptablesRender, EveryNodeSettingThatRulesFollow) {
  IptablesSource source;
  source.config.detect_local = compile::NodeConfig::DetectLocal::kInterfaceNamePrefix;
  source.config.interface_name_prefix = "cali";
  source.config.node_port_addresses = {"primary"};
  source.config.masquerade_bit = 3;
  expect_golden(all_text(rules_of(source, Family::kIpv4, {false, false, false, ""})),
                SLUICE_GOLDEN "/iptables/prefix-primary-v4.rules");
  source.config.masquerade_all = true;
  EXPECT_THAT(all_text(rules_of(source)), HasSubstr("-d 10.43.0.10 --dport 80 -j KUBE-MARK-MASQ"));
}

TEST(IptablesRender, NamesAreHashesOfWhatTheyStandFor) {
  EXPECT_EQ(chain_hash("shop/cart:http", core::Protocol::kTcp), "I5LIAMPLWKMBJ54B");
  EXPECT_EQ(chain_hash("infra/resolver", core::Protocol::kUdp), "5NZELLHC23VYZP6R");
  EXPECT_EQ(chain_hash("shop/cart:http", core::Protocol::kTcp, "[fd42:1::20]:8080"),
            "7XWWG3QD5JDEQIES");
  // F82: longer than one block of the hash, and different in the last character only.
  const std::string name(300, 'x');
  const std::string a = chain_hash(name + "a", core::Protocol::kTcp);
  EXPECT_NE(a, chain_hash(name + "b", core::Protocol::kTcp));
  EXPECT_LE((kEndpointPrefix + a).size(), 28u);
}

// F75: what is printed gives every endpoint its share.
TEST(IptablesRender, SharesAreRightForAnyNumberOfEndpoints) {
  for (const std::uint64_t n : {2, 3, 7, 300, 1000, 5000, 10000}) {
    double left = 1.0;
    for (std::uint64_t i = 0; i < n; ++i) {
      const double p = i + 1 == n ? 1.0 : std::stod(probability_text(1, n - i));
      ASSERT_GT(p, 0.0);
      ASSERT_LE(p, 1.0);
      ASSERT_NEAR(left * p * static_cast<double>(n), 1.0, 0.01) << n << " endpoints, " << i;
      left *= 1.0 - p;
    }
  }
}

TEST(IptablesRender, WeightsAreSharesOfWhatIsLeft) {
  IptablesSource source;
  source.service("web").annotations["sluice.dev/scheduler"] = "wrandom";
  source.service("web").annotations["sluice.dev/weights"] =
      "10.42.1.10=6, 10.42.2.10=3, 10.42.3.10=1";
  const std::string text = all_text(rules_of(source));
  EXPECT_THAT(text, HasSubstr("--probability 0.6000000000"));
  EXPECT_THAT(text, HasSubstr("--probability 0.7500000000"));
}

TEST(IptablesRender, WhatRulesCannotDoIsReportedPerService) {
  IptablesSource source;
  source.service("web").annotations["sluice.dev/scheduler"] = "lc";
  source.service("near").annotations["sluice.dev/forwarding-mode"] = "dr";
  source.service("near").ports[0].port = 8080;
  const auto table = source.make();
  std::set<std::string> said;
  for (std::uint32_t i = 0; i < table->slot_limit(); ++i) {
    if (const auto* s = table->service(static_cast<core::ServiceSlot>(i))) {
      for (const core::Unsupported& line : core::unsupported_of(*s, iptables_capabilities())) {
        said.insert(line.service_port + ": " + line.what);
      }
    }
  }
  EXPECT_THAT(said, ElementsAre(HasSubstr("default/near: forwarding mode dr: iptables cannot"),
                                HasSubstr("default/web: scheduler lc: iptables cannot")));
}

TEST(IptablesRender, ANameCannotEndItsComment) {
  IptablesSource source;
  source.put(sluice::test::make_service("x", "10.43.0.99"));
  const auto table = with_name(source.make(), "default/x", "default/x\" -j ACCEPT\n-A INPUT");
  const std::string text = all_text(render(*table, Family::kIpv4, {}));
  EXPECT_THAT(text, HasSubstr("\"default/x__-j_ACCEPT_-A_INPUT has no endpoints\""));
  EXPECT_THAT(text, Not(HasSubstr("ACCEPT\n-A INPUT")));
}

TEST(IptablesRender, LoopbackIsANodePortAddressOnlyWhereItIsWanted) {
  IptablesSource source;
  source.config.node_port_addresses = {"127.0.0.0/8", "192.0.2.0/24"};
  const std::string with = all_text(rules_of(source));
  EXPECT_THAT(with, HasSubstr("-d 127.0.0.1 -j KUBE-NODEPORTS"));
  EXPECT_THAT(with, HasSubstr("KUBE-FIREWALL"));
  const std::string without = all_text(rules_of(source, Family::kIpv4, {false, true, true, ""}));
  EXPECT_THAT(without, Not(HasSubstr("-d 127.0.0.1 ")));
  EXPECT_THAT(without, HasSubstr("-d 192.0.2.11 -j KUBE-NODEPORTS"));
  EXPECT_THAT(without, Not(HasSubstr("KUBE-FIREWALL")));
}

TEST(IptablesRender, BesideWorkersItKeepsOffWhatIsTheirs) {
  IptablesSource source;
  RenderOptions options;
  options.taps = "slc-";
  const auto table = source.make();
  for (const Hook& hook : render_hooks(table->node(), Family::kIpv4, options)) {
    const bool arriving = hook.chain != "OUTPUT" && hook.chain != "POSTROUTING" &&
                          hook.target != std::string(kSharedFirewallChain);
    EXPECT_EQ(hook.rule.starts_with("! -i slc-+ "), arriving) << hook.chain << " " << hook.rule;
  }
  EXPECT_THAT(rules_of(source, Family::kIpv4, options).nat[kPostroutingChain],
              Contains(HasSubstr("-m udp -p udp -j MASQUERADE --to-ports 1024-40959 --random")));
}

TEST(IptablesRender, ALargeClusterHasNoCommentsInChainsOfServices) {
  EXPECT_FALSE(is_large(1000));
  EXPECT_TRUE(is_large(1001));
  IptablesSource source;
  const auto table = source.make();
  for (const core::ServiceSlot slot : ordered_slots(*table, Family::kIpv4)) {
    for (const auto& [chain, rules] : render_service(*table, slot, false)) {
      EXPECT_THAT(rules, Not(Contains(HasSubstr("comment")))) << chain;
    }
  }
}

// ---- What is sent.

/// Applies restore input to a set of chains and says what is wrong with any state between commits.
class Replay {
 public:
  explicit Replay(const std::string& text) { add(text); }

  void add(const std::string& text) {
    std::string table;
    std::map<std::string, std::vector<std::string>> work;
    std::size_t at = 0;
    while (at < text.size()) {
      const std::size_t end = text.find('\n', at);
      const std::string line = text.substr(at, end - at);
      at = end + 1;
      if (line[0] == '*') {
        table = line.substr(1);
        work = chains_[table];
      } else if (line[0] == ':') {
        work[line.substr(1, line.find(' ') - 1)].clear();
      } else if (line.starts_with("-A ")) {
        work[line.substr(3, line.find(' ', 3) - 3)].push_back(line);
      } else if (line.starts_with("-I ")) {
        work["hooks"].push_back(line);
      } else if (line.starts_with("-X ")) {
        work.erase(line.substr(3));
      } else if (line == "COMMIT") {
        chains_[table] = work;
        check();
      }
    }
  }
  [[nodiscard]] const std::string& fault() const { return fault_; }
  [[nodiscard]] std::map<std::string, std::vector<std::string>> chains(const char* table) const {
    return chains_.at(table);
  }

 private:
  void check() {
    for (const auto& [table, chains] : chains_) {
      for (const auto& [chain, rules] : chains) {
        for (const std::string& rule : rules) {
          const std::string target = rule.substr(rule.rfind("-j ") + 3);
          if (target.starts_with("KUBE-") && !chains.contains(target)) {
            fault_ += table + ": no chain for " + rule + "\n";
          }
          // A way into a Service has somewhere to go.
          if (chain == kServicesChain && target.starts_with("KUBE-S") &&
              chains.at(target).empty()) {
            fault_ += table + ": empty chain behind " + rule + "\n";
          }
        }
      }
    }
  }
  std::map<std::string, std::map<std::string, std::vector<std::string>>> chains_;
  std::string fault_;
};

std::string whole(const core::ForwardingTable& table, bool sections, const Present& present = {}) {
  const auto slots = ordered_slots(table, Family::kIpv4);
  return write_whole(table, Family::kIpv4, render_shared(table, Family::kIpv4, slots, {}), slots,
                     render_hooks(table.node(), Family::kIpv4, {}), present, sections)
      .text;
}

SyncText change(const core::ForwardingTable& before, const core::ForwardingTable& after) {
  const auto shared = [](const core::ForwardingTable& t) {
    return render_shared(t, Family::kIpv4, ordered_slots(t, Family::kIpv4), {});
  };
  const ServiceChange change = render_change(before, after, Family::kIpv4, true);
  return write_change(change, shared(before), shared(after), change.gone, false);
}

TEST(IptablesText, AWholeSyncMakesTheModelAndNeverAJumpIntoNothing) {
  IptablesSource source;
  const auto table = source.make();
  for (const bool sections : {false, true}) {
    const Replay kernel(whole(*table, sections));
    EXPECT_EQ(kernel.fault(), "");
    const Ruleset wanted = render(*table, Family::kIpv4, {});
    const auto nat = kernel.chains("nat");
    for (const auto& [chain, rules] : wanted.nat) {
      ASSERT_TRUE(nat.contains(chain)) << chain;
      EXPECT_EQ(nat.at(chain).size(), rules.size()) << chain;
    }
    EXPECT_TRUE(kernel.chains("mangle").contains(kCanaryChain));
    EXPECT_EQ(kernel.chains("filter").at("hooks").size(), 11u);
  }
}

TEST(IptablesText, TheLegacyVariantIsToldOfALargeClustersChainsAPartAtATimeInOneSection) {
  IptablesSource source;
  kni::test::add_many(source, 0, static_cast<int>(kServicesOfPart) + 1, 1);
  const auto table = source.make();
  const std::string text = whole(*table, false);
  const std::size_t nat = text.find("*nat\n");
  const std::size_t rule_of_first_part = text.find("-A KUBE-SEP-");
  EXPECT_NE(text.find("\n:KUBE-SEP-", rule_of_first_part), std::string::npos);
  EXPECT_EQ(text.find("*nat\n", nat + 1), std::string::npos);
  const Replay kernel(text);
  EXPECT_EQ(kernel.fault(), "");
  auto there = kernel.chains("nat");
  there.erase("hooks");
  there.erase(kCanaryChain);
  EXPECT_EQ(there.size(), render(*table, Family::kIpv4, {}).nat.size());
}

TEST(IptablesText, AChangeWritesTheSharedChainsAndThoseOfTheChangedService) {
  IptablesSource source;
  const auto before = source.make();
  source.put(on_node(sluice::test::make_slice("web", "a", {"10.42.1.10", "10.42.2.10"}), 0, 1));
  const SyncText sent = change(*before, *source.make());
  const std::string gone =
      kEndpointPrefix + chain_hash("default/web", core::Protocol::kTcp, "10.42.3.10:8080");
  EXPECT_THAT(sent.text, HasSubstr("-X " + gone + "\n"));
  EXPECT_THAT(sent.text, HasSubstr(std::string(":") + kServicesChain));
  EXPECT_THAT(sent.text,
              Not(HasSubstr(chain_hash("default/sticky:http", core::Protocol::kTcp) + " - [0:0]")));
  Replay kernel(whole(*before, false));
  kernel.add(sent.text);
  EXPECT_EQ(kernel.fault(), "");
  EXPECT_FALSE(kernel.chains("nat").contains(gone));
}

TEST(IptablesText, RefusalsComeBeforeTheWayInGoesAndGoAfterItHasCome) {
  IptablesSource source;
  const auto full = source.make();
  source.state.slices.erase({"default", "web-a"});
  const auto empty = source.make();
  const std::string losing = change(*full, *empty).text;
  EXPECT_LT(losing.find("*filter"), losing.find("*nat"));
  source.put(sluice::test::make_slice("none", "a", {"10.42.1.14"}));
  const auto other = source.make();
  const std::string gaining = change(*empty, *other).text;
  EXPECT_LT(gaining.find("*nat"), gaining.find("*filter"));

  // Both at once: the refusal that goes stays until the end.
  const std::string both = change(*full, *other).text;
  EXPECT_THAT(both.substr(0, both.find("*nat")), HasSubstr("default/none has no endpoints"));
  EXPECT_THAT(both.substr(both.find("*nat")), Not(HasSubstr("default/none has no endpoints")));
  Replay kernel(whole(*full, false));
  kernel.add(both);
  EXPECT_EQ(kernel.fault(), "");
}

TEST(IptablesText, RandomWalksNeverLeaveAJumpIntoNothing) {
  sluice::test::RandomCluster random(11);
  IptablesSource source;
  auto before = source.make();
  Replay kernel(whole(*before, true));
  for (int step = 0; step < 300; ++step) {
    if (random.chance(15)) {
      source.state.services.erase(random.service_name());
      source.state.slices.erase(random.slice_name());
    } else if (random.chance(50)) {
      source.put(random.service());
    } else {
      source.put(random.slice());
    }
    const auto after = source.make();
    kernel.add(change(*before, *after).text);
    ASSERT_EQ(kernel.fault(), "") << "step " << step;
    before = after;
  }
  // What is left is what a first load would have made.
  auto nat = kernel.chains("nat");
  auto wanted = Replay(whole(*before, false)).chains("nat");
  nat.erase("hooks");
  wanted.erase("hooks");
  EXPECT_EQ(nat, wanted);
}

// SY-13: whatever is there.
TEST(IptablesText, StaleChainsOfAnEarlierRunGoAndThoseThatOthersUseStay) {
  IptablesSource source;
  Present present;
  for (const char* line :
       {"*nat", ":KUBE-SVC-OLD - [0:0]", ":KUBE-SVC-USED - [0:0]", ":KUBE-SEP-OLD - [0:0]",
        ":KUBE-SVC-HOOKED - [0:0]", ":THEIRS - [0:0]", "-A THEIRS -j KUBE-SVC-USED",
        "-A KUBE-SVC-USED -j KUBE-SEP-OLD", "-A PREROUTING -j KUBE-SVC-HOOKED", "COMMIT"}) {
    present.take(line);
  }
  const std::string text = whole(*source.make(), false, present);
  EXPECT_THAT(text, HasSubstr("-X KUBE-SVC-OLD\n"));
  // Emptied, so that what it led to can go; the kernel would not let go of it.
  EXPECT_THAT(text, HasSubstr("-X KUBE-SEP-OLD\n"));
  EXPECT_THAT(text, HasSubstr(":KUBE-SVC-USED - [0:0]\n"));
  EXPECT_THAT(text, Not(HasSubstr("-X KUBE-SVC-USED\n")));
  EXPECT_THAT(text, Not(HasSubstr("-X KUBE-SVC-HOOKED\n")));
  EXPECT_THAT(text, Not(HasSubstr("THEIRS")));
}

TEST(IptablesText, BesideWorkersTheHooksOfAnotherModeGo) {
  IptablesSource source;
  const auto table = source.make();
  RenderOptions beside;
  beside.taps = "slc-";
  const std::vector<Hook> old_hooks = render_hooks(table->node(), Family::kIpv4, {});
  const std::vector<Hook> hooks = render_hooks(table->node(), Family::kIpv4, beside);
  Present present;
  present.take("*nat");
  for (const Hook& hook : old_hooks) {
    if (hook.table == Table::kNat) {
      present.take("-A " + hook.chain + " " + hook.rule);
    }
  }
  present.take("-A PREROUTING -j KUBE-SERVICES");  // somebody else's
  const auto slots = ordered_slots(*table, Family::kIpv4);
  const std::string text =
      write_whole(*table, Family::kIpv4, render_shared(*table, Family::kIpv4, slots, beside), slots,
                  hooks, present, false)
          .text;
  const std::string rule =
      "-m comment --comment \"kubernetes service portals\" -j KUBE-SERVICES\n";
  EXPECT_THAT(text, HasSubstr("-D PREROUTING " + rule));
  EXPECT_THAT(text, HasSubstr("-I PREROUTING ! -i slc-+ " + rule));
  EXPECT_THAT(text, Not(HasSubstr("-D OUTPUT")));
  EXPECT_THAT(text, Not(HasSubstr("-D PREROUTING -j")));
}

TEST(IptablesText, CleanupTakesOursAndNothingElse) {
  Present present;
  for (const char* line :
       {"*filter", ":INPUT ACCEPT [0:0]", ":KUBE-SERVICES - [0:0]", ":KUBE-FIREWALL - [0:0]",
        "-A INPUT -m comment --comment \"kubernetes service portals\" -j KUBE-SERVICES",
        "-A INPUT -j KUBE-FIREWALL", "-A INPUT -j THEIRS", "COMMIT", "*nat", ":KUBE-SVC-X - [0:0]",
        ":KUBE-MARK-MASQ - [0:0]", "-A PREROUTING -j KUBE-MARK-MASQ"}) {
    present.take(line);
  }
  EXPECT_EQ(write_cleanup(present),
            "*nat\n-F KUBE-MARK-MASQ\n-F KUBE-SVC-X\n-X KUBE-SVC-X\nCOMMIT\n"
            "*filter\n-F KUBE-SERVICES\n"
            "-D INPUT -m comment --comment \"kubernetes service portals\" -j KUBE-SERVICES\n"
            "-X KUBE-SERVICES\nCOMMIT\n");
  EXPECT_EQ(write_cleanup({}), "");
}

TEST(IptablesText, ChainsAreDeletedByTheEndsOfTheirNamesSoThatTheProgramIsDoneSoon) {
  Present present;
  for (const char* line : {"*nat", ":KUBE-SEP-AZ - [0:0]", ":KUBE-SEP-BY - [0:0]",
                           ":KUBE-SVC-CX - [0:0]", "COMMIT"}) {
    present.take(line);
  }
  const std::string in_order = "-X KUBE-SVC-CX\n-X KUBE-SEP-BY\n-X KUBE-SEP-AZ\n";
  EXPECT_THAT(write_cleanup(present), HasSubstr(in_order));
  IptablesSource source;
  EXPECT_THAT(whole(*source.make(), false, present), HasSubstr(in_order));
}

TEST(IptablesText, AChainIsFoundBackToItsService) {
  IptablesSource source;
  const auto table = source.make();
  EXPECT_EQ(
      service_of_chain(*table, kEndpointPrefix + chain_hash("default/web", core::Protocol::kTcp,
                                                            "10.42.3.10:8080")),
      "default/web");
  EXPECT_EQ(service_of_chain(*table, "KUBE-SERVICES"), "");
}

}  // namespace
}  // namespace sluice::kni::ipt
