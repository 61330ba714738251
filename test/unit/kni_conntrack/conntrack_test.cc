// Against the kernel, in a network namespace of its own.
#include "kni/conntrack/conntrack.h"

#include <sched.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>

#include "kni/conntrack/conntrack_sink.h"
#include "kni/conntrack/sysctls.h"
#include "test/unit/kni_nftables/fixture.h"

namespace sluice::kni {
namespace {

using testing::HasSubstr;

class ConntrackTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(unshare(CLONE_NEWNET), 0) << "run as root: a network namespace is needed";
    auto opened = open_conntrack();
    ASSERT_TRUE(opened) << opened.error().message;
    conntrack_ = std::move(*opened);
  }
  static void add(const std::string& protocol, const std::string& src, int sport,
                  const std::string& dst, int dport, const std::string& backend, int port) {
    const std::string more = protocol == "tcp" ? " --state ESTABLISHED" : "";
    ASSERT_EQ(std::system(("conntrack -I -p " + protocol + " -s " + src + " -d " + dst +
                           " --sport " + std::to_string(sport) + " --dport " +
                           std::to_string(dport) + " -r " + backend + " -q " + src +
                           " --reply-port-src " + std::to_string(port) + " --reply-port-dst " +
                           std::to_string(sport) + " -t 300" + more + " >/dev/null 2>&1")
                              .c_str()),
              0);
  }
  std::unique_ptr<Conntrack> conntrack_;
};

TEST_F(ConntrackTest, RemovesTheWantedUdpFlowsOfBothFamiliesAndNothingElse) {
  add("udp", "10.42.1.77", 40001, "10.43.0.53", 53, "10.42.1.53", 5353);
  add("udp", "10.42.1.77", 40002, "10.43.0.53", 53, "10.42.2.53", 5353);
  add("udp", "fd42::77", 40001, "fd43::53", 53, "fd42::53", 5353);
  add("tcp", "10.42.1.77", 40001, "10.43.0.53", 53, "10.42.1.53", 5353);

  std::vector<core::UdpFlow> asked;
  const auto wanted = [&](const core::UdpFlow& flow) {
    asked.push_back(flow);
    return flow.reply_source != *core::parse_address("10.42.2.53");
  };
  const auto result = conntrack_->remove_udp(wanted);

  ASSERT_TRUE(result) << result.error().message;
  EXPECT_EQ(result->seen, 3u);
  EXPECT_EQ(result->removed_v4, 1u);
  EXPECT_EQ(result->removed_v6, 1u);
  EXPECT_EQ(result->failed, 0u);
  const core::UdpFlow first{*core::parse_address("10.42.1.77"), 40001,
                            *core::parse_address("10.43.0.53"), 53,
                            *core::parse_address("10.42.1.53"), 5353};
  EXPECT_THAT(asked, testing::Contains(first));
  const auto left = conntrack_->remove_udp([](const core::UdpFlow&) { return false; });
  EXPECT_EQ(left->seen, 1u);
  EXPECT_EQ(read_conntrack_fill()->entries, 2u);
}

/// Says yes to every table.
class FakeSink : public core::TableSink {
 public:
  [[nodiscard]] core::Capabilities capabilities() const override { return {"fake", {}, {}}; }
  core::Result<core::ApplyReport> apply(const core::TablePtr&) override {
    if (fails) {
      return tl::make_unexpected(core::Error{"no"});
    }
    return core::ApplyReport{};
  }
  core::Result<void> cleanup() override { return {}; }
  bool fails = false;
};

TEST_F(ConntrackTest, AnApplyThatMovesUdpEndpointsIsFollowedByAPass) {
  test::TableSource source;
  fill_small_cluster(source);
  FakeSink inner;
  ConntrackSink sink(inner, std::move(conntrack_), {});
  ASSERT_TRUE(sink.apply(source.make()));
  EXPECT_EQ(sink.counters().passes, 1u);
  add("udp", "10.42.1.77", 40001, "10.43.0.12", 53, "10.42.2.12", 5353);

  source.put(sluice::test::make_slice("far", "a", {"10.42.3.12"}, 5353, "UDP"));
  inner.fails = true;
  EXPECT_FALSE(sink.apply(source.make()));
  EXPECT_EQ(sink.counters().removed_v4, 0u);
  inner.fails = false;
  ASSERT_TRUE(sink.apply(source.make()));
  EXPECT_EQ(sink.counters().removed_v4, 1u);

  source.put(sluice::test::make_slice("web", "a", {"10.42.3.10"}));
  ASSERT_TRUE(sink.apply(source.make()));
  EXPECT_EQ(sink.counters().passes, 2u);
}

/// Flows that cannot be listed as long as the test says so.
class FakeConntrack : public Conntrack {
 public:
  explicit FakeConntrack(const bool& fails) : fails_(fails) {}
  core::Result<SweepResult> remove_udp(const Wanted&) override {
    return fails_ ? core::Result<SweepResult>(tl::make_unexpected(core::Error{"no list"}))
                  : SweepResult{};
  }

 private:
  const bool& fails_;
};

TEST(ConntrackSink, APassThatFailedIsRepeatedByTheNextApply) {
  test::TableSource source;
  fill_small_cluster(source);
  FakeSink inner;
  bool fails = true;
  ConntrackSink sink(inner, std::make_unique<FakeConntrack>(fails), {});
  const auto table = source.make();
  ASSERT_TRUE(sink.apply(table));
  fails = false;
  ASSERT_TRUE(sink.apply(table));
  EXPECT_EQ(sink.counters().passes, 2u);
  ASSERT_TRUE(sink.apply(table));
  EXPECT_EQ(sink.counters().passes, 2u);
}

class SysctlsTest : public testing::Test {
 protected:
  SysctlsTest() : root_(testing::TempDir() + "sysctls-" + std::to_string(getpid())) {
    std::filesystem::create_directories(root_ + "/proc/sys/net/netfilter");
    std::filesystem::create_directories(root_ + "/sys/module/nf_conntrack/parameters");
    write("/proc/sys/net/netfilter/nf_conntrack_max", "1000");
    write("/sys/module/nf_conntrack/parameters/hashsize", "250");
  }
  ~SysctlsTest() override { std::filesystem::remove_all(root_); }
  void write(const std::string& path, const std::string& value) {
    std::ofstream(root_ + path) << value;
  }
  [[nodiscard]] std::string read(const std::string& path) const {
    std::ifstream in(root_ + path);
    std::string text;
    in >> text;
    return text;
  }
  std::string root_;
};

TEST_F(SysctlsTest, WritesWhatIsPlanned) {
  ConntrackSettings settings;
  settings.max_per_core = 1;
  settings.min = 2000;
  ASSERT_TRUE(apply_conntrack_sysctls(settings, root_));
  EXPECT_EQ(read("/proc/sys/net/netfilter/nf_conntrack_max"), "2000");
  EXPECT_EQ(read("/sys/module/nf_conntrack/parameters/hashsize"), "500");
  EXPECT_EQ(read("/proc/sys/net/netfilter/nf_conntrack_tcp_timeout_established"), "86400");
}

TEST_F(SysctlsTest, AFailureNamesThePath) {
  std::filesystem::remove_all(root_ + "/proc/sys/net/netfilter");
  const auto done = apply_conntrack_sysctls({}, root_);
  ASSERT_FALSE(done);
  EXPECT_THAT(done.error().message, HasSubstr("nf_conntrack_max"));
}

}  // namespace
}  // namespace sluice::kni
