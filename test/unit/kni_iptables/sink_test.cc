// What the sink does with the programs it runs, and when they refuse.
#include "kni/iptables/iptables_sink.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <map>
#include <sstream>
#include <string>

#include <gmock/gmock.h>

#include "kni/iptables/names.h"
#include "test/unit/kni_iptables/fake_runner.h"
#include "test/unit/kni_nftables/fixture.h"

namespace sluice::kni {
namespace {

using core::Family;
using kni::test::FakeRunner;
using kni::test::refused;
using kni::test::TableSource;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing::Pair;

class IptablesSinkTest : public testing::Test {
 protected:
  IptablesSinkTest() {
    source_.profile = compile::Profile::kIptables;
    fill_small_cluster(source_);
    for (const char* other : {"iptables-nft-save", "ip6tables-nft-save"}) {
      programs_.missing[other] = "cannot be run: No such file or directory";
    }
    options_.warn = [this](const std::string& line) { warnings_.push_back(line); };
    options_.clock = [this] { return now_; };
    options_.route_localnet = "/dev/null";
  }
  void open() {
    auto sink = IptablesSink::open(std::make_unique<FakeRunner>(programs_), options_);
    ASSERT_TRUE(sink) << sink.error().message;
    sink_ = std::move(*sink);
  }
  /// What iptables-save would say, so that nothing looks changed from outside.
  void show_in_force(const core::ForwardingTable& table) {
    for (const Family family : {Family::kIpv4, Family::kIpv6}) {
      const ipt::RenderOptions& options = sink_->render_options(family);
      const ipt::Ruleset rules = ipt::render(table, family, options);
      auto& lines = programs_.output[family == Family::kIpv4 ? "iptables-save" : "ip6tables-save"];
      lines = {"*mangle", std::string(":") + ipt::kCanaryChain + " - [0:0]"};
      for (const ipt::Table t : {ipt::Table::kFilter, ipt::Table::kNat}) {
        lines.push_back(std::string("*") + ipt::name_of(t));
        lines.push_back(std::string(":") + ipt::kCanaryChain + " - [0:0]");
        for (const auto& [chain, list] : t == ipt::Table::kNat ? rules.nat : rules.filter) {
          lines.push_back(":" + chain + " - [0:0]");
          for (const std::string& rule : list) {
            lines.push_back("-A " + chain + " " + rule);
          }
        }
        for (const ipt::Hook& hook : ipt::render_hooks(table.node(), family, options)) {
          if (hook.table == t) {
            lines.push_back("-A " + hook.chain + " " + hook.rule);
          }
        }
      }
    }
  }
  core::TablePtr change() {
    source_.state.services.erase({"default", "far"});
    return source_.make();
  }
  const ipt::FamilyCounters& v4() { return sink_->counters(Family::kIpv4); }

  FakeRunner::State programs_;
  IptablesSink::Options options_;
  std::unique_ptr<IptablesSink> sink_;
  TableSource source_;
  std::chrono::steady_clock::time_point now_{std::chrono::hours(1)};
  std::vector<std::string> warnings_;
};

TEST_F(IptablesSinkTest, ASyncIsOneRunOfRestoreAndTheNextIsPartial) {
  open();
  const auto first = source_.make();
  ASSERT_TRUE(sink_->apply(first));
  EXPECT_THAT(programs_.ran, Contains("iptables-restore -w 5 --noflush --counters"));
  EXPECT_THAT(programs_.ran, Contains("ip6tables-restore -w 5 --noflush --counters"));
  ASSERT_TRUE(sink_->apply(change()));
  ASSERT_EQ(programs_.inputs.size(), 2u);
  EXPECT_THAT(programs_.inputs[1], HasSubstr("-X KUBE-SVC-"));
  EXPECT_THAT(programs_.inputs[1],
              Not(HasSubstr(ipt::chain_hash("default/web", core::Protocol::kTcp) + " - [0:0]")));
  EXPECT_EQ(v4().full_syncs, 1u);
  EXPECT_EQ(v4().partial_syncs, 1u);
  // IPv6 had nothing to write.
  EXPECT_EQ(sink_->counters(Family::kIpv6).partial_syncs, 0u);
}

TEST_F(IptablesSinkTest, CountsWhatItOwnsAndWhatItWrote) {
  open();
  ASSERT_TRUE(sink_->apply(source_.make()));
  EXPECT_EQ(v4().nat_rules, v4().last_nat_rules);
  const auto second = change();
  ASSERT_TRUE(sink_->apply(second));
  std::size_t wanted = 0;
  for (const auto& [chain, rules] :
       ipt::render(*second, Family::kIpv4, sink_->render_options(Family::kIpv4)).nat) {
    wanted += rules.size();
  }
  EXPECT_EQ(v4().nat_rules, wanted);
  EXPECT_LT(v4().last_nat_rules, wanted);
}

// F73
TEST_F(IptablesSinkTest, APartialSyncThatFailsIsFollowedByAWholeOneAtOnce) {
  open();
  ASSERT_TRUE(sink_->apply(source_.make()));
  programs_.restores = {refused(2, "iptables-restore: line 9 failed\n")};
  ASSERT_TRUE(sink_->apply(change()));
  EXPECT_EQ(v4().partial_failures, 1u);
  EXPECT_EQ(v4().full_syncs, 2u);
  EXPECT_THAT(warnings_, ElementsAre(HasSubstr("default/sticky"),  // its affinity has a limit
                                     HasSubstr("everything is written anew")));
}

TEST_F(IptablesSinkTest, APartialSyncThatFailsIsTheLastOneWhenTheDaemonEnds) {
  bool ending = false;
  options_.ending = [&] { return ending; };
  open();
  ASSERT_TRUE(sink_->apply(source_.make()));
  programs_.restores = {refused(137, "")};
  ending = true;
  EXPECT_FALSE(sink_->apply(change()));
  EXPECT_EQ(programs_.inputs.size(), 2u);
}

TEST_F(IptablesSinkTest, ARefusedRuleIsNamedWithItsService) {
  open();
  const auto table = source_.make();
  const ipt::Ruleset rules =
      ipt::render(*table, Family::kIpv4, sink_->render_options(Family::kIpv4));
  ASSERT_TRUE(sink_->apply(table));
  const std::string chain = ipt::kEndpointPrefix +
                            ipt::chain_hash("default/web", core::Protocol::kTcp, "10.42.3.10:8080");
  const std::string& input = programs_.inputs[0];
  const auto line =
      1 + std::count(input.begin(),
                     input.begin() + static_cast<std::ptrdiff_t>(input.find("-A " + chain)), '\n');
  const ipt::Outcome outcome =
      refused(2, "iptables-restore v1.8.9 (legacy): Couldn't load match\nError occurred at line: " +
                     std::to_string(line) + "\nTry `iptables-restore -h' for more information.\n");
  open();
  programs_.restores = {outcome};
  const auto failed = sink_->apply(table);
  ASSERT_FALSE(failed);
  EXPECT_THAT(failed.error().message, HasSubstr("iptables-restore: status 2: "));
  EXPECT_THAT(failed.error().message, HasSubstr("the line is \"-A " + chain));
  EXPECT_THAT(failed.error().message, HasSubstr("of service default/web"));
  EXPECT_THAT(failed.error().message, Not(HasSubstr("\n")));
  EXPECT_EQ(v4().sync_failures, 1u);
  // The next one is whole.
  ASSERT_TRUE(sink_->apply(table));
  EXPECT_EQ(v4().full_syncs, 1u);
}

TEST_F(IptablesSinkTest, AHeldLockIsSaidAndNotWaitedForTwice) {
  open();
  ASSERT_TRUE(sink_->apply(source_.make()));
  programs_.restores = {
      refused(4, "Another app is currently holding the xtables lock; still 1s\n")};
  const auto second = change();
  const auto failed = sink_->apply(second);
  ASSERT_FALSE(failed);
  EXPECT_THAT(failed.error().message, HasSubstr("another program holds the xtables lock"));
  EXPECT_EQ(programs_.inputs.size(), 2u);
  ASSERT_TRUE(sink_->apply(second));
  EXPECT_EQ(v4().full_syncs, 2u);
}

TEST_F(IptablesSinkTest, OneFamilyThatFailsDoesNotHoldTheOtherBack) {
  open();
  programs_.restores = {refused(1, "iptables-restore: Permission denied (you must be root)\n")};
  const auto failed = sink_->apply(source_.make());
  ASSERT_FALSE(failed);
  EXPECT_THAT(failed.error().message, HasSubstr("CAP_NET_ADMIN"));
  EXPECT_EQ(sink_->counters(Family::kIpv6).full_syncs, 1u);
}

TEST_F(IptablesSinkTest, AMissingProgramIsALineAndItsFamilyIsReportedPerService) {
  for (const char* program : {"ip6tables", "ip6tables-save"}) {
    programs_.missing[program] = "cannot be run: No such file or directory";
  }
  open();
  EXPECT_THAT(warnings_, ElementsAre(HasSubstr("IPv6 is not served: ip6tables: cannot be run")));
  const auto report = sink_->apply(source_.make());
  ASSERT_TRUE(report);
  std::map<std::string, std::string> told;
  for (const core::Unsupported& line : report->unsupported) {
    told[line.service_port] = line.what;
  }
  EXPECT_THAT(told, ElementsAre(Pair("default/six", HasSubstr("not served: ip6tables")),
                                Pair("default/sticky:http", HasSubstr("session affinity"))));

  programs_.missing["iptables"] = "cannot be run: No such file or directory";
  const auto none = IptablesSink::open(std::make_unique<FakeRunner>(programs_), options_);
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().message, "iptables: cannot be run: No such file or directory");
}

TEST_F(IptablesSinkTest, WithoutTheRightTheStartIsRefusedInOneLine) {
  for (const char* stem : {"iptables", "ip6tables"}) {
    programs_.outcome[std::string(stem) + " -w 5 -t nat -S POSTROUTING"] =
        refused(4,
                "iptables v1.8.9 (nf_tables): Could not fetch rule set generation id: "
                "Permission denied (you must be root)\n");
  }
  const auto refused = IptablesSink::open(std::make_unique<FakeRunner>(programs_), options_);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message,
            "iptables: not permitted; CAP_NET_ADMIN and CAP_NET_RAW are needed");
}

TEST_F(IptablesSinkTest, WithoutAChangeItLooksWhetherTheChainsAreAsTheyWereLeft) {
  open();
  const auto table = source_.make();
  ASSERT_TRUE(sink_->apply(table));
  show_in_force(*table);
  ASSERT_TRUE(sink_->apply(table));
  EXPECT_EQ(v4().full_syncs, 1u);
  EXPECT_EQ(v4().repairs, 0u);
  // Somebody has emptied the built-in chains of nat: the hooks are gone, the canaries not.
  auto& lines = programs_.output["iptables-save"];
  std::erase_if(lines, [](const std::string& line) { return line.starts_with("-A PREROUTING"); });
  ASSERT_TRUE(sink_->apply(table));
  EXPECT_EQ(v4().full_syncs, 2u);
  EXPECT_EQ(v4().repairs, 1u);
  EXPECT_THAT(warnings_, Contains(HasSubstr("changed from outside")));
  EXPECT_EQ(sink_->counters(Family::kIpv6).repairs, 0u);
}

TEST_F(IptablesSinkTest, ChangesDoNotKeepItFromLooking) {
  open();
  ASSERT_TRUE(sink_->apply(source_.make()));
  now_ += options_.sync_period;
  ASSERT_TRUE(sink_->apply(change()));  // the fake shows empty tables
  EXPECT_EQ(v4().repairs, 1u);
  EXPECT_EQ(v4().full_syncs, 2u);
}

TEST_F(IptablesSinkTest, EveryHourAllIsWrittenAnew) {
  open();
  const auto table = source_.make();
  ASSERT_TRUE(sink_->apply(table));
  show_in_force(*table);
  now_ += std::chrono::hours(1);
  ASSERT_TRUE(sink_->apply(table));
  EXPECT_EQ(v4().full_syncs, 2u);
  EXPECT_EQ(v4().repairs, 0u);
}

TEST_F(IptablesSinkTest, RulesOfOthersInTheSharedChainAreKept) {
  programs_.output["iptables-save"] = {
      "*filter", ":KUBE-FIREWALL - [0:0]", "-A KUBE-FIREWALL -m mark --mark 0x8000/0x8000 -j DROP",
      "-A KUBE-FIREWALL ! -s 127.0.0.0/8 -m comment --comment \"block incoming localnet "
      "connections\" -j DROP"};
  source_.config.node_port_addresses = {"0.0.0.0/0"};
  open();
  ASSERT_TRUE(sink_->apply(source_.make()));
  EXPECT_THAT(programs_.inputs[0],
              HasSubstr("-A KUBE-FIREWALL -m mark --mark 0x8000/0x8000 -j DROP\n"));
  EXPECT_THAT(programs_.inputs[0], Not(HasSubstr("-A KUBE-FIREWALL ! -s")));
}

// NP-6
TEST_F(IptablesSinkTest, LoopbackIsRoutedOnlyBehindTheRuleThatMakesItSafe) {
  const std::string setting = testing::TempDir() + "sluice-route-" + std::to_string(getpid());
  const auto content = [&] {
    std::string text;
    std::ifstream(setting) >> text;
    return text;
  };
  std::ofstream(setting) << "0";
  options_.route_localnet = setting;
  source_.config.node_port_addresses = {"0.0.0.0/0"};
  open();
  const auto table = source_.make();
  programs_.restores = {refused(2, "iptables-restore: line 9 failed\n")};
  EXPECT_FALSE(sink_->apply(table));
  EXPECT_EQ(content(), "0");
  ASSERT_TRUE(sink_->apply(table));
  EXPECT_EQ(content(), "1");
  // And the rule is watched.
  show_in_force(*table);
  ASSERT_TRUE(sink_->apply(table));
  EXPECT_EQ(v4().repairs, 0u);
  std::erase_if(programs_.output["iptables-save"],
                [](const std::string& line) { return line.starts_with("-A KUBE-FIREWALL"); });
  ASSERT_TRUE(sink_->apply(table));
  EXPECT_EQ(v4().repairs, 1u);
  std::remove(setting.c_str());
}

// Nothing is written, and nobody warned, where the right to write is missing and not needed.
TEST_F(IptablesSinkTest, LoopbackThatIsRoutedAlreadyIsLeftAsItIs) {
  const std::string setting = testing::TempDir() + "sluice-routed-" + std::to_string(getpid());
  std::ofstream(setting) << "1 by another";
  options_.route_localnet = setting;
  source_.config.node_port_addresses = {"0.0.0.0/0"};
  open();
  ASSERT_TRUE(sink_->apply(source_.make()));
  std::string text;
  std::getline(std::ifstream(setting), text);
  EXPECT_EQ(text, "1 by another");
  EXPECT_THAT(warnings_, Not(Contains(HasSubstr(setting))));
  std::remove(setting.c_str());
}

/// More endpoints than a small cluster has.
model::EndpointSlice many(std::size_t count) {
  std::vector<std::string> addresses;
  for (std::size_t i = 0; i < count; ++i) {
    addresses.push_back(sluice::test::endpoint_address(static_cast<unsigned>(i)));
  }
  return sluice::test::make_slice("web", "a", addresses);
}

// SY-8
TEST_F(IptablesSinkTest, InALargeClusterStaleChainsWaitForTheSyncPeriod) {
  source_.put(many(1100));
  open();
  ASSERT_TRUE(sink_->apply(source_.make()));
  EXPECT_THAT(programs_.inputs[0], Not(HasSubstr("default/web -> ")));
  source_.put(many(1050));
  ASSERT_TRUE(sink_->apply(source_.make()));
  EXPECT_THAT(programs_.inputs[1], Not(HasSubstr("-X ")));
  now_ += options_.sync_period;
  // What was left; the chains that wait for their deletion are still there.
  auto& lines = programs_.output["iptables-save"];
  show_in_force(*source_.make());
  std::istringstream deleted(programs_.inputs[0]);
  bool nat = false;
  for (std::string line; std::getline(deleted, line);) {
    nat = line == "*nat" || (nat && line != "COMMIT");
    if (nat && (line.starts_with(":KUBE-SEP-") || line.starts_with("-A KUBE-SEP-")) &&
        std::find(lines.begin(), lines.end(), line) == lines.end()) {
      lines.push_back(line);
    }
  }
  source_.put(many(1049));
  ASSERT_TRUE(sink_->apply(source_.make()));
  EXPECT_THAT(programs_.inputs[2], HasSubstr("-X KUBE-SEP-"));
  // Shared chains that say the same are left alone, and at the border all is written anew.
  EXPECT_THAT(programs_.inputs[2], Not(HasSubstr(":KUBE-SERVICES")));
  source_.put(many(900));
  ASSERT_TRUE(sink_->apply(source_.make()));
  EXPECT_EQ(v4().full_syncs, 2u);
  EXPECT_THAT(programs_.inputs[3], HasSubstr("default/web -> "));
}

// kube-proxy would not see it: one rule of one chain, in a large cluster.
TEST_F(IptablesSinkTest, InALargeClusterARuleThatGoesIsPutBackWithinTheSyncPeriod) {
  source_.put(many(1100));
  open();
  const auto table = source_.make();
  ASSERT_TRUE(sink_->apply(table));
  show_in_force(*table);
  ASSERT_TRUE(sink_->apply(table));
  EXPECT_EQ(v4().repairs, 0u);
  auto& lines = programs_.output["iptables-save"];
  const auto rule = std::find_if(lines.begin(), lines.end(), [](const std::string& line) {
    return line.starts_with("-A KUBE-SEP-");
  });
  ASSERT_NE(rule, lines.end());
  lines.erase(rule);
  now_ += options_.sync_period;
  ASSERT_TRUE(sink_->apply(change()));
  EXPECT_EQ(v4().repairs, 1u);
  EXPECT_EQ(v4().full_syncs, 2u);
}

TEST_F(IptablesSinkTest, ARuleThatGivesWayToAnotherIsPutRight) {
  open();
  const auto table = source_.make();
  ASSERT_TRUE(sink_->apply(table));
  show_in_force(*table);
  ASSERT_TRUE(sink_->apply(table));
  for (std::string& line : programs_.output["iptables-save"]) {
    if (line.starts_with("-A KUBE-SEP-") && line.ends_with("--to-destination 10.42.2.10:8080")) {
      line.back() = '1';
    }
  }
  ASSERT_TRUE(sink_->apply(table));
  EXPECT_EQ(v4().repairs, 1u);
}

TEST_F(IptablesSinkTest, TheVariantIsTheOneWithOurChainsThenTheOneWithHints) {
  using ipt::Variant;
  programs_.missing.clear();
  const auto chosen = [&](Variant wanted) {
    FakeRunner runner(programs_);
    const auto found = ipt::find_programs(runner, Family::kIpv4, wanted);
    return found ? found->stem : found.error().message;
  };
  EXPECT_EQ(chosen(Variant::kAuto), "iptables");
  EXPECT_EQ(chosen(Variant::kLegacy), "iptables-legacy");
  programs_.output["iptables-nft-save"] = {"*mangle", ":KUBE-KUBELET-CANARY - [0:0]"};
  EXPECT_EQ(chosen(Variant::kAuto), "iptables-nft");
  programs_.output["iptables-legacy-save"] = {"*nat", ":KUBE-SERVICES - [0:0]"};
  EXPECT_EQ(chosen(Variant::kAuto), "iptables-legacy");
  programs_.missing["iptables-nft-save"] = "";
  EXPECT_EQ(chosen(Variant::kAuto), "iptables");
}

TEST_F(IptablesSinkTest, CleanupFindsWhatAHalfDoneOneHasLeft) {
  programs_.output["iptables-save"] = {"*nat", ":KUBE-SEP-ONE - [0:0]"};
  FakeRunner runner(programs_);
  ASSERT_TRUE(clean_up_iptables(runner));
  ASSERT_EQ(programs_.inputs.size(), 1u);
  EXPECT_THAT(programs_.inputs[0], HasSubstr("-X KUBE-SEP-ONE"));
}

TEST_F(IptablesSinkTest, CleanupThatMayNotLookIsAFailure) {
  programs_.outcome["iptables-legacy-save"] =
      refused(1, "iptables-legacy-save: Cannot initialize: Permission denied (you must be root)\n");
  programs_.outcome["ip6tables-legacy-save"] =
      refused(1, "Failed to initialize nft: Protocol not supported\n");
  FakeRunner runner(programs_);
  const auto done = clean_up_iptables(runner);
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().message,
            "iptables-legacy-save: not permitted; CAP_NET_ADMIN and CAP_NET_RAW are needed");
}

TEST_F(IptablesSinkTest, OldProgramsAreNotAskedForWhatTheyDoNotKnow) {
  EXPECT_TRUE(ipt::parse_version("iptables v1.8.9 (nf_tables)").nft);
  EXPECT_TRUE(ipt::parse_version("iptables v1.8.9 (nf_tables)").at_least_1_6_2);
  EXPECT_TRUE(ipt::parse_version("iptables v1.6.2").at_least_1_6_2);
  EXPECT_FALSE(ipt::parse_version("iptables v1.6.1").at_least_1_6_2);
  EXPECT_FALSE(ipt::parse_version("iptables v1.4.21").at_least_1_6_2);
  const ipt::Programs old{Family::kIpv4, "iptables", false, false, false};
  EXPECT_THAT(old.restore("").words, ElementsAre("iptables-restore", "--noflush", "--counters"));
}

TEST(IptablesRunner, ReadsWritesAndEndsWhatTakesTooLong) {
  const auto runner = ipt::make_runner();
  const std::string input(1 << 20, 'x');
  std::vector<std::string> lines;
  const auto echoed = runner->run(
      {{"sh", "-c", "wc -c; echo end; echo bad >&2; exit 3"}, input, std::chrono::seconds(60)},
      [&](std::string_view line) { lines.emplace_back(line); });
  ASSERT_TRUE(echoed);
  EXPECT_THAT(lines, ElementsAre("1048576", "end"));
  EXPECT_EQ(echoed->status, 3);
  EXPECT_EQ(echoed->errors, "bad\n");

  std::size_t last = 0;  // output of more than a pipe holds
  const auto much = runner->run(
      {{"seq", "100000"}, {}, std::chrono::seconds(60)},
      [&](std::string_view line) { last += line == std::to_string(last + 1) ? 1 : 0; });
  ASSERT_TRUE(much);
  EXPECT_EQ(last, 100'000u);

  const auto missing = runner->run({{"sluice-no-such-program"}, {}, {}}, nullptr);
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().message,
            "sluice-no-such-program: cannot be run: No such file or directory");

  const auto endless = runner->run({{"sleep", "1000"}, {}, std::chrono::milliseconds(1)}, nullptr);
  ASSERT_TRUE(endless);
  EXPECT_TRUE(endless->timed_out);
}

TEST(IptablesRunner, WhatRunsEndsWithTheDaemonAndNothingIsBegunThen) {
  int asked = 0;
  const auto runner = ipt::make_runner(nullptr, [&] { return ++asked > 2; });
  const auto ended = runner->run({{"sleep", "1000"}, {}, std::chrono::hours(1)}, nullptr);
  ASSERT_FALSE(ended);
  EXPECT_EQ(ended.error().message, "sleep: killed, because sluiced ends");
  const auto next = runner->run({{"true"}, {}, std::chrono::hours(1)}, nullptr);
  ASSERT_FALSE(next);
  EXPECT_EQ(next.error().message, "true: not run, because sluiced ends");
}

}  // namespace
}  // namespace sluice::kni
