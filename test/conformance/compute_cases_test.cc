// Runs every handed compute and sync case whose modes name nftables, iptables or control-plane.
#include "test/conformance/compute_cases.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

namespace sluice::conformance {
namespace {

bool concerns_us(const YAML::Node& c) {
  const auto modes = c["modes"].as<std::vector<std::string>>();
  return std::any_of(modes.begin(), modes.end(), [](const std::string& mode) {
    return mode == "nftables" || mode == "iptables" || mode == "control-plane";
  });
}

std::vector<std::filesystem::path> case_files() {
  std::vector<std::filesystem::path> out;
  for (const auto& entry : std::filesystem::directory_iterator(SLUICE_CASES)) {
    const std::string name = entry.path().filename().string();
    const bool ours = name < "20" || name.starts_with("22") || name.starts_with("23");
    if (entry.path().extension() == ".yaml" && ours) {
      out.push_back(entry.path());
    }
  }
  std::sort(out.begin(), out.end());
  return out;
}

TEST(ComputeCases, EveryHandedCasePasses) {
  std::size_t entries = 0;
  for (const auto& file : case_files()) {
    const YAML::Node yaml = YAML::LoadFile(file.string());
    for (const YAML::Node& c : yaml["cases"]) {
      if (!concerns_us(c)) {
        continue;
      }
      const ComputeOutcome outcome = run_compute_case(c);
      const auto name = c["name"].as<std::string>();
      EXPECT_FALSE(outcome.not_applicable.has_value())
          << name << ": " << outcome.not_applicable.value_or("");
      for (const std::string& failure : outcome.failures) {
        ADD_FAILURE() << name << ": " << failure;
      }
      entries += outcome.entries;
    }
  }
  EXPECT_GE(entries, 87u);  // all that the files held when this was written
}

ComputeOutcome run(const char* yaml) {
  return run_compute_case(YAML::Load(yaml));
}

TEST(ComputeCases, WrongAnswerIsAFailureThatNamesBoth) {
  const auto outcome =
      run("compute: [{fn: conntrackMax, in: {maxPerCore: 0, cpus: 8}, out: {value: 7}}]");
  ASSERT_EQ(outcome.failures.size(), 1u);
  EXPECT_NE(outcome.failures[0].find("expected {value: 7}, got {value: 0}"), std::string::npos)
      << outcome.failures[0];
}

TEST(ComputeCases, FunctionOfAnotherAdapterIsNotApplicable) {
  const auto outcome = run("compute: [{fn: ipvsSysctls, in: {}, out: {}}]");
  EXPECT_TRUE(outcome.not_applicable.has_value());
  EXPECT_TRUE(outcome.failures.empty());
}

TEST(ComputeCases, InputOfTheWrongTypeIsAFailureOfTheEntry) {
  const auto outcome = run("compute: [{fn: clusterIPBands, in: {cidr: nonsense}, out: {}}]");
  EXPECT_EQ(outcome.failures.size(), 1u);
}

TEST(ComputeCases, TimelineWithOtherRunsIsAFailure) {
  const auto outcome =
      run("sync: {minSyncPeriod: 1, retryInterval: 30, maxInterval: 3600, runDuration: 0,"
          " requests: [5.0], failures: [], until: 60, runs: [6.0]}");
  EXPECT_EQ(outcome.failures.size(), 1u);
}

TEST(ComputeCases, CaseWithoutComputeAndSyncHasNoEntries) {
  EXPECT_EQ(run("{name: x, expect: []}").entries, 0u);
}

}  // namespace
}  // namespace sluice::conformance
