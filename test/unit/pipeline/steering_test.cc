// What a worker remembers of flows that live on others: the cache alone, and that packets which go
// by it fare as they would without it.

#include <map>
#include <set>

#include "dataplane/core/conn/flow_hash.h"
#include "dataplane/pipeline/steering_cache.h"
#include "test/unit/pipeline/fixture.h"

namespace sluice::test {
namespace {

using pipeline::SteeringCache;

struct CacheMemory {
  explicit CacheMemory(std::size_t bytes) : words(bytes / 16) {}
  [[nodiscard]] std::span<std::byte> span() { return std::as_writable_bytes(std::span(words)); }
  struct alignas(16) Word {
    std::byte bytes[16];
  };
  std::vector<Word> words;
};

TEST(SteeringCache, TellsEveryWorkerButItsOwn) {
  for (const std::size_t workers : {2u, 3u, 4u, 128u}) {
    for (std::size_t own = 0; own < workers; own += 1 + workers / 5) {
      CacheMemory memory(SteeringCache::memory_bytes(workers, 1000));
      SteeringCache cache(own, workers, memory.span());
      for (std::uint32_t w = 0; w < workers; ++w) {
        if (w != own) {
          const std::uint32_t hash = w * 0x9e3779b9;
          cache.keep(hash, w);
          EXPECT_EQ(cache.find(hash), w) << own << " of " << workers;
        }
      }
    }
  }
}

TEST(SteeringCache, KnowsNothingAtFirstAndForgets) {
  CacheMemory memory(SteeringCache::memory_bytes(2, 1000));
  std::ranges::fill(memory.span(), std::byte{0xff});
  SteeringCache cache(0, 2, memory.span());
  ASSERT_TRUE(cache.exists());
  for (const std::uint32_t hash : {0u, 1u, 0xffffffffu, 0x12345678u}) {
    EXPECT_EQ(cache.find(hash), SteeringCache::kNone);
    cache.keep(hash, 1);
    EXPECT_EQ(cache.find(hash), 1u);
    cache.forget(hash);
    EXPECT_EQ(cache.find(hash), SteeringCache::kNone);
  }
}

TEST(SteeringCache, WhatIsIgnoredHasNoAnswerUntilItIsForgotten) {
  for (const std::size_t workers : {2u, 128u}) {
    for (const std::size_t own : {std::size_t{0}, workers - 1}) {
      CacheMemory memory(SteeringCache::memory_bytes(workers, 1000));
      SteeringCache cache(own, workers, memory.span());
      const std::size_t other = own == 0 ? 1 : 0;
      for (const std::uint32_t hash : {0u, 63u, 0x00010000u, 0x12345678u}) {
        cache.keep(hash, other);
        cache.ignore(hash);
        EXPECT_EQ(cache.find(hash), SteeringCache::kNone);
        cache.keep(hash, other);
        EXPECT_EQ(cache.find(hash), SteeringCache::kNone);
        cache.forget(hash);
        cache.keep(hash, other);
        EXPECT_EQ(cache.find(hash), other);
      }
    }
  }
}

TEST(SteeringCache, AFlowThatMovesHasOnePlace) {
  CacheMemory memory(SteeringCache::memory_bytes(4, 1000));
  SteeringCache cache(0, 4, memory.span());
  cache.keep(77, 1);
  cache.keep(77, 2);
  EXPECT_EQ(cache.find(77), 2u);
  cache.forget(77);
  EXPECT_EQ(cache.find(77), SteeringCache::kNone);
}

TEST(SteeringCache, AFullSetGivesUpOnePlaceForEachNewFlow) {
  CacheMemory memory(SteeringCache::memory_bytes(2, 1000));
  SteeringCache cache(0, 2, memory.span());
  const auto of_one_set = [](std::uint32_t n) { return 5 + (n << 20); };
  for (std::uint32_t n = 0; n < 100; ++n) {
    cache.keep(of_one_set(n), 1);
    std::uint32_t known = 0;
    for (std::uint32_t k = 0; k <= n; ++k) {
      known += cache.find(of_one_set(k)) == 1 ? 1 : 0;
    }
    EXPECT_EQ(known, std::min(n + 1, 8u));
    EXPECT_EQ(cache.find(of_one_set(n)), 1u);
  }
}

TEST(SteeringCache, HasTwoBytesForEachConnectionOfALargeTable) {
  EXPECT_EQ(SteeringCache::memory_bytes(1, 1'000'000), 0u);
  EXPECT_EQ(SteeringCache::memory_bytes(2, 1'000'000), std::size_t{4} << 20);
  EXPECT_EQ(SteeringCache::memory_bytes(64, 4'000'000), std::size_t{16} << 20);
  EXPECT_EQ(SteeringCache::memory_bytes(2, 32'000'000), std::size_t{16} << 20);
  EXPECT_EQ(SteeringCache::memory_bytes(2, 64'000), std::size_t{512} << 10);
  CacheMemory memory(1024);
  EXPECT_FALSE(SteeringCache(0, 1, memory.span()).exists());
  EXPECT_FALSE(SteeringCache(0, 2, {}).exists());
}

TEST(SteeringShare, PaysFromAnEighthOnUntilLessThanASixteenth) {
  pipeline::SteeringShare share(1024);
  std::uint64_t handed = 0;
  const auto window_with = [&](std::uint64_t elsewhere) {
    for (std::uint32_t burst = 0; burst < 1024 / 64; ++burst) {
      share.received(64, handed += elsewhere / 16);
    }
    return share.pays();
  };
  EXPECT_FALSE(window_with(0));
  EXPECT_FALSE(window_with(112));
  EXPECT_FALSE(share.ever());
  EXPECT_TRUE(window_with(128));
  EXPECT_TRUE(window_with(64));
  EXPECT_FALSE(window_with(48));
  EXPECT_FALSE(window_with(112));
  EXPECT_TRUE(share.ever());
}

SteppedGroupConfig two_workers() {
  SteppedGroupConfig config;
  config.workers = 2;
  config.connections = 100;  // a small cache: flows that share a place are found soon
  config.ring_size = 128;
  return config;
}

/// Everything arrives at worker 0.
class SteeringTest : public PipelineTest {
 protected:
  SteeringTest() : PipelineTest(two_workers()) {}

  [[nodiscard]] std::uint16_t port_of_worker(std::size_t worker, std::uint16_t from = 40000) const {
    std::uint16_t port = from;
    while (group_.owners().of_client(*core::parse_address(kClient), core::Be16::from_host(port)) !=
           worker) {
      ++port;
    }
    return port;
  }
  Flows request(std::uint16_t sport) { return sent(0, tcp4(kClient, kVip, sport, 80, kAck)); }
  Flows datagram(std::uint16_t sport) { return sent(0, udp4(kClient, "203.0.113.53", sport, 53)); }
  static Flows dns_to(const char* backend, std::uint16_t sport) {
    return {"udp 198.51.100.7:" + std::to_string(sport) + " > " + backend + ":5353"};
  }
  /// A flow of worker 1 that worker 0 remembers. @return its backend.
  std::string remembered(std::uint16_t sport) {
    const std::string backend = establish(sport);
    request(sport);
    return backend;
  }
  /// The same of UDP.
  void remembered_datagrams(std::uint16_t sport) {
    datagram(sport);
    datagram(sport);
    EXPECT_EQ(datagram(sport), dns_to(kB1, sport));
    EXPECT_EQ(known(), 1u);
  }
  std::uint64_t known() const { return count(Counter::kSteeringKnown); }
  std::uint64_t returned() const { return count(Counter::kSteeringReturned); }
};

TEST_F(SteeringTest, BothDirectionsOfARememberedFlowCrossWithoutALookup) {
  const std::uint16_t sport = port_of_worker(1);
  const std::string backend = remembered(sport);
  const std::uint64_t before = known();
  const std::uint64_t misses = group_.count(0, Counter::kConnMisses);
  EXPECT_EQ(request(sport),
            Flows{"tcp 198.51.100.7:" + std::to_string(sport) + " > " + backend + ":8080"});
  EXPECT_EQ(sent(0, tcp4(backend, kClient, 8080, sport, kAck)),
            Flows{"tcp 203.0.113.10:80 > 198.51.100.7:" + std::to_string(sport)});
  EXPECT_EQ(known(), before + 2);
  EXPECT_EQ(returned(), 0u);
  EXPECT_EQ(group_.count(0, Counter::kConnMisses), misses);
  EXPECT_EQ(count(Counter::kSteeringMisses), count(Counter::kHandoverSent));
}

TEST_F(SteeringTest, Ipv6Too) {
  std::uint16_t sport = 40000;
  const auto client = *core::parse_address(kClient6);
  while (group_.owners().of_client(client, core::Be16::from_host(sport)) != 1) {
    ++sport;
  }
  group_.exchange(0, tcp6(kClient6, kVip6, sport, 80, kSyn));
  group_.exchange(0, tcp6(kB6, kClient6, 8080, sport, kSyn | kAck));
  for (int n = 0; n < 3; ++n) {
    EXPECT_EQ(sent(0, tcp6(kClient6, kVip6, sport, 80, kAck)),
              Flows{"tcp [fd00:198::7]:" + std::to_string(sport) + " > [fd00:244::21]:8080"});
    EXPECT_EQ(sent(0, tcp6(kB6, kClient6, 8080, sport, kAck)),
              Flows{"tcp [fd00:203::10]:80 > [fd00:198::7]:" + std::to_string(sport)});
  }
  EXPECT_GE(known(), 4u);
  EXPECT_EQ(returned(), 0u);
}

TEST_F(SteeringTest, PacketsOfAFlowKeepTheirOrder) {
  const std::uint16_t sport = port_of_worker(1);
  datagram(sport);
  for (std::size_t n = 0; n < 60; ++n) {
    group_.inject(0, PacketBuilder()
                         .eth()
                         .ipv4(kClient, "203.0.113.53")
                         .udp(sport, 53)
                         .payload(20 + n)
                         .build());
    if (n % 20 == 19) {
      group_.step(0);  // two bursts by the full procedure, the last by what they left
    }
  }
  group_.settle();
  const auto out = group_.take_sent();
  ASSERT_EQ(out.size(), 60u);
  for (std::size_t n = 1; n < out.size(); ++n) {
    EXPECT_EQ(out[n].bytes.size(), out[n - 1].bytes.size() + 1);
  }
  EXPECT_EQ(known(), 20u);
}

/// Answers of a direct connection belong to no flow of ours: after the first two, which are by what
/// was remembered and come back behind the next, none overtakes another.
TEST_F(SteeringTest, PacketsOfNoConnectionComeBackOnce) {
  const std::uint16_t port = port_of_worker(1);
  for (std::size_t n = 0; n < 24; ++n) {
    group_.inject(
        0, PacketBuilder().eth().ipv4(kB1, kClient).udp(5353, port).payload(20 + n).build());
    group_.step(0);
    group_.step(1);
  }
  group_.settle();
  const auto out = group_.take_to_host();
  ASSERT_EQ(out.size(), 24u);
  for (std::size_t n = 8; n < 24; ++n) {
    EXPECT_EQ(out[n].bytes.size(), out[n - 1].bytes.size() + 1) << n;
  }
  EXPECT_GE(returned(), 1u);
  EXPECT_LE(returned(), 2u);
}

TEST_F(SteeringTest, ASynBringsBackTheMemoryOfAFlowThatCameBack) {
  const std::uint16_t sport = port_of_worker(1);
  sent(0, tcp4(kB1, kClient, 8080, sport, kAck));
  sent(0, tcp4(kB1, kClient, 8080, sport, kAck));
  sent(0, tcp4(kB1, kClient, 8080, sport, kAck));
  ASSERT_EQ(returned(), 1u);
  const std::uint64_t before = known();
  sent(0, tcp4(kB1, kClient, 8080, sport, kAck));
  ASSERT_EQ(known(), before);
  sent(0, tcp4(kB1, kClient, 8080, sport, kSyn));
  sent(0, tcp4(kB1, kClient, 8080, sport, kAck));
  sent(0, tcp4(kB1, kClient, 8080, sport, kAck));
  EXPECT_EQ(known(), before + 1);
}

TEST_F(SteeringTest, APacketWhoseFlowHasEndedComesBackAndOpensItAtItsOwner) {
  const std::uint16_t sport = port_of_worker(1);
  remembered_datagrams(sport);
  group_.run_ms(600'000, 1000);
  ASSERT_EQ(group_.connections(), 0u);
  EXPECT_EQ(datagram(sport), dns_to(kB1, sport));
  EXPECT_EQ(returned(), 1u);
  EXPECT_EQ(group_.count(1, Counter::kConnCreated), 2u);
  const std::uint64_t before = known();
  EXPECT_EQ(datagram(sport), dns_to(kB1, sport));
  EXPECT_EQ(datagram(sport), dns_to(kB1, sport));
  EXPECT_EQ(known(), before);
  EXPECT_EQ(returned(), 1u);
}

TEST_F(SteeringTest, AFlowThatFindsAnotherOnesAnswerIsServedHereOnce) {
  const auto place_of = [&](std::uint16_t port) {
    core::FlowKey4 key;
    key.src = core::parse_address(kClient)->v4();
    key.dst = core::parse_address(kVip)->v4();
    key.sport = core::Be16::from_host(port);
    key.dport = core::Be16::from_host(80);
    key.proto = core::kIpProtoTcp;
    const std::uint32_t hash = core::flow_hash(key, SteppedGroupConfig{}.hash_seed);
    return hash & (0xfffe0000u | 63u);  // 64 sets, 15 bits of the tag
  };
  std::map<std::uint32_t, std::uint16_t> theirs;
  std::map<std::uint32_t, std::uint16_t> ours;
  std::uint32_t place = 0;
  for (std::uint16_t port = 1024; port < 65000 && place == 0; ++port) {
    const bool other = port_of_worker(1, port) == port;
    (other ? theirs : ours)[place_of(port)] = port;
    place = theirs.contains(place_of(port)) && ours.contains(place_of(port)) ? place_of(port) : 0;
  }
  ASSERT_NE(place, 0u);
  const std::string backend = establish(ours[place]);
  remembered(theirs[place]);
  request(theirs[place]);
  ASSERT_EQ(returned(), 0u);
  const Flows expected{"tcp 198.51.100.7:" + std::to_string(ours[place]) + " > " + backend +
                       ":8080"};
  EXPECT_EQ(request(ours[place]), expected);
  EXPECT_EQ(returned(), 1u);
  EXPECT_EQ(request(ours[place]), expected);
  EXPECT_EQ(returned(), 1u);
  for (int n = 0; n < 3; ++n) {
    EXPECT_EQ(request(theirs[place]).size(), 1u);
  }
  EXPECT_EQ(request(ours[place]), expected);
  EXPECT_EQ(returned(), 1u);
}

TEST_F(SteeringTest, AChangedTableIsFollowed) {
  const std::uint16_t sport = port_of_worker(1);
  remembered_datagrams(sport);
  tables_.services["dns"].endpoints = {"10.244.2.22:5353"};
  apply();
  EXPECT_EQ(datagram(sport), dns_to(kB2, sport));
  EXPECT_EQ(datagram(sport), dns_to(kB2, sport));
  EXPECT_GE(known(), 2u);
  tables_.services.erase("dns");
  apply();
  group_.run_ms(600'000, 1000);
  ASSERT_EQ(group_.connections(), 0u);
  EXPECT_TRUE(datagram(sport).empty());
  EXPECT_EQ(group_.take_to_host().size(), 1u);
}

TEST_F(SteeringTest, ASynAsksNobody) {
  const std::uint16_t sport = port_of_worker(1);
  remembered(sport);
  const std::uint64_t before = known();
  EXPECT_EQ(sent(0, tcp4(kClient, kVip, sport, 80, kSyn)).size(), 1u);
  EXPECT_EQ(known(), before);
  EXPECT_EQ(returned(), 0u);
}

TEST_F(SteeringTest, AResetWithSynOpensNothingAndGoesByTheMemory) {
  const std::uint16_t sport = port_of_worker(1);
  remembered(sport);
  const std::uint64_t before = known();
  EXPECT_EQ(sent(0, tcp4(kClient, kVip, sport, 80, kSyn | kRst)).size(), 1u);
  EXPECT_EQ(known(), before + 1);
  EXPECT_EQ(returned(), 0u);
}

TEST_F(SteeringTest, AnUnfinishedChecksumIsCompletedBeforeItsFrameLeaves) {
  auto ports = group_.default_ports();
  ports[0].rx_partial_csum = true;
  group_.publisher().set_ports(ports);
  const std::uint16_t sport = port_of_worker(1);
  const std::string backend = remembered(sport);
  const std::uint64_t before = known();
  EXPECT_EQ(sent(0, PacketBuilder()
                        .eth()
                        .ipv4(kClient, kVip)
                        .tcp(sport, 80, kAck)
                        .payload(33)
                        .partial_checksum()
                        .build()),
            Flows{"tcp 198.51.100.7:" + std::to_string(sport) + " > " + backend + ":8080"});
  EXPECT_EQ(known(), before + 1);
  EXPECT_EQ(group_.count(0, Counter::kRxPartialCsum), 1u);
}

TEST_F(SteeringTest, FramesOfTheHostAskNobody) {
  const std::uint16_t sport = port_of_worker(1);
  remembered(sport);
  const std::uint64_t before = known();
  group_.inject(0, tcp4(kClient, kVip, sport, 80, kAck), 0, pipeline::Origin::kHost);
  group_.settle();
  EXPECT_EQ(group_.take_sent().size(), 1u);
  EXPECT_EQ(known(), before);
}

TEST_F(SteeringTest, WhatAFullRingDoesNotTakeIsDroppedAndCounted) {
  const std::uint16_t sport = port_of_worker(1);
  remembered(sport);
  for (int burst = 0; burst < 3; ++burst) {
    for (int n = 0; n < 64; ++n) {
      group_.inject(0, tcp4(kClient, kVip, sport, 80, kAck));
    }
    group_.step(0);
  }
  group_.settle();
  EXPECT_EQ(group_.take_sent().size(), 128u);
  EXPECT_EQ(count(Counter::kHandoverRingFull), 64u);
  EXPECT_EQ(count(Counter::kHandoverSent), count(Counter::kHandoverReceived));
}

}  // namespace
}  // namespace sluice::test
