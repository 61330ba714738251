// What threads share: the published pointer, the rings, counters, next-hop words, mailboxes. Small
// enough for ThreadSanitizer. Threads end by counts, never by time.

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "dataplane/pipeline/next_hop_places.h"
#include "dataplane/pipeline/snapshot_cell.h"
#include "test/unit/pipeline/fixture.h"

namespace sluice::test {
namespace {

TEST(SpscRingThreads, EveryElementArrivesOnceAndInOrder) {
  constexpr std::uint64_t kElements = 50'000;
  pipeline::SpscRing<std::uint64_t> ring(64);
  std::thread producer([&] {
    for (std::uint64_t n = 0; n < kElements;) {
      if (ring.push(n)) {
        ++n;
      } else {
        std::this_thread::yield();
      }
    }
  });
  std::uint64_t next = 0;
  std::uint64_t out[32];
  while (next < kElements) {
    const std::size_t n = ring.pop(out, 32);
    for (std::size_t i = 0; i < n; ++i) {
      ASSERT_EQ(out[i], next++);
    }
    if (n == 0) {
      std::this_thread::yield();
    }
  }
  producer.join();
  EXPECT_EQ(ring.size(), 0u);
}

struct Value {
  std::uint64_t number;
  std::uint64_t twice;
  std::atomic<int>* alive;
  explicit Value(std::uint64_t n, std::atomic<int>* count) : number(n), twice(2 * n), alive(count) {
    alive->fetch_add(1);
  }
  Value(const Value&) = delete;
  ~Value() { alive->fetch_sub(1); }
};

TEST(SnapshotCellThreads, ReadersSeeWholeValuesAndOldOnesAreFreed) {
  std::atomic<int> alive{0};
  {
    pipeline::SnapshotCell<Value> cell(3);
    std::atomic<bool> stop{false};
    std::vector<std::thread> readers;
    for (std::size_t r = 0; r < 3; ++r) {
      readers.emplace_back([&, r] {
        std::uint64_t last = 0;
        while (!stop.load(std::memory_order_relaxed)) {
          if (const Value* v = cell.load(r); v != nullptr) {
            EXPECT_EQ(v->twice, 2 * v->number);
            EXPECT_GE(v->number, last);
            last = v->number;
          }
          std::this_thread::yield();
        }
        cell.park(r);
      });
    }
    for (std::uint64_t n = 1; n <= 2000; ++n) {
      cell.publish(std::make_unique<Value>(n, &alive));
    }
    stop.store(true);
    for (std::thread& t : readers) {
      t.join();
    }
    EXPECT_EQ(cell.collect(), 1u);
    EXPECT_EQ(alive.load(), 1);
  }
  EXPECT_EQ(alive.load(), 0);
}

TEST(NextHopDirectoryThreads, ReadersFindWholeNames) {
  pipeline::NextHopDirectory hops(512);
  std::atomic<bool> stop{false};
  std::thread reader([&] {
    while (!stop.load(std::memory_order_relaxed)) {
      for (std::uint32_t n = 1; n < 500; n += 17) {
        const core::IpAddress address(core::Be32::from_host(n));
        const auto index = hops.find(pipeline::PortIndex{0}, address);
        if (index != core::NextHopIndex::kNone) {
          EXPECT_EQ(hops.read(index).port(), pipeline::PortIndex{0});
        }
      }
    }
  });
  for (std::uint32_t n = 1; n < 500; ++n) {
    const auto index = hops.add(pipeline::PortIndex{0}, core::IpAddress(core::Be32::from_host(n)));
    hops.write(index, pipeline::NextHopWord::make({}, pipeline::PortIndex{0},
                                                  pipeline::NeighbourState::kReachable));
  }
  stop.store(true);
  reader.join();
}

// A reader that polls a view each turn never sees the word of another address than it asked for,
// while places go from one address to the next.
TEST(NextHopDirectoryThreads, RecycledPlacesAreNeverMistaken) {
  constexpr std::uint32_t kAddresses = 12;
  constexpr std::uint32_t kRounds = 300;
  const auto mac_of = [](std::uint32_t n) {
    return core::MacAddress{
        {2, 0, 0, 0, static_cast<std::uint8_t>(n >> 8), static_cast<std::uint8_t>(n & 0xff)}};
  };
  pipeline::NextHopDirectory hops(16);
  pipeline::NextHopPlaces places(hops);
  pipeline::SnapshotCell<int> cell(1);
  std::uint64_t sequence = cell.publish(std::make_unique<int>(0));
  std::atomic<std::uint32_t> base{0};
  std::atomic<bool> stop{false};
  std::uint64_t seen = 0;
  std::thread reader([&] {
    while (!stop.load(std::memory_order_relaxed)) {
      (void)cell.load(0);
      const std::uint32_t first = base.load(std::memory_order_relaxed);
      for (std::uint32_t n = first; n < first + kAddresses; ++n) {
        const core::IpAddress address(core::Be32::from_host(n));
        const auto index = hops.find(pipeline::PortIndex{0}, address);
        if (index == core::NextHopIndex::kNone) {
          continue;
        }
        const auto word = hops.read(index);
        if (word.state() == pipeline::NeighbourState::kReachable) {
          EXPECT_EQ(word.raw, pipeline::NextHopWord::make(mac_of(n), pipeline::PortIndex{0},
                                                          pipeline::NeighbourState::kReachable)
                                  .raw);
          ++seen;
        }
      }
      std::this_thread::yield();
    }
    cell.park(0);
  });
  for (std::uint32_t round = 0; round < kRounds; ++round) {
    const std::uint32_t first = round * kAddresses;
    base.store(first, std::memory_order_relaxed);
    for (std::uint32_t n = first; n < first + kAddresses; ++n) {
      const core::IpAddress address(core::Be32::from_host(n));
      while (!places.request({pipeline::PortIndex{0}, address, true})) {
        places.turn_over(cell, [&] { return sequence = cell.publish(std::make_unique<int>(0)); });
        std::this_thread::yield();
      }
      EXPECT_TRUE(places.set(pipeline::PortIndex{0}, address, mac_of(n),
                             pipeline::NeighbourState::kReachable));
    }
    for (std::uint32_t n = first; n < first + kAddresses; ++n) {
      places.forget(pipeline::PortIndex{0}, core::IpAddress(core::Be32::from_host(n)));
    }
  }
  stop.store(true);
  reader.join();
  EXPECT_GT(sequence, kRounds / 2);
  EXPECT_GT(seen, 0u);
}

SteppedGroupConfig three_inverted() {
  SteppedGroupConfig config;
  config.workers = 3;
  config.owner_twist = pipeline::OwnerTwist::kInverted;
  config.new_flow_budget = 64;
  return config;
}

/// The group of the other tests, each worker in a thread of its own.
class WorkerThreads : public PipelineTest {
 protected:
  WorkerThreads() : PipelineTest(three_inverted()) {}
};

// Tables are swapped, neighbours written, connections dumped and counters read while three workers
// hand every packet over.
TEST_F(WorkerThreads, SwapsDumpsAndHandoversRunTogether) {
  constexpr std::size_t kPackets = 600;
  for (std::size_t n = 0; n < kPackets; ++n) {
    const auto sport = static_cast<std::uint16_t>(20000 + n / 3);
    group_.inject(n % 3, tcp4(kClient, kVip, sport, 80, n % 3 == 0 ? kSyn : kAck));
  }
  std::atomic<bool> stop{false};
  std::vector<std::thread> workers;
  for (std::size_t w = 0; w < 3; ++w) {
    workers.emplace_back([&, w] { group_.run(w, stop); });
  }
  std::uint64_t rows = 0;
  for (int swap = 0; swap < 100; ++swap) {
    tables_.services["web"].endpoints =
        swap % 2 == 0 ? std::vector<std::string>{"10.244.1.21:8080"}
                      : std::vector<std::string>{"10.244.1.21:8080", "10.244.2.22:8080"};
    apply();
    group_.resolve_requests();
    group_.publisher().collect();
    group_.dump_threads([&](const pipeline::ConnectionRow&) {
      ++rows;
      return true;
    });
    (void)group_.counters();
    (void)group_.workers();
  }
  while (count(Counter::kRxFrames) < kPackets ||
         count(Counter::kHandoverSent) != count(Counter::kHandoverReceived)) {
    std::this_thread::yield();
  }
  stop.store(true);
  for (std::thread& t : workers) {
    t.join();
  }
  for (std::size_t w = 0; w < 3; ++w) {
    group_.drain(w);
  }
  EXPECT_GT(rows, 0u);
  EXPECT_GT(count(Counter::kHandoverSent), 0u);
  EXPECT_EQ(group_.pool().free_count(), group_.pool().size());
}

}  // namespace
}  // namespace sluice::test
