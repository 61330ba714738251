// F97: the configured address is the one used, in every form.
#include "control/http/bind_address.h"

#include <gtest/gtest.h>

namespace sluice::http {
namespace {

core::IpAddress ip(const char* text) {
  return *core::parse_address(text);
}

TEST(BindAddress, AddressAndPort) {
  EXPECT_EQ(*parse_bind_address("127.0.0.1:99", 1), (BindAddress{{ip("127.0.0.1")}, 99}));
  EXPECT_EQ(*parse_bind_address("[fd00::1]:99", 1), (BindAddress{{ip("fd00::1")}, 99}));
}

TEST(BindAddress, AllAddressesOfOneOrBothFamilies) {
  EXPECT_EQ(*parse_bind_address("0.0.0.0:99", 1), (BindAddress{{ip("0.0.0.0")}, 99}));
  const BindAddress both{{ip("0.0.0.0"), ip("::")}, 99};
  EXPECT_EQ(*parse_bind_address("[::]:99", 1), both);
  EXPECT_EQ(*parse_bind_address(":99", 1), both);
  EXPECT_EQ(*parse_bind_address("99", 1), both);
}

TEST(BindAddress, MissingPortIsTheDefaultOne) {
  EXPECT_EQ(*parse_bind_address("127.0.0.1", 99), (BindAddress{{ip("127.0.0.1")}, 99}));
  EXPECT_EQ(*parse_bind_address("fd00::1", 99), (BindAddress{{ip("fd00::1")}, 99}));
  EXPECT_EQ(*parse_bind_address("[fd00::1]", 99), (BindAddress{{ip("fd00::1")}, 99}));
  EXPECT_EQ(parse_bind_address("::", 99)->addresses.size(), 2u);
}

TEST(BindAddress, NothingIsOff) {
  EXPECT_TRUE(parse_bind_address("", 99)->addresses.empty());
}

TEST(BindAddress, AnythingElseIsAnErrorThatNamesIt) {
  for (const char* text : {"localhost:99", "127.0.0.1:", "127.0.0.1:70000", "[::1", "[::1]99",
                           "1.2.3.4.5:9", "[127.0.0.1]:99", "[]:99", ":", " :99", "-1"}) {
    const auto read = parse_bind_address(text, 1);
    ASSERT_FALSE(read.has_value()) << text;
    EXPECT_NE(read.error().message.find("'" + std::string(text) + "'"), std::string::npos);
  }
}

}  // namespace
}  // namespace sluice::http
