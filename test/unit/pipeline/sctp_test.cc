// SCTP through the workers: parse, state, rewrite with CRC32c, refusal by ABORT.
#include "test/unit/pipeline/fixture.h"

namespace sluice::test {
namespace {

constexpr const char* kSctpVip = "203.0.113.132";
constexpr const char* kSctpClusterIp = "10.96.0.132";

Bytes chunk(std::uint8_t type) {
  if (type == 1 || type == 2) {  // INIT, INIT ACK: tag, window, streams, first TSN
    return {type, 0, 0, 20, 0, 0, 0, 99, 0, 1, 0, 0, 0, 10, 0, 10, 0, 0, 0, 1};
  }
  return {type, 0, 0, 4};
}

Bytes sctp4(const std::string& src, const std::string& dst, std::uint16_t sport,
            std::uint16_t dport, std::uint8_t chunk_type) {
  return PacketBuilder()
      .eth()
      .ipv4(src, dst)
      .sctp(sport, dport, chunk_type == 1 ? 0 : 55)
      .raw(chunk(chunk_type))
      .build();
}

class SctpTest : public PipelineTest {
 protected:
  SctpTest() {
    tables_.services["sig"] = {.cluster_ip = kSctpClusterIp,
                               .vip = kSctpVip,
                               .port = 3868,
                               .protocol = core::Protocol::kSctp,
                               .endpoints = {"10.244.1.21:3868", "10.244.2.22:3868"}};
    apply();
  }
  Flows from_client(std::uint8_t type) {
    return sent(0, sctp4(kClient, kSctpVip, 40000, 3868, type));
  }
  Flows from_backend(const std::string& backend, std::uint8_t type) {
    return sent(0, sctp4(backend, kClient, 3868, 40000, type));
  }
  std::string state() {
    std::string text;
    (void)group_.dump_connections({}, [&](const pipeline::ConnectionRow& row) {
      text += core::state_name(row.state);
      return true;
    });
    return text;
  }
};

TEST_F(SctpTest, AnAssociationIsTranslatedBothWaysAndEnds) {
  EXPECT_EQ(from_client(1), Flows{"sctp 198.51.100.7:40000 > 10.244.1.21:3868"});
  EXPECT_EQ(state(), "sctp_init");
  EXPECT_EQ(from_backend(kB1, 2), Flows{"sctp 203.0.113.132:3868 > 198.51.100.7:40000"});
  EXPECT_EQ(from_client(10), Flows{"sctp 198.51.100.7:40000 > 10.244.1.21:3868"});
  EXPECT_EQ(state(), "sctp_established");
  EXPECT_EQ(from_client(7), Flows{"sctp 198.51.100.7:40000 > 10.244.1.21:3868"});
  EXPECT_EQ(state(), "sctp_shutdown");
  EXPECT_EQ(from_backend(kB1, 8), Flows{"sctp 203.0.113.132:3868 > 198.51.100.7:40000"});
  group_.run_ms(40'000);
  EXPECT_EQ(group_.connections(), 0u);
}

TEST_F(SctpTest, AnAbortEndsTheAssociation) {
  from_client(1);
  EXPECT_EQ(from_backend(kB1, 6), Flows{"sctp 203.0.113.132:3868 > 198.51.100.7:40000"});
  EXPECT_EQ(state(), "sctp_shutdown");
}

// F4: the same port again, an association later.
TEST_F(SctpTest, AnInitReusesThePortOfAFinishedAssociation) {
  from_client(1);
  from_backend(kB1, 2);
  from_client(6);
  EXPECT_EQ(from_client(1), Flows{"sctp 198.51.100.7:40000 > 10.244.2.22:3868"});
  EXPECT_EQ(count(Counter::kConnReused), 1u);
  EXPECT_EQ(state(), "sctp_init");
}

// F13: nobody knows the association, so no backend is asked to.
TEST_F(SctpTest, AnUnknownAssociationIsAborted) {
  const auto answer = group_.exchange(0, sctp4(kClient, kSctpVip, 40000, 3868, 0));
  ASSERT_EQ(flows(answer), Flows{"sctp 203.0.113.132:3868 > 198.51.100.7:40000"});
  EXPECT_EQ(PacketView(answer[0].bytes).payload(), (Bytes{6, 1, 0, 4}));
  EXPECT_EQ(group_.connections(), 0u);
}

TEST_F(SctpTest, WithoutEndpointsAnInitIsAborted) {
  tables_.services["sig"].endpoints = {};
  apply();
  const auto answer = group_.exchange(0, sctp4(kClient, kSctpVip, 40000, 3868, 1));
  ASSERT_EQ(flows(answer), Flows{"sctp 203.0.113.132:3868 > 198.51.100.7:40000"});
  EXPECT_EQ(PacketView(answer[0].bytes).payload()[0], 6);
}

}  // namespace
}  // namespace sluice::test
