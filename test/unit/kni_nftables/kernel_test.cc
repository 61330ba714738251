// The sink against the kernel itself, each test in a network namespace of its own.
#include "kni/nftables/nftables_sink.h"

#include <linux/netlink.h>
#include <sys/socket.h>

#include <string>

#include <gmock/gmock.h>

#include "kni/nftables/encode.h"
#include "kni/nftables/kernel.h"
#include "kni/nftables/plan.h"
#include "test/support/kernel_rules.h"
#include "test/support/namespace_fixture.h"
#include "test/support/random_cluster.h"
#include "test/support/refused_call.h"
#include "test/unit/kni_nftables/fixture.h"

namespace sluice::kni {
namespace {

using kni::test::TableSource;
using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

class NftablesKernel : public sluice::test::NamespaceTest {
 protected:
  void SetUp() override {
    NamespaceTest::SetUp();
    auto kernel = nft::open_kernel();
    ASSERT_TRUE(kernel) << kernel.error().message;
    sink_ = make_sink(std::move(*kernel));
    auto reader = nft::open_kernel();
    ASSERT_TRUE(reader) << reader.error().message;
    reader_ = std::move(*reader);
  }

  std::unique_ptr<NftablesSink> make_sink(std::unique_ptr<nft::Kernel> kernel) {
    NftablesSink::Options options;
    options.warn = [this](const std::string& line) { warnings_ += line + "\n"; };
    options.clock = [this] { return now_; };
    return std::make_unique<NftablesSink>(std::move(kernel), std::move(options));
  }

  /// With what nft complains of.
  static std::string output(const std::string& command) {
    return checked_output(command + " 2>&1");
  }

  /// What the kernel has differs in nothing from what `table` means.
  testing::AssertionResult kernel_has(const core::ForwardingTable& table) {
    nft::Rendered wanted = nft::render(table);
    nft::add_unused(wanted.rulesets, sink_->shares(), table.node());
    const std::string difference = sluice::test::difference_in_kernel(*reader_, wanted);
    return difference.empty()
               ? testing::AssertionSuccess()
               : testing::AssertionFailure() << difference << "\n" << output("nft list ruleset");
  }

  void apply(const core::TablePtr& table) {
    const auto applied = sink_->apply(table);
    ASSERT_TRUE(applied) << applied.error().message;
    EXPECT_EQ(applied->generation, table->generation());
  }

  std::unique_ptr<NftablesSink> sink_;
  std::unique_ptr<nft::Kernel> reader_;
  NftablesSink::Clock::time_point now_{};
  std::string warnings_;
};

TEST_F(NftablesKernel, HoldsWhatATableMeans) {
  TableSource source;
  fill_small_cluster(source);
  const auto table = source.make();
  apply(table);
  EXPECT_TRUE(kernel_has(*table));
  EXPECT_EQ(sink_->counters().full_syncs, 1u);
}

TEST_F(NftablesKernel, TablesOfAnotherProxyGoWhenOursComeIntoForceAndNotBefore) {
  ASSERT_EQ(run("nft add table ip kube-proxy && nft 'add chain ip kube-proxy services' && "
                "nft add table ip other"),
            0);
  TableSource source;
  fill_small_cluster(source);
  const auto table = source.make();
  apply(table);  // as an earlier run without taking over
  ASSERT_THAT(output("nft list tables"), HasSubstr("kube-proxy"));

  NftablesSink::Options options;
  options.replaces = {"kube-proxy"};
  sink_ = std::make_unique<NftablesSink>(std::move(*nft::open_kernel()), std::move(options));
  apply(table);

  EXPECT_EQ(output("nft list tables"), "table ip other\ntable ip sluice\ntable ip6 sluice\n");
  EXPECT_TRUE(kernel_has(*table));
}

TEST_F(NftablesKernel, ItsListingIsReadableAndLoadsAgain) {
  TableSource source;
  fill_small_cluster(source);
  source.config.detect_local = compile::NodeConfig::DetectLocal::kBridgeInterface;
  source.config.bridge_interface = "cni0";
  apply(source.make());
  const std::string listing = output("nft list ruleset");
  EXPECT_THAT(listing, HasSubstr("10.43.0.10 . tcp . 80 comment \"default/web\" : goto c-4"));
  EXPECT_THAT(listing, HasSubstr("10.43.0.10 . tcp . 80 . 0 : 10.42.1.10 . 8080"));
  EXPECT_THAT(listing, HasSubstr("iifname != \"cni0\""));
  EXPECT_THAT(output("f=$(mktemp) && nft list ruleset > $f && nft flush ruleset && nft -f $f && "
                     "nft list ruleset && rm $f"),
              Not(HasSubstr("FAILED")));
  EXPECT_THAT(output("nft -j list ruleset"), HasSubstr("\"svc-eps\""));
}

/// What nft makes of what it has listed itself.
constexpr const char* kListAgain =
    "f=$(mktemp) && nft list ruleset > $f && nft flush ruleset && nft -f $f && "
    "nft list ruleset && rm $f";

TEST_F(NftablesKernel, HashesOfTheSourceListAndLoadAgain) {
  using nft::Pick;
  for (const auto& [kind, text] : {std::pair(Pick::Kind::kSourceHash, "jhash ip saddr mod 3"),
                                   {Pick::Kind::kSourcePortHash, "jhash ip saddr . th sport mod 3"}}) {
    nft::Rulesets wanted;
    const nft::Shape shape{nft::Shape::Kind::kCluster, false, kind, 3, 0};
    wanted.v4.sets[nft::names::kServiceEndpoints] =
        nft::node_sets().at(nft::names::kServiceEndpoints);
    for (const nft::Shape& needed : nft::with_needed(shape)) {
      wanted.v4.chains[nft::chain_name(needed)] =
          nft::shape_chain(needed, core::NodePart{}, core::Family::kIpv4);
    }
    nft::Batch batch(std::nullopt);
    nft::encode_table(batch, core::Family::kIpv4);
    const nft::Ruleset none;
    const nft::Plan plan = nft::make_plan(none, wanted.v4);
    nft::encode(batch, plan);
    batch.finish();
    const auto done = reader_->commit(batch);
    ASSERT_EQ(done.error, 0) << nft::describe(done);
    EXPECT_THAT(output(kListAgain),
                HasSubstr(std::string(text) + " seed 0x51c1ce00 map @svc-eps"));
    ASSERT_EQ(run("nft flush ruleset"), 0);
  }
}

TEST_F(NftablesKernel, RulesBesideWorkersListAndLoadAgain) {
  TableSource source;
  fill_small_cluster(source);
  source.config.snat_first_port = 40960;
  source.config.snat_last_port = 65535;
  NftablesSink::Options options;
  options.scope = {"slc-"};
  sink_ = std::make_unique<NftablesSink>(std::move(*nft::open_kernel()), std::move(options));
  apply(source.make());
  const std::string listing = output(kListAgain);
  EXPECT_THAT(listing, HasSubstr("masquerade to :1024-40959 fully-random"));
  EXPECT_THAT(listing, HasSubstr("iifname != \"slc-*\" jump services"));
}

//
TEST_F(NftablesKernel, WhatAServiceRemembersGoesWithItsAffinityAndNothingElse) {
  TableSource source;
  fill_small_cluster(source);
  add_second_sticky(source);
  const auto both = source.make();
  apply(both);
  const nft::Memories numbers = nft::render(*both).memories;
  for (const std::uint32_t number : numbers) {
    ASSERT_EQ(run("nft add element ip sluice affinity-sources { 10.9.9.9 . " +
                  std::to_string(number) + " timeout 1h }"),
              0);
  }
  source.state.services[{"default", "sticky"}].session_affinity = "None";
  const auto one = source.make();
  apply(one);
  const std::string left = output("nft list set ip sluice affinity-sources");
  for (const std::uint32_t number : numbers) {
    const bool stays = nft::render(*one).memories.contains(number);
    EXPECT_EQ(left.find(" " + std::to_string(number) + " ") != std::string::npos, stays) << left;
  }
  source.state.services[{"default", "other"}].session_affinity = "None";
  apply(source.make());
  EXPECT_THAT(output("nft list ruleset"), Not(HasSubstr("affinity")));
}

TEST_F(NftablesKernel, RandomChangesEndInWhatTheLastTableMeans) {
  for (std::uint64_t seed = 1; seed <= 4; ++seed) {
    sluice::test::RandomCluster random(seed);
    TableSource source;
    source.config = random.config();
    for (int step = 0; step < 20; ++step) {
      source.put(random.service());
      source.put(random.slice());
      if (random.chance(10)) {
        source.config = random.config();
        source.config.masquerade_all = random.chance(50);
      }
      const auto table = source.make();
      apply(table);
      ASSERT_TRUE(kernel_has(*table)) << "seed " << seed << " step " << step;
    }
  }
  EXPECT_GT(sink_->counters().partial_syncs, 60u);
  EXPECT_EQ(sink_->counters().repairs, 0u);
}

TEST_F(NftablesKernel, AnotherProcessTakesOverWhatIsThere) {
  TableSource source;
  fill_small_cluster(source);
  apply(source.make());
  source.state.services.erase({"default", "web"});
  const auto table = source.make();
  sink_ = make_sink(std::move(*nft::open_kernel()));
  apply(table);
  EXPECT_TRUE(kernel_has(*table));
}

// What others did while no daemon ran is put right, and what sources are remembered for stays.
TEST_F(NftablesKernel, AnotherProcessWritesEverythingAnewButWhatRulesRemember) {
  TableSource source;
  fill_small_cluster(source);
  const auto table = source.make();
  apply(table);
  const std::string number = std::to_string(*nft::render(*table).memories.begin());
  ASSERT_EQ(run("nft add element ip sluice affinity-sources { 10.9.9.9 . " + number +
                " timeout 1h }"),
            0);
  ASSERT_EQ(run("nft 'delete element ip sluice svc-eps { 10.43.0.10 . tcp . 80 . 0 }'"), 0);
  ASSERT_EQ(run("nft add element ip sluice cluster-ips { 10.43.7.7 }"), 0);
  ASSERT_EQ(run("nft flush chain ip sluice masquerading"), 0);
  ASSERT_EQ(run("nft 'add chain ip sluice stray'"), 0);
  sink_ = make_sink(std::move(*nft::open_kernel()));
  apply(table);
  EXPECT_TRUE(kernel_has(*table));
  EXPECT_EQ(sink_->counters().repairs, 0u);
  EXPECT_THAT(output("nft list set ip sluice affinity-sources"), HasSubstr("10.9.9.9 . " + number));
}

TEST_F(NftablesKernel, ASetThatOutgrowsItsSizeIsMadeAnew) {
  TableSource source;
  fill_small_cluster(source);
  add_many(source, 0, 300, 4);
  apply(source.make());
  EXPECT_THAT(output("nft list map ip sluice svc-eps"), HasSubstr("size 24"));
  add_many(source, 300, 400, 4);
  const auto table = source.make();
  apply(table);
  EXPECT_EQ(sink_->counters().full_syncs, 2u);
  EXPECT_EQ(sink_->counters().sync_failures, 0u);
  EXPECT_TRUE(kernel_has(*table));
  add_many(source, 700, 20, 4);
  const auto more = source.make();
  apply(more);
  EXPECT_EQ(sink_->counters().full_syncs, 2u);
  EXPECT_TRUE(kernel_has(*more));
}

// Its old elements name chains, some of which go in the same transaction.
TEST_F(NftablesKernel, AVerdictMapThatOutgrowsItsSizeIsMadeAnewWhileChainsGo) {
  TableSource source;
  fill_small_cluster(source);
  add_many(source, 0, 1100, 1);
  apply(source.make());
  EXPECT_THAT(output("nft list map ip sluice service-ips | head -5"), HasSubstr("size 2"));
  add_many(source, 1100, 1400, 1);
  source.state.services.erase({"default", "sticky"});
  source.state.services.erase({"default", "near"});
  const auto table = source.make();
  apply(table);
  EXPECT_EQ(sink_->counters().sync_failures, 0u) << warnings_;
  EXPECT_TRUE(kernel_has(*table));
}

TEST_F(NftablesKernel, ATableMadeDormantAndAPolicyOfOthersArePutRight) {
  TableSource source;
  fill_small_cluster(source);
  const auto table = source.make();
  apply(table);
  ASSERT_EQ(run("nft 'add table ip sluice { flags dormant; }'"), 0);
  apply(table);
  EXPECT_THAT(output("nft list table ip sluice"), Not(HasSubstr("dormant")));
  ASSERT_EQ(run("nft 'add chain ip sluice filter-forward { policy drop; }'"), 0);
  apply(table);
  EXPECT_THAT(output("nft list table ip sluice"), Not(HasSubstr("policy drop")));
  EXPECT_TRUE(kernel_has(*table));
  EXPECT_EQ(sink_->counters().sync_failures, 0u) << warnings_;
}

// A transaction that changes nothing makes no generation.
TEST_F(NftablesKernel, ARestartThatChangesNothingStillHearsOfOthers) {
  TableSource source;
  const auto table = source.make();
  apply(table);
  auto kernel = nft::open_kernel();
  ASSERT_TRUE(kernel) << kernel.error().message;
  sink_ = make_sink(std::move(*kernel));
  apply(table);
  ASSERT_EQ(run("nft delete table ip sluice"), 0);
  apply(table);
  EXPECT_TRUE(kernel_has(*table));
}

TEST_F(NftablesKernel, WhenItMayNotListenAgainWhatIsInForceIsSaidSoAndOthersAreSeenByTheirNumber) {
  TableSource source;
  fill_small_cluster(source);
  apply(source.make());
  add_many(source, 0, 250, 30);
  const auto table = source.make();
  constexpr int kListen = 1;  // NETLINK_ADD_MEMBERSHIP
  sluice::test::where_refused({SYS_setsockopt, 2, kListen, EPERM}, [&] { apply(table); });
  EXPECT_EQ(sink_->counters().sync_failures, 0u);
  ASSERT_EQ(run("nft 'delete element ip sluice svc-eps { 10.43.0.10 . tcp . 80 . 0 }'"), 0);
  apply(table);
  EXPECT_EQ(sink_->counters().listen_failures, 1u);
  EXPECT_TRUE(kernel_has(*table));
  ASSERT_EQ(run("nft add table ip other"), 0);
  apply(table);
  EXPECT_EQ(sink_->counters().foreign_commits, 1u);  // it listens again
}

TEST_F(NftablesKernel, AFlushedRuleSetIsSeenAtTheNextApply) {
  TableSource source;
  fill_small_cluster(source);
  apply(source.make());
  ASSERT_EQ(run("nft flush ruleset"), 0);
  source.state.services.erase({"default", "far"});
  const auto table = source.make();
  apply(table);
  EXPECT_TRUE(kernel_has(*table));
  EXPECT_EQ(sink_->counters().repairs, 1u);
  EXPECT_THAT(warnings_, HasSubstr("by nft (pid "));
}

TEST_F(NftablesKernel, WhatOthersChangeInOurTablesIsRepairedAtTheNextLook) {
  TableSource source;
  fill_small_cluster(source);
  const auto table = source.make();
  apply(table);
  ASSERT_EQ(run("nft add rule ip sluice services counter"), 0);
  ASSERT_EQ(run("nft 'delete element ip sluice svc-eps { 10.43.0.10 . tcp . 80 . 0 }'"), 0);
  ASSERT_EQ(run("nft 'add set ip6 sluice stray { type ipv4_addr; }'"), 0);
  EXPECT_FALSE(kernel_has(*table));
  apply(table);  // the publisher's resync
  EXPECT_TRUE(kernel_has(*table));
  EXPECT_EQ(sink_->counters().foreign_commits, 3u);
}

TEST_F(NftablesKernel, WhileTablesChangeARepairWaitsNoLongerThanAllowed) {
  TableSource source;
  fill_small_cluster(source);
  apply(source.make());
  ASSERT_EQ(run("nft flush chain ip sluice masquerading"), 0);
  source.state.services.erase({"default", "far"});
  apply(source.make());
  EXPECT_EQ(sink_->counters().repairs, 0u);
  now_ += std::chrono::seconds(30);
  source.state.services.erase({"default", "none"});
  const auto table = source.make();
  apply(table);
  EXPECT_EQ(sink_->counters().repairs, 1u);
  EXPECT_TRUE(kernel_has(*table));
}

TEST_F(NftablesKernel, ForeignTablesStayAndCommitsOfOthersCostNothing) {
  TableSource source;
  fill_small_cluster(source);
  apply(source.make());
  ASSERT_EQ(run("nft add table ip other && nft 'add chain ip other c'"), 0);
  source.state.services.erase({"default", "far"});
  const auto table = source.make();
  apply(table);
  now_ += std::chrono::hours(1);
  apply(table);
  EXPECT_EQ(sink_->counters().foreign_commits, 2u);
  EXPECT_EQ(sink_->counters().full_syncs, 1u);
  EXPECT_EQ(sink_->counters().sync_failures, 0u);
  EXPECT_TRUE(kernel_has(*table));
  ASSERT_TRUE(sink_->cleanup());
  EXPECT_EQ(output("nft list ruleset"), "table ip other {\n\tchain c {\n\t}\n}\n");
}

TEST_F(NftablesKernel, CleanupWithNothingThereIsFine) {
  EXPECT_TRUE(sink_->cleanup());
  EXPECT_EQ(output("nft list ruleset"), "");
}

TEST_F(NftablesKernel, WhatRulesRememberSurvivesAChangeOfTheService) {
  TableSource source;
  fill_small_cluster(source);
  const auto before = source.make();
  apply(before);
  const std::uint32_t number = *nft::render(*before).memories.begin();
  ASSERT_EQ(run("nft add element ip sluice affinity-sources { 198.51.100.7 . " +
                std::to_string(number) + " timeout 1h }"),
            0);
  auto slice = sluice::test::make_slice("sticky", "a", {"10.42.1.13", "10.42.2.13", "10.42.3.13"});
  slice.ports[0].name = "http";
  source.put(slice);
  const auto table = source.make();
  apply(table);
  EXPECT_TRUE(kernel_has(*table));
  EXPECT_THAT(output("nft list ruleset"), HasSubstr("198.51.100.7 . " + std::to_string(number) + " timeout 1h"));
}

TEST_F(NftablesKernel, AKernelWithoutNetfilterIsNamedSo) {
  sluice::test::where_refused({SYS_socket, 2, NETLINK_NETFILTER, EPROTONOSUPPORT}, [] {
    const auto kernel = nft::open_kernel();
    ASSERT_FALSE(kernel);
    EXPECT_THAT(kernel.error().message, HasSubstr("this kernel has no nftables"));
  });
}

TEST_F(NftablesKernel, ATransactionLargerThanTheSendBufferChangesNothingAndGoesLater) {
  TableSource source;
  fill_small_cluster(source);
  apply(source.make());
  add_many(source, 0, 250, 30);
  const auto table = source.make();
  sluice::test::where_refused({SYS_setsockopt, 2, SO_SNDBUFFORCE, EPERM}, [&] {
    sink_ = make_sink(std::move(*nft::open_kernel()));
    const auto failed = sink_->apply(table);
    ASSERT_FALSE(failed);
    EXPECT_THAT(failed.error().message, HasSubstr("send buffer"));
  });
  EXPECT_THAT(output("nft list ruleset"), AllOf(HasSubstr("default/web"), Not(HasSubstr("many-"))));
  apply(table);
  EXPECT_TRUE(kernel_has(*table));
  // It heard nothing while that large transaction went, and does again.
  ASSERT_EQ(run("nft add table ip other"), 0);
  apply(table);
  EXPECT_EQ(sink_->counters().foreign_commits, 1u);
}

}  // namespace
}  // namespace sluice::kni
