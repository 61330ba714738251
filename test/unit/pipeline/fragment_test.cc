#include "dataplane/pipeline/fragment_table.h"
#include "test/unit/pipeline/fixture.h"

namespace sluice::test {
namespace {

SteppedGroupConfig two_workers() {
  SteppedGroupConfig config;
  config.workers = 2;
  return config;
}

class FragmentTest : public PipelineTest {
 protected:
  FragmentTest() : PipelineTest(two_workers()) {
    tables_.services["dns"].endpoints = {"10.244.1.21:5353", "10.244.2.22:5353",
                                         "10.244.2.23:5353"};
    tables_.services["dns6"] = {.cluster_ip = "fd00:96::2",
                                .vip = "fd00:203::53",
                                .port = 53,
                                .protocol = core::Protocol::kUdp,
                                .endpoints = {"[fd00:244::21]:5353"}};
    apply();
  }
  static std::vector<Bytes> pieces(const char* client, std::uint16_t sport, std::uint32_t id) {
    return fragment_frame(
        PacketBuilder().eth().ipv4(client, "203.0.113.53").udp(sport, 53).payload(4000).build(),
        1500, id);
  }
  /// All pieces sent went to one backend with the client as their source; @return it.
  std::string one_backend(const std::vector<SentFrame>& out, const std::string& client) {
    std::string backend;
    for (const SentFrame& f : out) {
      const PacketView view(f.bytes);
      EXPECT_EQ(view.src(), client);
      EXPECT_EQ(view.checksum_error(), "");
      EXPECT_NE(view.dst(), "203.0.113.53");
      EXPECT_TRUE(backend.empty() || backend == view.dst());
      backend = view.dst();
    }
    return backend;
  }
};

// F16, in order and last first; the pieces arrive spread over both workers.
TEST_F(FragmentTest, AllPiecesOfADatagramGoToOneBackend) {
  for (std::uint32_t n = 0; n < 500; ++n) {
    auto parts = pieces(kClient, static_cast<std::uint16_t>(10000 + n % 60), n);
    ASSERT_EQ(parts.size(), 3u);
    if (n % 2 == 1) {
      std::reverse(parts.begin(), parts.end());
    }
    for (std::size_t k = 0; k < parts.size(); ++k) {
      group_.inject((n + k) % 2, parts[k]);
    }
    group_.settle();
    const auto out = group_.take_sent();
    ASSERT_EQ(out.size(), 3u) << n;
    one_backend(out, kClient);
  }
  EXPECT_EQ(count(Counter::kHeldFragments), 0u);
}

TEST_F(FragmentTest, TwoClientsWithOneIdAreKeptApart) {
  const auto a = pieces(kClient, 5000, 77);
  const auto b = pieces(kClient2, 5000, 77);
  for (std::size_t k = 0; k < 3; ++k) {
    group_.inject(k % 2, a[2 - k]);
    group_.inject(0, b[k]);
  }
  group_.settle();
  std::vector<SentFrame> of_a;
  std::vector<SentFrame> of_b;
  for (const SentFrame& f : group_.take_sent()) {
    (PacketView(f.bytes).src() == kClient ? of_a : of_b).push_back(f);
  }
  EXPECT_EQ(of_a.size(), 3u);
  EXPECT_EQ(of_b.size(), 3u);
  one_backend(of_a, kClient);
  one_backend(of_b, kClient2);
}

TEST_F(FragmentTest, WithoutTheFirstPieceTheOthersAreHeldASecondAndCounted) {
  const auto parts = pieces(kClient, 5000, 7);
  group_.inject(0, parts[1]);
  group_.inject(1, parts[2]);
  group_.settle();
  EXPECT_EQ(count(Counter::kHeldFragments), 2u);
  EXPECT_EQ(group_.balance_error(), "");
  group_.run_ms(1200, 20);
  EXPECT_EQ(count(Counter::kFragmentTimeout), 2u);
  EXPECT_TRUE(group_.take_sent().empty());
}

TEST_F(FragmentTest, AnswersInPiecesAreTranslatedBack) {
  tables_.services["dns"].endpoints = {"10.244.1.21:5353"};
  apply();
  sent(0, udp4(kClient, "203.0.113.53", 5000, 53));
  const auto parts = fragment_frame(
      PacketBuilder().eth().ipv4(kB1, kClient).udp(5353, 5000).payload(3000).build(), 1500, 3);
  for (std::size_t k = 0; k < parts.size(); ++k) {
    group_.inject(k % 2, parts[k]);
  }
  group_.settle();
  const auto out = group_.take_sent();
  EXPECT_EQ(out.size(), parts.size());
  for (const SentFrame& f : out) {
    EXPECT_EQ(PacketView(f.bytes).src(), "203.0.113.53");
    EXPECT_EQ(PacketView(f.bytes).dst(), kClient);
  }
}

// Their bytes once counted twice, so the datagram ended before its last piece had come.
TEST_F(FragmentTest, PiecesThatComeTwiceDoNotEndTheDatagram) {
  const auto parts = pieces(kClient, 5000, 7);
  for (const std::size_t k : {2u, 0u, 0u, 2u, 1u}) {
    group_.inject(0, parts[k]);
    group_.settle();
  }
  const auto out = group_.take_sent();
  EXPECT_EQ(out.size(), 5u);
  one_backend(out, kClient);
  EXPECT_EQ(count(Counter::kHeldFragments), 0u);
}

TEST(Coverage, IsWholeOnceEveryByteWasSeen) {
  pipeline::Coverage seen;
  for (const std::uint32_t begin : {80u, 0u, 40u, 40u, 84u, 60u}) {
    EXPECT_FALSE(seen.whole(100));
    seen.note(begin, begin + 20);
  }
  EXPECT_FALSE(seen.whole(100));
  seen.note(18, 42);
  EXPECT_TRUE(seen.whole(100));
  EXPECT_FALSE(seen.whole(105));
}

TEST(Coverage, WithTooManyHolesNothingIsEverWhole) {
  pipeline::Coverage seen;
  for (std::uint32_t n = 0; n < 64; ++n) {
    seen.note(n * 16, n * 16 + 8);
  }
  for (std::uint32_t n = 0; n < 64; ++n) {
    seen.note(n * 16 + 8, n * 16 + 16);
  }
  EXPECT_FALSE(seen.whole(1024));
}

TEST_F(FragmentTest, Ipv6) {
  auto parts = fragment_frame(
      PacketBuilder().eth().ipv6(kClient6, "fd00:203::53").udp(5000, 53).payload(4000).build(),
      1500, 99);
  std::reverse(parts.begin(), parts.end());
  for (std::size_t k = 0; k < parts.size(); ++k) {
    group_.inject(k % 2, parts[k]);
  }
  group_.settle();
  const auto out = group_.take_sent();
  ASSERT_EQ(out.size(), parts.size());
  for (const SentFrame& f : out) {
    EXPECT_EQ(PacketView(f.bytes).dst(), "fd00:244::21");
  }
}

TEST_F(FragmentTest, PiecesThatAreNotOursGoToTheHostUnchanged) {
  const auto parts = fragment_frame(
      PacketBuilder().eth().ipv4(kClient, "192.0.2.11").udp(5000, 9).payload(3000).build(), 1500,
      8);
  const auto ping = fragment_frame(
      PacketBuilder().eth().ipv4(kClient, "192.0.2.11").echo_request(1, 1).payload(3000).build(),
      1500, 9);
  for (const auto* list : {&parts, &ping}) {
    for (const Bytes& part : *list) {
      group_.inject(0, part);
    }
  }
  group_.settle();
  EXPECT_EQ(group_.take_to_host().size(), parts.size() + ping.size());
  EXPECT_TRUE(group_.take_sent().empty());
}

TEST_F(FragmentTest, FloodOfPiecesIsBounded) {
  for (std::uint32_t n = 0; n < 900; ++n) {
    group_.inject(0, pieces(kClient, 5000, n)[1]);
    if (n % 64 == 0) {
      group_.settle();
    }
  }
  group_.settle();
  EXPECT_LE(count(Counter::kHeldFragments), 2 * pipeline::FragmentTable::kHeld);
  EXPECT_GT(count(Counter::kFragmentOverflow) + count(Counter::kFragmentTableFull), 0u);
  group_.run_ms(1200, 20);
  EXPECT_EQ(count(Counter::kHeldFragments), 0u);
}

}  // namespace
}  // namespace sluice::test
