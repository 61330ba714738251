#pragma once

#include <cstdio>
#include <cstdlib>
#include <string>

#include <sched.h>

#include <gtest/gtest.h>

namespace sluice::kni::test {

/// Each test runs in a network namespace of its own, which goes when the next one is made or the
/// process ends. Needs CAP_SYS_ADMIN; without it the test fails, it is not skipped.
class NamespaceTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(unshare(CLONE_NEWNET), 0) << "run as root: a network namespace is needed";
    ASSERT_EQ(run("ip link set lo up"), 0);
  }
  static int run(const std::string& command) { return std::system(command.c_str()); }
  static std::string output(const std::string& command) {
    std::string text;
    FILE* pipe = popen(command.c_str(), "r");
    char buffer[512];
    while (pipe != nullptr && std::fgets(buffer, sizeof(buffer), pipe) != nullptr) {
      text += buffer;
    }
    if (pipe != nullptr) {
      pclose(pipe);
    }
    return text;
  }
};

}  // namespace sluice::kni::test
