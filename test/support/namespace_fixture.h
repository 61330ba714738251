#pragma once

#include <cstdio>
#include <cstdlib>
#include <string>

#include <sched.h>

#include <gtest/gtest.h>

namespace sluice::test {

/// Each test runs in a network namespace of its own, which goes when the next one is made or the
/// process ends. Needs CAP_SYS_ADMIN; without it the test fails, it is not skipped.
class NamespaceTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(unshare(CLONE_NEWNET), 0) << "run as root: a network namespace is needed";
    ASSERT_EQ(run("ip link set lo up"), 0);
  }
  static int run(const std::string& command) { return std::system(command.c_str()); }
  /// What a command prints, whatever its status.
  static std::string output(const std::string& command) { return read(command).text; }
  /// The same; of a command that fails with "FAILED: " in front.
  static std::string checked_output(const std::string& command) {
    const Output got = read(command);
    return (got.status == 0 ? "" : "FAILED: ") + got.text;
  }

 private:
  struct Output {
    std::string text;
    int status = -1;
  };
  static Output read(const std::string& command) {
    Output got;
    FILE* pipe = popen(command.c_str(), "r");
    char buffer[4096];
    while (pipe != nullptr && std::fgets(buffer, sizeof(buffer), pipe) != nullptr) {
      got.text += buffer;
    }
    got.status = pipe != nullptr ? pclose(pipe) : -1;
    return got;
  }
};

}  // namespace sluice::test
