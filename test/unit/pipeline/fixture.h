#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "test/support/packet_view.h"
#include "test/support/stepped_group.h"
#include "test/support/table_maker.h"

namespace sluice::test {

using pipeline::Counter;

inline constexpr const char* kClient = "198.51.100.7";
inline constexpr const char* kClient2 = "198.51.100.8";
inline constexpr const char* kVip = "203.0.113.10";
inline constexpr const char* kB1 = "10.244.1.21";
inline constexpr const char* kB2 = "10.244.2.22";
inline constexpr const char* kVip6 = "fd00:203::10";
inline constexpr const char* kClient6 = "fd00:198::7";
inline constexpr const char* kB6 = "fd00:244::21";

inline Bytes tcp4(const std::string& src, const std::string& dst, std::uint16_t sport,
                  std::uint16_t dport, std::uint8_t flags, std::uint8_t ttl = 64) {
  return PacketBuilder().eth().ipv4(src, dst, ttl).tcp(sport, dport, flags).payload(20).build();
}
inline Bytes udp4(const std::string& src, const std::string& dst, std::uint16_t sport,
                  std::uint16_t dport) {
  return PacketBuilder().eth().ipv4(src, dst).udp(sport, dport).payload(20).build();
}
inline Bytes tcp6(const std::string& src, const std::string& dst, std::uint16_t sport,
                  std::uint16_t dport, std::uint8_t flags) {
  return PacketBuilder().eth().ipv6(src, dst).tcp(sport, dport, flags).payload(20).build();
}
inline Bytes udp6(const std::string& src, const std::string& dst, std::uint16_t sport,
                  std::uint16_t dport) {
  return PacketBuilder().eth().ipv6(src, dst).udp(sport, dport).payload(20).build();
}
/// A router's "fragmentation needed" about an answer of the VIP's port 80 to that client.
inline Bytes too_big_answer(const std::string& client, std::uint16_t port) {
  return PacketBuilder()
      .eth()
      .ipv4("198.51.100.1", kVip)
      .icmp(3, 4, 1400)
      .quote(tcp4(kVip, client, 80, port, core::kTcpAck), 28)
      .build();
}

/// "tcp a:1 > b:2" of each frame; a wrong checksum is appended, so that no test overlooks one.
inline std::vector<std::string> flows(const std::vector<SentFrame>& frames) {
  std::vector<std::string> all;
  for (const SentFrame& f : frames) {
    const PacketView view(f.bytes);
    const std::string error = view.checksum_error();
    all.push_back(view.flow() + (error.empty() ? "" : " [" + error + "]"));
  }
  return all;
}

using Flows = std::vector<std::string>;

/// A group with the Services of the fault list. At the end of every test the frame balance and the
/// buffer pool must come out even.
class PipelineTest : public ::testing::Test {
 protected:
  explicit PipelineTest(const SteppedGroupConfig& config = {}) : group_(config) {
    tables_.services["web"] = {
        .vip = kVip, .node_port = 30080, .endpoints = {"10.244.1.21:8080", "10.244.2.22:8080"}};
    tables_.services["web6"] = {
        .cluster_ip = "fd00:96::1", .vip = kVip6, .endpoints = {"[fd00:244::21]:8080"}};
    tables_.services["dns"] = {.cluster_ip = "10.96.0.2",
                               .vip = "203.0.113.53",
                               .port = 53,
                               .protocol = core::Protocol::kUdp,
                               .endpoints = {"10.244.1.21:5353"}};
    apply();
  }
  ~PipelineTest() override { EXPECT_EQ(group_.balance_error(), ""); }

  void apply() { ASSERT_TRUE(group_.apply(tables_.make())); }
  Flows sent(std::size_t worker, const Bytes& frame) {
    return flows(group_.exchange(worker, frame));
  }
  /// Whole handshake; @return the backend's address.
  std::string establish(std::uint16_t sport, const std::string& client = kClient,
                        std::size_t worker = 0) {
    const auto out = group_.exchange(worker, tcp4(client, kVip, sport, 80, kSyn));
    if (out.size() != 1) {
      return "nothing sent";
    }
    const std::string backend = PacketView(out[0].bytes).dst();
    group_.exchange(worker, tcp4(backend, client, 8080, sport, kSyn | kAck));
    group_.exchange(worker, tcp4(client, kVip, sport, 80, kAck));
    return backend;
  }
  std::uint64_t count(Counter c) const { return group_.count(c); }

  TableMaker tables_;
  SteppedGroup group_;
};

}  // namespace sluice::test
