#pragma once

#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <rte_eal.h>

namespace sluice::test {

/// One EAL without huge pages, devices and files for all tests of a binary. To be given to
/// testing::AddGlobalTestEnvironment() once.
class EalEnvironment : public testing::Environment {
 public:
  /// @param megabytes  of memory, taken when used.
  explicit EalEnvironment(unsigned megabytes) : megabytes_(std::to_string(megabytes)) {}

  void SetUp() override {
    std::vector<std::string> args = {
        "test",        "--no-huge", "-m", megabytes_,    "--no-pci",      "--no-telemetry",
        "--no-shconf", "--lcores",  "0",  "--log-level", "lib.*:critical"};
    std::vector<char*> argv;
    for (std::string& a : args) {
      argv.push_back(a.data());
    }
    ASSERT_GE(rte_eal_init(static_cast<int>(argv.size()), argv.data()), 0);
  }

 private:
  const std::string megabytes_;
};

}  // namespace sluice::test
