#include "dataplane/core/net/parse.h"

#include <gtest/gtest.h>

#include "test/support/packet_builder.h"

namespace sluice::core {
namespace {

using test::Bytes;
using test::PacketBuilder;

ParsedFrame parse(const Bytes& frame) {
  // A heap copy of the exact size lets the address sanitizer see every byte read too many.
  const std::unique_ptr<std::uint8_t[]> copy(new std::uint8_t[frame.size()]);
  std::copy(frame.begin(), frame.end(), copy.get());
  ParsedFrame out;
  parse_frame(copy.get(), static_cast<std::uint32_t>(frame.size()),
              static_cast<std::uint32_t>(frame.size()), out);
  return out;
}

[[maybe_unused]] ParseError error_of(const Bytes& frame) {
  const ParsedFrame out = parse(frame);
  EXPECT_EQ(out.kind == FrameKind::kBad, out.error != ParseError::kNone);
  return out.error;
}

PacketBuilder v4(const char* src = "10.0.0.1", const char* dst = "10.0.0.2") {
  return PacketBuilder().eth().ipv4(src, dst, 33);
}
PacketBuilder v6(const char* src = "fd00::1", const char* dst = "fd00::2") {
  return PacketBuilder().eth().ipv6(src, dst, 33);
}

TEST(Parse, ReadsIpv4Flow) {
  const ParsedFrame out = parse(v4().tcp(1000, 80, test::kSyn).payload(3).pad_to(60).build());
  EXPECT_EQ(out.kind, FrameKind::kFlow4);
  EXPECT_EQ(to_string(out.src(), out.key4.sport.host()), "10.0.0.1:1000");
  EXPECT_EQ(to_string(out.dst(), out.key4.dport.host()), "10.0.0.2:80");
  EXPECT_EQ(out.key4.proto, 6);
  EXPECT_EQ(out.l3_offset, 14);
  EXPECT_EQ(out.l4_offset, 34);
  EXPECT_EQ(out.ip_length, 43);
  EXPECT_EQ(out.l4_length(), 23u);
  EXPECT_EQ(out.hop_limit, 33);
  EXPECT_EQ(out.tcp_flags, kTcpSyn);
  EXPECT_FALSE(out.multicast);
}

TEST(Parse, ReadsIpv6Flow) {
  const ParsedFrame out = parse(v6().udp(1000, 53).payload(3).build());
  EXPECT_EQ(out.kind, FrameKind::kFlow6);
  EXPECT_EQ(to_string(out.src(), out.key6.sport.host()), "[fd00::1]:1000");
  EXPECT_EQ(to_string(out.dst(), out.key6.dport.host()), "[fd00::2]:53");
  EXPECT_EQ(out.key6.proto, 17);
  EXPECT_EQ(out.l4_offset, 54);
  EXPECT_EQ(out.ip_length, 51);
}

TEST(Parse, KeyHasNoUndefinedBytes) {
  ParsedFrame out;
  std::memset(static_cast<void*>(&out.key6), 0xaa, sizeof out.key6);
  const Bytes frame = v4().tcp(1, 2).build();
  parse_frame(frame.data(), 54, 54, out);
  EXPECT_EQ(out.key4,
            (FlowKey4{out.key4.src, out.key4.dst, Be16::from_host(1), Be16::from_host(2), 6, {}}));
}

}  // namespace
}  // namespace sluice::core
