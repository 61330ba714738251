#include "dataplane/core/net/toeplitz.h"

#include <random>

#include "test/unit/core_net/net_test.h"

namespace sluice::core {
namespace {

using test::Bytes;

/// Key of the RSS verification suite.
const Bytes kKey = {0x6d, 0x5a, 0x56, 0xda, 0x25, 0x5b, 0x0e, 0xc2, 0x41, 0x67,
                    0x25, 0x3d, 0x43, 0xa3, 0x8f, 0xb0, 0xd0, 0xca, 0x2b, 0xcb,
                    0xae, 0x7b, 0x30, 0xb4, 0x77, 0xcb, 0x2d, 0xa3, 0x80, 0x30,
                    0xf2, 0x0c, 0x6a, 0x42, 0xb7, 0x3b, 0xbe, 0xac, 0x01, 0xfa};

/// Input of the hash in packet order; ports are left out when `ports` is false.
Bytes input(const char* src, std::uint16_t sport, const char* dst, std::uint16_t dport,
            bool ports) {
  Bytes bytes;
  for (const IpAddress& address : {*parse_address(src), *parse_address(dst)}) {
    bytes.insert(bytes.end(), address.data(), address.data() + address.size());
  }
  for (const std::uint16_t port : {sport, dport}) {
    if (ports) {
      bytes.push_back(static_cast<std::uint8_t>(port >> 8));
      bytes.push_back(static_cast<std::uint8_t>(port));
    }
  }
  return bytes;
}

struct Known {
  const char* src;
  std::uint16_t sport;
  const char* dst;
  std::uint16_t dport;
  std::uint32_t addresses;
  std::uint32_t with_ports;
};

// The published input and output pairs of the RSS verification suite.
TEST(Toeplitz, AgreesWithTheVerificationSuite) {
  const Known known[] = {
      {"66.9.149.187", 2794, "161.142.100.80", 1766, 0x323e8fc2, 0x51ccc178},
      {"199.92.111.2", 14230, "65.69.140.83", 4739, 0xd718262a, 0xc626b0ea},
      {"24.19.198.95", 12898, "12.22.207.184", 38024, 0xd2d0a5de, 0x5c2b394a},
      {"38.27.205.30", 48228, "209.142.163.6", 2217, 0x82989176, 0xafc7327f},
      {"153.39.163.191", 44251, "202.188.127.2", 1303, 0x5d1809c5, 0x10e828a2},
      {"3ffe:2501:200:1fff::7", 2794, "3ffe:2501:200:3::1", 1766, 0x2cc18cd5, 0x40207d3d},
      {"3ffe:501:8::260:97ff:fe40:efab", 14230, "ff02::1", 4739, 0x0f0c461c, 0xdde51bbf},
      {"3ffe:1900:4545:3:200:f8ff:fe21:67cf", 44251, "fe80::200:f8ff:fe21:67cf", 38024, 0x4b61e985,
       0x02d1feef},
  };
  const Toeplitz toeplitz(kKey);
  for (const Known& k : known) {
    const Bytes addresses = input(k.src, k.sport, k.dst, k.dport, false);
    const Bytes all = input(k.src, k.sport, k.dst, k.dport, true);
    EXPECT_EQ(toeplitz.hash(std::span(addresses)), k.addresses) << k.src;
    EXPECT_EQ(toeplitz.hash(std::span(all)), k.with_ports) << k.src;
  }
}

/// The definition: for every set bit, XOR the key's 32 bits at that place.
std::uint32_t by_definition(const Bytes& key, const Bytes& bytes) {
  std::uint32_t result = 0;
  for (std::size_t bit = 0; bit < bytes.size() * 8; ++bit) {
    if ((bytes[bit / 8] >> (7 - bit % 8) & 1) == 0) {
      continue;
    }
    for (std::size_t i = 0; i < 32; ++i) {
      const std::size_t at = bit + i;
      const std::uint32_t key_bit = at / 8 < key.size() ? key[at / 8] >> (7 - at % 8) & 1u : 0u;
      result ^= key_bit << (31 - i);
    }
  }
  return result;
}

TEST(Toeplitz, OfAddressAndPortEqualsTheDefinition) {
  std::mt19937 random(1);
  for (const std::size_t key_size : {40, 52}) {
    Bytes key(key_size);
    for (auto& byte : key) {
      byte = static_cast<std::uint8_t>(random());
    }
    const Toeplitz toeplitz(key);
    for (int round = 0; round < 1000; ++round) {
      Bytes six(6);
      Bytes eighteen(18);
      std::generate(six.begin(), six.end(), [&] { return static_cast<std::uint8_t>(random()); });
      std::generate(eighteen.begin(), eighteen.end(),
                    [&] { return static_cast<std::uint8_t>(random()); });
      EXPECT_EQ(toeplitz(Be32::load(six.data()), Be16::load(six.data() + 4)),
                by_definition(key, six));
      EXPECT_EQ(toeplitz(Ipv6Address::load(eighteen.data()), Be16::load(eighteen.data() + 16)),
                by_definition(key, eighteen));
    }
  }
}

}  // namespace
}  // namespace sluice::core
