// The sink against the kernel itself, each test in a network namespace of its own.
#include "kni/iptables/iptables_sink.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <string>

#include <gmock/gmock.h>

#include "kni/iptables/names.h"
#include "kni/iptables/restore_text.h"
#include "test/support/namespace_fixture.h"
#include "test/support/random_cluster.h"
#include "test/unit/kni_nftables/fixture.h"

namespace sluice::kni {
namespace {

using core::Family;
using kni::test::on_node;
using kni::test::TableSource;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

class IptablesKernel : public sluice::test::NamespaceTest,
                       public testing::WithParamInterface<ipt::Variant> {
 protected:
  void SetUp() override {
    NamespaceTest::SetUp();
    // The lock of the legacy programs is the machine's; namespaces need not wait for each other.
    const std::string lock = testing::TempDir() + "sluice-xtables-" + std::to_string(getpid());
    ASSERT_EQ(setenv("XTABLES_LOCKFILE", lock.c_str(), 1), 0);
    source_.profile = compile::Profile::kIptables;
    source_.config.node_port_addresses = {};
    fill_small_cluster(source_);
    open();
  }
  void TearDown() override { unlink(std::getenv("XTABLES_LOCKFILE")); }
  void open() {
    IptablesSink::Options options;
    options.variant = GetParam();
    options.warn = [this](const std::string& line) { warnings_ += line + "\n"; };
    options.clock = [this] { return now_; };
    auto sink = IptablesSink::open(ipt::make_runner(), options);
    ASSERT_TRUE(sink) << sink.error().message;
    sink_ = std::move(*sink);
  }
  static const char* name() { return GetParam() == ipt::Variant::kNft ? "nft" : "legacy"; }
  static std::string program(Family family, const char* what = "") {
    return std::string(family == Family::kIpv4 ? "iptables-" : "ip6tables-") + name() + what;
  }
  /// Chains and rules without comments, counters and packet numbers.
  static std::string saved(Family family) {
    return checked_output(program(family, "-save") +
                          " | grep -v '^#' | sed 's/ \\[[0-9:]*\\]$//' 2>/dev/null");
  }
  /// What the kernel has is what a first load of `table` makes in an empty namespace.
  void expect_as_loaded_anew(const core::TablePtr& table) {
    const std::string v4 = saved(Family::kIpv4);
    const std::string v6 = saved(Family::kIpv6);
    ASSERT_EQ(unshare(CLONE_NEWNET), 0);
    const auto sink = std::move(sink_);
    open();
    ASSERT_TRUE(sink_->apply(table));
    EXPECT_EQ(v4, saved(Family::kIpv4));
    EXPECT_EQ(v6, saved(Family::kIpv6));
  }
  void apply(const core::TablePtr& table) {
    const auto applied = sink_->apply(table);
    ASSERT_TRUE(applied) << applied.error().message;
  }

  TableSource source_;
  std::unique_ptr<IptablesSink> sink_;
  std::chrono::steady_clock::time_point now_{std::chrono::hours(1)};
  std::string warnings_;
};

TEST_P(IptablesKernel, AfterChangesItHasWhatAFirstLoadMakes) {
  apply(source_.make());
  source_.put(on_node(sluice::test::make_slice("web", "a", {"10.42.1.10", "10.42.9.10"}), 0, 1));
  apply(source_.make());
  source_.state.slices.erase({"default", "sticky-a"});
  source_.put(sluice::test::make_slice("none", "a", {"10.42.1.14"}));
  apply(source_.make());
  source_.state.services.erase({"default", "six"});
  const auto last = source_.make();
  apply(last);
  EXPECT_THAT(warnings_, StartsWith("service default/sticky:http: session affinity"));
  EXPECT_EQ(std::count(warnings_.begin(), warnings_.end(), '\n'), 1) << warnings_;
  EXPECT_EQ(sink_->counters(Family::kIpv4).full_syncs, 1u);
  EXPECT_EQ(sink_->counters(Family::kIpv4).partial_syncs, 2u);
  expect_as_loaded_anew(last);
}

TEST_P(IptablesKernel, WhatIsSavedHasTheRulesOfTheModelAndNoOther) {
  const auto table = source_.make();
  apply(table);
  // An own look finds nothing changed: names of chains, hooks, number of rules.
  apply(table);
  EXPECT_EQ(sink_->counters(Family::kIpv4).repairs, 0u);
  EXPECT_EQ(sink_->counters(Family::kIpv6).repairs, 0u);
  const std::string text = saved(Family::kIpv4);
  EXPECT_THAT(text, HasSubstr("--to-destination 10.42.3.10:8080\n"));
  EXPECT_THAT(text, HasSubstr("-j MASQUERADE --random-fully\n"));
}

TEST_P(IptablesKernel, TakesOverWhatAnEarlierRunHasLeft) {
  apply(source_.make());
  source_.state.services.erase({"default", "web"});
  source_.state.services.erase({"default", "near"});
  open();
  const auto table = source_.make();
  apply(table);
  EXPECT_THAT(saved(Family::kIpv4), Not(HasSubstr("default/web")));
  expect_as_loaded_anew(table);
}

TEST_P(IptablesKernel, FlushedAndForeignRulesAreToldApart) {
  const std::string iptables = program(Family::kIpv4);
  ASSERT_EQ(run(iptables + " -N THEIRS; " + iptables + " -A INPUT -j THEIRS"), 0);
  const auto table = source_.make();
  apply(table);
  const std::string before = saved(Family::kIpv4);
  for (const std::string& command :
       {iptables + " -t nat -F", iptables + " -t nat -F PREROUTING",
        iptables + " -t mangle -X " + ipt::kCanaryChain, iptables + " -F KUBE-FORWARD",
        iptables + " -F KUBE-FIREWALL"}) {
    ASSERT_EQ(run(command), 0) << command;
    apply(table);
    EXPECT_EQ(saved(Family::kIpv4), before) << command;
  }
  EXPECT_EQ(sink_->counters(Family::kIpv4).repairs, 5u);
}

TEST_P(IptablesKernel, OneRuleThatIsTakenOutOrReplacedIsSeen) {
  const auto table = source_.make();
  apply(table);
  const std::string before = saved(Family::kIpv4);
  apply(table);  // a look
  const std::string nat = program(Family::kIpv4) + " -t nat ";
  const std::string chain =
      checked_output(nat + "-S | grep -m1 -o 'KUBE-SVC-[A-Z0-9]*' | tr -d '\\n'");
  for (const std::string& command :
       {nat + "-D " + chain + " 1", nat + "-R " + chain + " 1 -j RETURN"}) {
    ASSERT_EQ(run(command), 0) << command;
    apply(table);
    EXPECT_EQ(saved(Family::kIpv4), before) << command;
    apply(table);
  }
  EXPECT_EQ(sink_->counters(Family::kIpv4).repairs, 2u);
  EXPECT_EQ(sink_->counters(Family::kIpv4).full_syncs, 3u);
}

// F73
TEST_P(IptablesKernel, AChainThatWasTakenAwayIsWrittenAnewAtOnce) {
  apply(source_.make());
  ASSERT_EQ(run(program(Family::kIpv4) + " -t nat -F && " + program(Family::kIpv4) + " -t nat -X"),
            0);
  source_.put(sluice::test::make_slice("none", "a", {"10.42.1.14"}));
  apply(source_.make());
  source_.put(sluice::test::make_slice("none", "a", {"10.42.1.14", "10.42.1.15"}));
  now_ += std::chrono::seconds(30);
  const auto last = source_.make();
  apply(last);
  expect_as_loaded_anew(last);
}

TEST_P(IptablesKernel, CleanupLeavesWhatWasThereBefore) {
  const std::string iptables = program(Family::kIpv4);
  ASSERT_EQ(run(iptables + " -N KUBE-FIREWALL; " + iptables + " -t nat -N THEIRS; " + iptables +
                " -t nat -A PREROUTING -j THEIRS"),
            0);
  source_.config.node_port_addresses = {"primary"};  // no rule of ours in KUBE-FIREWALL
  apply(source_.make());
  ASSERT_TRUE(sink_->cleanup());
  const std::string left = saved(Family::kIpv4);
  EXPECT_THAT(left, HasSubstr(":KUBE-FIREWALL -"));
  EXPECT_THAT(left, HasSubstr("-A PREROUTING -j THEIRS\n"));
  EXPECT_THAT(left, Not(HasSubstr("KUBE-S")));
  EXPECT_THAT(left, Not(HasSubstr("KUBE-P")));
  EXPECT_THAT(left, Not(HasSubstr("KUBE-M")));
  EXPECT_THAT(saved(Family::kIpv6), Not(HasSubstr("KUBE-")));
  ASSERT_TRUE(sink_->cleanup());  // nothing is there
}

TEST_P(IptablesKernel, ARuleThatTheKernelRefusesIsALineAndTheOldStateStays) {
  apply(source_.make());
  const std::string before = saved(Family::kIpv4);
  // An interface name that no rule can have.
  source_.config.detect_local = compile::NodeConfig::DetectLocal::kBridgeInterface;
  source_.config.bridge_interface = "a-name-that-is-much-too-long";
  const auto failed = sink_->apply(source_.make());
  ASSERT_FALSE(failed);
  EXPECT_THAT(failed.error().message, HasSubstr("a-name-that-is-much-too-long"));
  EXPECT_THAT(failed.error().message, HasSubstr("of service default/"));
  EXPECT_EQ(saved(Family::kIpv4), before);
}

/// A claim is the namespace's, so each test has one of its own.
TEST(IptablesClaim, ARestoreThatOutlivesItsDaemonHoldsItAndAnotherDaemonToo) {
  ASSERT_EQ(unshare(CLONE_NEWNET), 0);
  auto claim = ipt::Claim::take(std::chrono::milliseconds(0));
  ASSERT_TRUE(claim);
  EXPECT_FALSE(ipt::Claim::take(std::chrono::hours(1), [] { return true; }));
  const auto refused = ipt::Claim::take(std::chrono::milliseconds(0));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message,
            "iptables: another sluiced writes the chains of this network namespace");
  auto runner = ipt::make_runner(std::move(*claim));
  // What is run leaves a process behind that lives as long as the fifo has a writer.
  const std::string fifo = testing::TempDir() + "sluice-claim-" + std::to_string(getpid());
  ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0);
  ASSERT_TRUE(runner->run(
      {{"sh", "-c", "cat " + fifo + " > /dev/null 2>&1 &"}, {}, std::chrono::seconds(60)},
      nullptr));
  const int writer = open(fifo.c_str(), O_WRONLY | O_CLOEXEC);
  runner = nullptr;
  EXPECT_FALSE(ipt::Claim::take(std::chrono::milliseconds(0)));
  close(writer);
  EXPECT_TRUE(ipt::Claim::take(std::chrono::seconds(60)));
  unlink(fifo.c_str());
}

// Whatever the control plane sends, the kernel takes what is rendered.
TEST_P(IptablesKernel, AnyClusterIsTakenAndIsThenAsIfLoadedAnew) {
  sluice::test::RandomCluster random(GetParam() == ipt::Variant::kNft ? 7 : 8);
  source_.state = {};
  core::TablePtr last;
  for (int step = 0; step < 24; ++step) {
    for (int i = 0; i < 4; ++i) {
      source_.put(random.service());
      source_.put(random.slice());
    }
    if (step % 6 == 5) {
      source_.state.services.clear();
    }
    source_.config = step % 8 == 7 ? random.config() : source_.config;
    last = source_.make();
    apply(last);
  }
  EXPECT_EQ(sink_->counters(Family::kIpv4).partial_failures, 0u);
  EXPECT_EQ(sink_->counters(Family::kIpv6).partial_failures, 0u);
  expect_as_loaded_anew(last);
}

INSTANTIATE_TEST_SUITE_P(Variants, IptablesKernel,
                         testing::Values(ipt::Variant::kNft, ipt::Variant::kLegacy),
                         [](const auto& of) {
                           return of.param == ipt::Variant::kNft ? "nft" : "legacy";
                         });

}  // namespace
}  // namespace sluice::kni
