// The same Worker over net_ring with chosen queues, stepped from one thread: what goes in and comes
// out is compared with the in-memory port of the pipeline's own tests.

#include <algorithm>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rte_ethdev.h>

#include "test/support/stepped_group.h"
#include "test/support/table_maker.h"
#include "test/unit/dpdk/ring_ports.h"

namespace sluice::dpdk::test {
namespace {

using sluice::test::Bytes;
using sluice::test::kAck;
using sluice::test::kPeerMac;
using sluice::test::kSyn;
using sluice::test::PacketBuilder;
using sluice::test::SteppedGroup;
using sluice::test::SteppedGroupConfig;
using sluice::test::TableMaker;
using testing::ElementsAre;
using testing::UnorderedElementsAreArray;

constexpr const char* kVip = "203.0.113.10";
constexpr const char* kBackend = "10.244.1.21";

TableMaker service() {
  TableMaker maker;
  maker.services["ns/web"] = {.vip = kVip, .endpoints = {"10.244.1.21:8080"}};
  return maker;
}

std::string mac_of(const WorkerGroup& group, std::size_t port = 0) {
  return core::to_string(group.port_for_test(port).mac());
}

Bytes request(const std::string& mac, std::uint16_t sport, std::uint8_t flags) {
  return PacketBuilder()
      .eth(kPeerMac, mac)
      .ipv4("198.51.100.7", kVip)
      .tcp(sport, 80, flags)
      .payload(flags == kSyn ? 0 : 100)
      .build();
}

Bytes reply(const std::string& mac, std::uint16_t client_port, std::uint8_t flags) {
  return PacketBuilder()
      .eth(kPeerMac, mac)
      .ipv4(kBackend, "198.51.100.7")
      .tcp(8080, client_port, flags)
      .payload(50)
      .build();
}

/// Frames without their Ethernet source: the port's MAC differs between the two worlds.
std::vector<Bytes> without_source(std::vector<Bytes> frames) {
  for (Bytes& frame : frames) {
    std::fill(frame.begin() + 6, frame.begin() + 12, std::uint8_t{0});
  }
  return frames;
}

TEST(RingWorker, SendsWhatTheInMemoryPortSends) {
  in_child([] {
    TableMaker maker = service();
    RingGroup rings(2);
    ASSERT_TRUE(rings.group->apply(maker.make()));
    SteppedGroupConfig config;
    config.workers = 2;
    SteppedGroup memory(config);
    TableMaker other = service();
    ASSERT_TRUE(memory.apply(other.make()));
    const std::string ring_mac = mac_of(*rings.group);
    const std::string memory_mac = core::to_string(memory.default_ports()[0].mac);
    std::vector<Bytes> by_ring;
    std::vector<Bytes> by_memory;
    const auto both = [&](std::uint16_t queue, const auto& make) {
      rings.wires[0]->inject(queue, make(ring_mac), rings.pool);
      rings.settle();
      for (Bytes& frame : rings.wires[0]->take_sent()) {
        by_ring.push_back(std::move(frame));
      }
      for (auto& frame : memory.exchange(queue, make(memory_mac))) {
        by_memory.push_back(std::move(frame.bytes));
      }
    };

    for (std::uint16_t i = 0; i < 64; ++i) {
      const auto port = static_cast<std::uint16_t>(40000 + i);
      const auto queue = static_cast<std::uint16_t>(i % 2);
      both(queue, [&](const std::string& mac) { return request(mac, port, kSyn); });
      both(static_cast<std::uint16_t>(1 - queue), [&](const std::string& mac) {
        return reply(mac, port, static_cast<std::uint8_t>(kSyn | kAck));
      });
      both(queue, [&](const std::string& mac) { return request(mac, port, kAck); });
    }

    EXPECT_EQ(by_ring.size(), 192u);
    EXPECT_EQ(without_source(by_ring), without_source(by_memory));
    for (const char* name : {"rx_frames", "tx_frames", "conn_created", "conn_hits", "conn_misses",
                             "handover_sent", "handover_received"}) {
      const auto values = memory.counters();
      const auto at = std::find_if(values.begin(), values.end(),
                                   [&](const auto& value) { return value.name == name; });
      ASSERT_NE(at, values.end());
      EXPECT_EQ(rings.counter(name), at->per_worker[0] + at->per_worker[1]) << name;
    }
    EXPECT_TRUE(rings.group->balance().holds());
  });
}

// Status told that dr and ipip are not built in, long after they were.
TEST(RingWorker, EveryForwardingModeIsSupported) {
  in_child([] {
    RingGroup rings(1);
    for (const auto mode : rings.group->capabilities().modes) {
      TableMaker maker;
      maker.services["ns/web"] = {.vip = kVip, .endpoints = {"10.244.1.21:80"}, .mode = mode};
      const auto report = rings.group->apply(maker.make());
      ASSERT_TRUE(report);
      EXPECT_TRUE(report->unsupported.empty()) << static_cast<int>(mode);
    }
  });
}

// F1: replies arrive at the queue a hash of another tuple would pick.
TEST(RingWorker, EveryPacketIsHandedOverWhenItArrivesAtTheWrongQueue) {
  in_child([] {
    TableMaker maker = service();
    RingGroup rings(4);
    ASSERT_TRUE(rings.group->apply(maker.make()));
    const std::string mac = mac_of(*rings.group);
    const pipeline::OwnerMap owners([] {
      pipeline::OwnerMap::Config config;
      config.workers = 4;
      return config;
    }());

    for (std::uint16_t i = 0; i < 64; ++i) {
      const auto port = static_cast<std::uint16_t>(30000 + i);
      const auto owner = owners.of_client(*core::parse_address("198.51.100.7"), core::Be16::from_host(port));
      const auto wrong = static_cast<std::uint16_t>((owner + 1) % 4);
      rings.wires[0]->inject(wrong, request(mac, port, kSyn), rings.pool);
      rings.settle();
      rings.wires[0]->inject(wrong, reply(mac, port, static_cast<std::uint8_t>(kSyn | kAck)),
                             rings.pool);
      rings.settle();
    }

    EXPECT_EQ(rings.wires[0]->take_sent().size(), 128u);
    EXPECT_EQ(rings.counter("handover_sent"), 128u);
    EXPECT_EQ(rings.counter("handover_received"), 128u);
    EXPECT_EQ(rings.counter("conn_created"), 64u);
    EXPECT_TRUE(rings.group->balance().holds());
  });
}

// F32: chains of any layout leave as one contiguous segment.
TEST(RingWorker, LinearisesChainsOfSegments) {
  in_child([] {
    TableMaker maker = service();
    RingGroup rings(1);
    ASSERT_TRUE(rings.group->apply(maker.make()));
    const std::string mac = mac_of(*rings.group);

    for (const std::size_t segments : {1, 2, 3, 7}) {
      for (const std::uint8_t flags : {kSyn, kAck}) {
        rings.wires[0]->inject(0, request(mac, static_cast<std::uint16_t>(20000 + segments), flags),
                               rings.pool, segments);
        rings.settle();
      }
    }

    EXPECT_EQ(rings.wires[0]->take_sent().size(), 8u);  // take_sent() checks each has one segment
    EXPECT_EQ(rings.counter("io_rx_not_contiguous"), 0u);
  });
}

// F6: what the driver does not take is freed and counted; afterwards everything passes again.
TEST(RingWorker, FreesWhatATransmitQueueDoesNotTake) {
  in_child([] {
    TableMaker maker = service();
    RingGroup rings(1);
    ASSERT_TRUE(rings.group->apply(maker.make()));
    const std::string mac = mac_of(*rings.group);
    rings.wires[0]->inject(0, request(mac, 1024, kSyn), rings.pool);
    rings.settle();
    (void)rings.wires[0]->take_sent();
    const std::uint32_t before = rings.group->pool_for_test().in_use();
    rings.wires[0]->fill_transmit_queues(rings.pool, 3);

    for (int i = 0; i < 20; ++i) {
      rings.wires[0]->inject(0, request(mac, 1024, kAck), rings.pool);
    }
    rings.settle();

    EXPECT_EQ(rings.counter("io_tx_refused"), 17u);
    EXPECT_EQ(rings.counter("tx_dropped"), 17u);
    EXPECT_TRUE(rings.group->balance().holds());
    (void)rings.wires[0]->take_sent();
    EXPECT_EQ(rings.group->pool_for_test().in_use(), before);
    for (int i = 0; i < 20; ++i) {
      rings.wires[0]->inject(0, request(mac, 1024, kAck), rings.pool);
    }
    rings.settle();
    EXPECT_EQ(rings.wires[0]->take_sent().size(), 20u);
  });
}

TEST(RingWorker, GivesEveryBufferBackAtTheEnd) {
  in_child([] {
    TableMaker maker = service();
    RingGroup rings(2, 1, true);
    ASSERT_TRUE(rings.group->apply(maker.make()));
    const std::string mac = mac_of(*rings.group);
    for (std::uint16_t i = 0; i < 100; ++i) {
      rings.wires[0]->inject(i % 2, request(mac, static_cast<std::uint16_t>(1000 + i), kSyn),
                             rings.pool);
    }
    rings.group->step_worker_for_test(0);  // leaves frames on rings and in wait for the neighbour
    rings.group->step_worker_for_test(1);
    rings.settle();
    (void)rings.wires[0]->take_sent();

    const auto stopped = rings.group->stop();

    EXPECT_TRUE(stopped) << stopped.error().message;
    EXPECT_EQ(rings.group->pool_for_test().in_use(), 0u);
  });
}

TEST(RingWorker, TellsOfALeakedBuffer) {
  in_child([] {
    RingGroup rings(1);
    rings.wires[0]->inject(0, request(mac_of(*rings.group), 1000, kSyn), rings.pool);

    const auto stopped = rings.group->stop();  // a frame nobody has received stays in the ring

    ASSERT_FALSE(stopped);
    EXPECT_EQ(stopped.error().message, "leaked 1 packet buffers of 16383");
  });
}

eth_rx_burst_t receive_all = nullptr;
std::uint16_t receive_32(void* queue, rte_mbuf** frames, std::uint16_t n) {
  return receive_all(queue, frames, std::min<std::uint16_t>(n, 32));
}

// Overload is told by full bursts.
TEST(RingWorker, BurstsAreFullWithADriverThatGivesHalfOfWhatItIsAskedFor) {
  in_child([] {
    TableMaker maker = service();
    RingGroup rings(1);
    ASSERT_TRUE(rings.group->apply(maker.make()));
    std::uint16_t device = 0;
    ASSERT_EQ(rte_eth_dev_get_port_by_name(rings.wires[0]->device().c_str(), &device), 0);
    receive_all = std::exchange(rte_eth_fp_ops[device].rx_pkt_burst, receive_32);
    for (std::uint16_t n = 0; n < 2 * pipeline::kBurst; ++n) {
      rings.wires[0]->inject(0, request(mac_of(*rings.group), static_cast<std::uint16_t>(1000 + n), kSyn),
                             rings.pool);
    }
    for (std::uint64_t polls = 1; polls <= 2; ++polls) {
      rings.group->step_worker_for_test(0);
      EXPECT_EQ(rings.counter("rx_frames"), polls * pipeline::kBurst);
      EXPECT_EQ(rings.counter("rx_full_bursts"), polls);
    }
    rings.group->step_worker_for_test(0);
    EXPECT_EQ(rings.counter("rx_full_bursts"), 2u);
  });
}

// F94: a device with fewer queues than workers is refused, with the numbers.
TEST(Ports, RefuseMoreWorkersThanTheDeviceHasQueues) {
  in_child([] {
    auto eal = Eal::start({}, MemoryChoice{false, 256, ""}, {});
    ASSERT_TRUE(eal);
    const RingPort wire("few", 1);
    GroupSettings settings;
    PortSettings port;
    port.name = "net0";
    port.target = wire.device();
    settings.ports = {port};
    settings.workers = 2;
    settings.mbufs = 8191;
    settings.connections = 1024;
    settings.taps = false;

    const auto group = WorkerGroup::create_stepped(std::move(settings), std::move(*eal));

    ASSERT_FALSE(group);
    EXPECT_EQ(group.error().message, "port net0: 2 queues asked, the device has 1");
  });
}

TEST(Ports, NameAnUnknownVdev) {
  in_child([] {
    auto eal = Eal::start({}, MemoryChoice{false, 128, ""}, {});
    ASSERT_TRUE(eal);

    const auto added = (*eal)->add_device("net_nosuchdriver0");

    ASSERT_FALSE(added);
    EXPECT_EQ(added.error().message,
              "port device 'net_nosuchdriver0': no such device or driver");
  });
}

TEST(Pool, NamesTheNumberWhenMemoryIsTooLittle) {
  in_child([] {
    auto eal = Eal::start({}, MemoryChoice{false, 64, ""}, {});
    ASSERT_TRUE(eal);

    const auto pool = MbufPool::create(65535, 1518, false);

    ASSERT_FALSE(pool);
    EXPECT_THAT(pool.error().message, testing::HasSubstr("packet pool of 65535 frames (152 MiB)"));
  });
}

}  // namespace
}  // namespace sluice::dpdk::test
