#pragma once

// Frames that mutation starts from: one of every kind that core/net tells apart. Each is preceded
// by the byte that the frame targets take for the size of later segments (0: none).

#include <vector>

#include "test/support/packet_builder.h"

namespace sluice::fuzz {

[[nodiscard]] inline std::vector<test::Bytes> frame_corpus() {
  using test::PacketBuilder;
  const auto v4 = [] { return PacketBuilder().eth().ipv4("10.0.0.1", "10.0.0.2"); };
  const auto v6 = [] { return PacketBuilder().eth().ipv6("fd00::1", "fd00::2"); };
  const auto link = [] { return PacketBuilder().eth().ipv6("fe80::1", "ff02::1:ff00:2", 255); };
  const test::Bytes cause4 = v4().tcp(1000, 80).payload(30).build();
  const test::Bytes cause6 = v6().udp(1000, 80).payload(30).build();
  std::vector<test::Bytes> frames = {
      v4().tcp(1000, 80, test::kSyn).build(),
      v4().udp(1000, 53).payload(9).pad_to(60).build(),
      v4().udp(1000, 53).payload(9).no_udp_checksum().build(),
      v4().sctp(1000, 7).raw({1, 0, 0, 20, 1, 2, 3, 4}).build(),
      v4().ipv4_options({7, 7, 4, 0, 0, 0, 0}).tcp(1000, 80).payload(5).build(),
      v4().echo_request(1, 2).payload(20).build(),
      v4().icmp(3, 4, 1400).quote(cause4, 28).build(),
      v4().icmp(11, 0).quote(cause4).build(),
      v4().icmp(3, 3).quote(v4().sctp(1, 2).payload(30).build()).build(),
      v4().fragment(0, true).udp(1000, 53).payload(16).build(),
      v4().fragment(1480, false).protocol(17).payload(16).build(),
      v4().ipv4("1.1.1.1", "2.2.2.2").tcp(1, 2).build(),
      v6().tcp(1000, 80).payload(3).build(),
      v6().udp(1000, 53).payload(9).build(),
      v6().hop_by_hop().destination_options().routing(4, 0).tcp(1000, 80).build(),
      v6().fragment6(0, false).udp(1000, 53).build(),
      v6().fragment6(0, true).udp(1000, 53).payload(16).build(),
      v6().fragment6(1448, true).protocol(17).payload(16).build(),
      v6().icmp(2, 0, 1280).quote(cause6).build(),
      v6().icmp(1, 4).quote(v6().hop_by_hop().tcp(1, 2).build()).build(),
      v4().icmp(3, 4, 1400).quote(v4().ipv4("1.1.1.1", "2.2.2.2").tcp(1, 2).build()).build(),
      v4().icmp(11, 0).quote(v4().ipv6("fd00::3", "fd00::4").udp(1, 2).build()).build(),
      v6().icmp(2, 0, 1280).quote(v6().ipv4("1.1.1.1", "2.2.2.2").tcp(1, 2).build()).build(),
      v6().icmp(1, 3).quote(v6().ipv6("fd00::3", "fd00::4").udp(1, 2).build()).build(),
      v6().echo_request(1, 2).payload(20).build(),
      link().neighbor_solicitation("fe80::2").build(),
      link().neighbor_advertisement("fe80::2", test::kPeerMac, 0x20).build(),
      PacketBuilder().eth().arp_request("10.0.0.1", "10.0.0.2").pad_to(60).build(),
      PacketBuilder().eth().vlan(5).ipv4("1.1.1.1", "2.2.2.2").udp(1, 2).build(),
  };
  for (test::Bytes& frame : frames) {
    frame.insert(frame.begin(), 0);
  }
  return frames;
}

}  // namespace sluice::fuzz
