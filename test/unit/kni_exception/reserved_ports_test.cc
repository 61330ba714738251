#include "kni/exception/reserved_ports.h"

#include <gtest/gtest.h>

#include "test/support/namespace_fixture.h"

namespace sluice::kni {
namespace {

class ReservedPortsTest : public sluice::test::NamespaceTest {
 protected:
  static std::string list() { return output("cat /proc/sys/net/ipv4/ip_local_reserved_ports"); }
};

TEST_F(ReservedPortsTest, AddsTheRangeAndPutsTheListBack) {
  ASSERT_EQ(run("echo 8080,9000-9010 > /proc/sys/net/ipv4/ip_local_reserved_ports"), 0);
  {
    const auto reserved = ReservedPorts::reserve(40960, 65535);

    ASSERT_TRUE(reserved) << reserved.error().message;
    EXPECT_EQ(list(), "8080,9000-9010,40960-65535\n");
  }

  EXPECT_EQ(list(), "8080,9000-9010\n");
}

TEST_F(ReservedPortsTest, PutsAnEmptyListBack) {
  { const auto reserved = ReservedPorts::reserve(40960, 65535); }

  EXPECT_EQ(list(), "\n");
}

TEST_F(ReservedPortsTest, LeavesAListThatSomeoneElseChanged) {
  {
    const auto reserved = ReservedPorts::reserve(40960, 65535);
    ASSERT_EQ(run("echo 7000 > /proc/sys/net/ipv4/ip_local_reserved_ports"), 0);
  }

  EXPECT_EQ(list(), "7000\n");
}

}  // namespace
}  // namespace sluice::kni
