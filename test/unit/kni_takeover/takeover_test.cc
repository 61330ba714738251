#include <gtest/gtest.h>

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <vector>

#include "kni/takeover/process.h"
#include "kni/takeover/take_over_sink.h"

namespace sluice::kni {
namespace {

namespace fs = std::filesystem;

/// A folder like /proc.
class FakeProc {
 public:
  FakeProc() : root_(fs::temp_directory_path() / ("sluice-proc-" + std::to_string(getpid()))) {
    fs::create_directories(root_ / "self" / "ns");
    fs::create_symlink("net:[1]", root_ / "self" / "ns" / "net");
  }
  ~FakeProc() { fs::remove_all(root_); }
  FakeProc& add(const std::string& pid, const std::string& comm, char state,
                const std::string& network) {
    fs::create_directories(root_ / pid / "ns");
    std::ofstream(root_ / pid / "comm") << comm << "\n";
    std::ofstream(root_ / pid / "stat") << pid << " (" << comm << ") " << state << " 1 2\n";
    if (!network.empty()) {
      fs::create_symlink(network, root_ / pid / "ns" / "net");
    }
    return *this;
  }
  [[nodiscard]] std::optional<pid_t> find() const {
    return find_process("kube-proxy", root_.string());
  }

 private:
  fs::path root_;
};

TEST(FindProcess, FindsTheOneOfThisNetworkNamespace) {
  FakeProc proc;
  proc.add("11", "kubelet", 'S', "net:[1]").add("12", "kube-proxy", 'S', "net:[2]");
  EXPECT_EQ(proc.find(), std::nullopt);
  proc.add("13", "kube-proxy", 'S', "net:[1]");
  EXPECT_EQ(proc.find(), 13);
}

TEST(FindProcess, OneThatHasEndedDoesNotCountAndOneThatCannotBeSeenDoes) {
  FakeProc proc;
  proc.add("11", "kube-proxy", 'Z', "net:[1]");
  EXPECT_EQ(proc.find(), std::nullopt);
  proc.add("12", "kube-proxy", 'S', "");
  EXPECT_EQ(proc.find(), 12);
}

/// Fails as often as it is told.
class Sink : public core::TableSink {
 public:
  explicit Sink(int failures) : failures_(failures) {}
  [[nodiscard]] core::Capabilities capabilities() const override { return {}; }
  core::Result<core::ApplyReport> apply(const core::TablePtr&) override {
    if (failures_-- > 0) {
      return tl::make_unexpected(core::Error{"not now"});
    }
    return core::ApplyReport{};
  }
  core::Result<void> cleanup() override { return {}; }

 private:
  int failures_;
};

TEST(TakeOverSink, RemovesOnceAfterTheFirstTableInForceAndTriesAgainWhenThatFails) {
  int removals = 0;
  std::vector<std::string> told;
  TakeOverSink sink(
      std::make_unique<Sink>(1),
      [&]() -> core::Result<void> {
        if (++removals <= 2) {
          return tl::make_unexpected(core::Error{"locked"});
        }
        return {};
      },
      [&](const std::string& line) { told.push_back(line); });

  EXPECT_FALSE(sink.apply(nullptr).has_value());
  EXPECT_EQ(removals, 0);
  EXPECT_TRUE(sink.apply(nullptr).has_value());
  EXPECT_EQ(told, std::vector<std::string>{"take-over: locked"});
  EXPECT_TRUE(sink.apply(nullptr).has_value());
  EXPECT_EQ(told.size(), 1U) << "the same reason is told once";
  EXPECT_TRUE(sink.apply(nullptr).has_value());
  EXPECT_TRUE(sink.apply(nullptr).has_value());
  EXPECT_EQ(removals, 3);
}

}  // namespace
}  // namespace sluice::kni
