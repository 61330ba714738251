#include "dataplane/core/net/address.h"

#include <iterator>

#include <gtest/gtest.h>

namespace sluice::core {
namespace {

std::string canonical(std::string_view text) {
  const auto address = parse_address(text);
  return address ? to_string(*address) : "refused";
}

TEST(AddressText, ReadsAndPrintsIpv4) {
  EXPECT_EQ(canonical("10.0.0.1"), "10.0.0.1");
  EXPECT_EQ(canonical("255.255.255.255"), "255.255.255.255");
}

// S-2, SL-6.
TEST(AddressText, ToleratesLeadingZerosAndReadsThemAsDecimal) {
  EXPECT_EQ(canonical("010.000.0000.0011"), "10.0.0.11");
  EXPECT_EQ(canonical("192.168.010.1"), "192.168.10.1");
}

TEST(AddressText, RefusesWhatIsNoAddress) {
  for (const char* text : {"",
                           " ",
                           "1",
                           "1.2.3",
                           "1.2.3.4.5",
                           "1.2.3.256",
                           "1.2.3.",
                           ".1.2.3",
                           "a.b.c.d",
                           " 1.2.3.4",
                           "1.2.3.4 ",
                           "1.2.3.4/32",
                           "-1.2.3.4",
                           "1.2.3.4294967297",
                           ":",
                           ":::",
                           "1::2::3",
                           "1:2:3:4:5:6:7",
                           "1:2:3:4:5:6:7:8:9",
                           "1:2:3:4:5:6:7:8::",
                           "::1:2:3:4:5:6:7:8",
                           "1:2:3:4:5:6:7:",
                           ":1:2:3:4:5:6:7",
                           "12345::",
                           "g::",
                           "fe80::1%eth0",
                           "::1.2.3",
                           "1.2.3.4::",
                           "::1.2.3.4:5",
                           "1:2:3:4:5:6:7:1.2.3.4",
                           "[::1]",
                           "::1 "}) {
    EXPECT_EQ(canonical(text), "refused") << '"' << text << '"';
  }
}

TEST(AddressText, PrintsIpv6AsRfc5952) {
  EXPECT_EQ(canonical("::"), "::");
  EXPECT_EQ(canonical("::1"), "::1");
  EXPECT_EQ(canonical("1::"), "1::");
  EXPECT_EQ(canonical("2001:DB8:0:0:0:0:0:1"), "2001:db8::1");
  EXPECT_EQ(canonical("2001:db8:0:1:1:1:1:1"), "2001:db8:0:1:1:1:1:1");  // one group is not cut
  EXPECT_EQ(canonical("2001:0:0:1:0:0:0:1"), "2001:0:0:1::1");           // the longest run
  EXPECT_EQ(canonical("2001:db8:0:0:1:0:0:1"), "2001:db8::1:0:0:1");     // the first of equals
  EXPECT_EQ(canonical("0:0:1:2:3:4:5:6"), "::1:2:3:4:5:6");
  EXPECT_EQ(canonical("1:2:3:4:5:6::"), "1:2:3:4:5:6::");
  EXPECT_EQ(canonical("1:2:3:4:5:6:7::"), "1:2:3:4:5:6:7:0");
  EXPECT_EQ(canonical("64:ff9b::192.0.2.33"), "64:ff9b::c000:221");
  EXPECT_EQ(canonical("000001::0002"), "1::2");
}

TEST(AddressText, TurnsMappedIpv6IntoIpv4) {
  const auto address = parse_address("::ffff:10.1.2.3");
  ASSERT_TRUE(address);
  EXPECT_TRUE(address->is_v4());
  EXPECT_EQ(*address, *parse_address("10.1.2.3"));
  EXPECT_EQ(canonical("::ffff:a01:203"), "10.1.2.3");
}

// SL-7.
TEST(AddressText, BracketsIpv6BeforeAPort) {
  EXPECT_EQ(to_string(*parse_address("10.0.0.1"), 80), "10.0.0.1:80");
  EXPECT_EQ(to_string(*parse_address("fd00::1"), 65535), "[fd00::1]:65535");
}

TEST(AddressText, OfFixedLengthHoldsTheLongestAndSortsAsTheTexts) {
  const auto longest = *parse_address("fd00:1111:2222:3333:4444:5555:6666:7777");
  EXPECT_EQ(to_string(longest, 65535), "[fd00:1111:2222:3333:4444:5555:6666:7777]:65535");
  const auto text = [](const char* address, std::uint16_t port) {
    return text_of(*parse_address(address), port);
  };
  EXPECT_LT(text("10.0.0.1", 80), text("10.0.0.1", 8080));
  EXPECT_LT(text("10.0.0.10", 80), text("10.0.0.1", 80));  // '0' is before ':'
  EXPECT_LT(text("9.0.0.1", 80), text("fd00::1", 80));
  EXPECT_EQ(text("10.0.0.1", 80), text("010.0.0.1", 80));
}

TEST(Address, KnowsSpecialRanges) {
  EXPECT_TRUE(parse_address("127.255.0.1")->is_loopback());
  EXPECT_TRUE(parse_address("::1")->is_loopback());
  EXPECT_FALSE(parse_address("::2")->is_loopback());
  EXPECT_FALSE(parse_address("128.0.0.1")->is_loopback());
  EXPECT_TRUE(parse_address("224.0.0.1")->is_multicast());
  EXPECT_TRUE(parse_address("239.255.255.255")->is_multicast());
  EXPECT_FALSE(parse_address("240.0.0.1")->is_multicast());
  EXPECT_TRUE(parse_address("ff02::1")->is_multicast());
  EXPECT_FALSE(parse_address("fe80::1")->is_multicast());
  EXPECT_TRUE(parse_address("0.0.0.0")->is_unspecified());
  EXPECT_TRUE(parse_address("::")->is_unspecified());
  EXPECT_FALSE(parse_address("0.0.0.1")->is_unspecified());
}

TEST(Address, ZeroAddressesOfTheFamiliesDiffer) {
  EXPECT_NE(*parse_address("0.0.0.0"), *parse_address("::"));
}

TEST(Address, OrderIsByFamilyAndThenByBytesFromTheFirst) {
  const char* const ascending[] = {"0.0.0.0",     "0.0.0.1",        "1.0.0.0",
                                   "10.0.0.255",  "10.0.1.0",       "255.255.255.255",
                                   "::",          "::1",            "::1:0:0:0:0",
                                   "fd00::",      "fd00::ff",       "fd00::100",
                                   "fd00:0:0:1::", "fd00:0:0:100::", "ff00::"};
  for (std::size_t a = 0; a < std::size(ascending); ++a) {
    for (std::size_t b = 0; b < std::size(ascending); ++b) {
      const IpAddress left = *parse_address(ascending[a]);
      const IpAddress right = *parse_address(ascending[b]);
      EXPECT_EQ(left <=> right, a <=> b) << ascending[a] << " and " << ascending[b];
      EXPECT_EQ(left == right, a == b) << ascending[a] << " and " << ascending[b];
    }
  }
}

TEST(Cidr, ClearsHostBits) {
  EXPECT_EQ(to_string(*parse_cidr("10.1.2.3/8")), "10.0.0.0/8");
  EXPECT_EQ(to_string(*parse_cidr("10.1.2.255/25")), "10.1.2.128/25");
  EXPECT_EQ(*parse_cidr("10.1.2.3/8"), *parse_cidr("10.200.0.0/8"));
  EXPECT_EQ(to_string(*parse_cidr("fd00:1:2:3::1/49")), "fd00:1:2::/49");
  EXPECT_EQ(to_string(*parse_cidr("1.2.3.4/0")), "0.0.0.0/0");
  EXPECT_EQ(to_string(*parse_cidr("1.2.3.4/32")), "1.2.3.4/32");
  EXPECT_EQ(to_string(*parse_cidr("::ffff:10.0.0.7/104")), "10.0.0.0/8");
}

TEST(Cidr, RefusesBadLengths) {
  for (const char* text : {"10.0.0.0", "10.0.0.0/", "10.0.0.0/33", "10.0.0.0/-1", "10.0.0.0/8 ",
                           "/8", "10.0.0.0/8/8", "fd00::/129", "fd00::/x", "::ffff:10.0.0.0/8"}) {
    EXPECT_FALSE(parse_cidr(text)) << text;
  }
}

TEST(Cidr, ContainsAddressesOfItsFamilyOnly) {
  const auto v4 = *parse_cidr("10.1.2.128/25");
  EXPECT_TRUE(v4.contains(*parse_address("10.1.2.128")));
  EXPECT_TRUE(v4.contains(*parse_address("10.1.2.255")));
  EXPECT_FALSE(v4.contains(*parse_address("10.1.2.127")));
  EXPECT_FALSE(v4.contains(*parse_address("a01:280::")));
  EXPECT_TRUE(parse_cidr("0.0.0.0/0")->contains(*parse_address("255.1.2.3")));
  EXPECT_FALSE(parse_cidr("0.0.0.0/0")->contains(*parse_address("::")));
  EXPECT_TRUE(parse_cidr("::/0")->contains(*parse_address("ff::")));
  EXPECT_TRUE(parse_cidr("fd00::1/128")->contains(*parse_address("fd00::1")));
  EXPECT_FALSE(parse_cidr("fd00::1/128")->contains(*parse_address("fd00::2")));
}

TEST(Cidr, ClampsTheLength) {
  EXPECT_EQ(Cidr(*parse_address("10.0.0.1"), 200).length(), 32u);
  EXPECT_EQ(Cidr(*parse_address("::1"), 200).length(), 128u);
}

TEST(MacAddress, ReadsAndPrints) {
  const auto mac = parse_mac("02:aB:00:ff:10:01");
  ASSERT_TRUE(mac);
  EXPECT_EQ(to_string(*mac), "02:ab:00:ff:10:01");
  EXPECT_EQ(parse_mac("02-ab-00-ff-10-01"), mac);
  EXPECT_FALSE(mac->is_multicast());
  EXPECT_TRUE(parse_mac("01:00:5e:00:00:01")->is_multicast());
}

TEST(MacAddress, RefusesWhatIsNoMac) {
  for (const char* text : {"", "02:ab:00:ff:10", "02:ab:00:ff:10:1", "02:ab:00:ff:10:0g",
                           "02:ab:00:ff:10:01:", "02:ab-00:ff:10:01", "02.ab.00.ff.10.01"}) {
    EXPECT_FALSE(parse_mac(text)) << text;
  }
}

TEST(ProtocolName, IsLowerCase) {
  EXPECT_EQ(protocol_name(Protocol::kTcp), "tcp");
  EXPECT_EQ(protocol_name(Protocol::kUdp), "udp");
  EXPECT_EQ(protocol_name(Protocol::kSctp), "sctp");
}

}  // namespace
}  // namespace sluice::core
