#include "dataplane/dpdk/tap.h"

#include <chrono>
#include <cstdlib>
#include <cstring>

#include <net/if.h>
#include <netpacket/packet.h>
#include <poll.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <rte_mbuf.h>

#include <gtest/gtest.h>

#include "dataplane/dpdk/eal.h"
#include "dataplane/dpdk/netdev.h"
#include "dataplane/dpdk/pool.h"
#include "test/support/packet_builder.h"
#include "test/unit/dpdk/ring_ports.h"

namespace sluice::dpdk::test {
namespace {

using sluice::test::Bytes;
using sluice::test::PacketBuilder;

constexpr const char* kMac = "02:00:00:00:00:42";

/// A packet socket on the tap: stands for the host's stack.
class HostSocket {
 public:
  explicit HostSocket(const std::string& interface)
      : fd_(socket(AF_PACKET, SOCK_RAW, htons(0x88b5))) {  // a local experimental EtherType
    address_.sll_family = AF_PACKET;
    address_.sll_protocol = htons(0x88b5);
    address_.sll_ifindex = static_cast<int>(if_nametoindex(interface.c_str()));
    EXPECT_EQ(bind(fd_.get(), reinterpret_cast<sockaddr*>(&address_), sizeof(address_)), 0);
  }
  void send(const Bytes& frame) {
    EXPECT_EQ(sendto(fd_.get(), frame.data(), frame.size(), 0,
                     reinterpret_cast<sockaddr*>(&address_), sizeof(address_)),
              static_cast<ssize_t>(frame.size()));
  }
  Bytes receive() {
    pollfd polled{fd_.get(), POLLIN, 0};
    if (poll(&polled, 1, 5000) != 1) {
      return {};
    }
    Bytes frame(2048);
    const ssize_t size = recv(fd_.get(), frame.data(), frame.size(), 0);
    frame.resize(size > 0 ? static_cast<std::size_t>(size) : 0);
    return frame;
  }

 private:
  UniqueFd fd_;
  sockaddr_ll address_ = {};
};

/// A tap, its thread and one worker's rings, in a network namespace of the child's own.
struct TapWorld {
  TapWorld() {
    EXPECT_EQ(unshare(CLONE_NEWNET), 0) << "run as root";
    auto started = Eal::start({}, MemoryChoice{false, 128, ""}, {});
    EXPECT_TRUE(started);
    eal = std::move(*started);
    pool = std::make_unique<MbufPool>(std::move(*MbufPool::create(4095, 1518, false)));
    auto made = Tap::create("slc-t", 1400);
    EXPECT_TRUE(made) << made.error().message;
    tap = std::make_unique<Tap>(std::move(*made));
    EXPECT_TRUE(tap->set_mac(*core::parse_mac(kMac)));
    EXPECT_EQ(std::system("sysctl -qw net.ipv6.conf.slc-t.disable_ipv6=1"), 0);
    EXPECT_TRUE(set_up("slc-t"));
    thread = std::make_unique<TapThread>(std::vector<const Tap*>{tap.get()}, rings, pool->get());
  }
  std::unique_ptr<Eal> eal;
  std::unique_ptr<MbufPool> pool;
  std::unique_ptr<Tap> tap;
  HostRings rings{1, 1, 8};
  std::unique_ptr<TapThread> thread;
};

Bytes frame(std::size_t size) {
  return PacketBuilder().eth("02:00:00:00:00:01", kMac).ether_type(0x88b5).payload(size).build();
}

TEST(Tap, HasThePortsMacAndMtu) {
  in_child([] {
    const TapWorld world;

    const auto info = read_netdev("slc-t");

    ASSERT_TRUE(info);
    EXPECT_EQ(core::to_string(info->mac), kMac);
    EXPECT_EQ(info->mtu, 1400);
  });
}

TEST(Tap, RefusesToBeMadeTwice) {
  in_child([] {
    const TapWorld world;

    const auto second = Tap::create("slc-t", 1500);

    ASSERT_FALSE(second);
    EXPECT_EQ(second.error().message,
              "tap slc-t: it exists, another sluiced may serve this port: Device or resource busy");
  });
}

TEST(Tap, CarriesFramesToTheHost) {
  in_child([] {
    TapWorld world;
    HostSocket host("slc-t");
    const Bytes sent = frame(100);
    rte_mbuf* buffer = rte_pktmbuf_alloc(world.pool->get());
    std::memcpy(rte_pktmbuf_append(buffer, static_cast<std::uint16_t>(sent.size())), sent.data(),
                sent.size());
    ASSERT_TRUE(world.rings.to_host(0, 0).push(buffer));

    EXPECT_EQ(world.thread->step(), 1u);

    EXPECT_EQ(host.receive(), sent);
    EXPECT_EQ(world.rings.counters(0).written.load(), 1u);
    EXPECT_EQ(world.pool->in_use(), 1u) << "but the one kept for the next read";
  });
}

TEST(Tap, CarriesFramesOfTheHostToAWorker) {
  in_child([] {
    TapWorld world;
    HostSocket host("slc-t");
    const Bytes sent = frame(100);

    host.send(sent);
    ASSERT_EQ(world.thread->step(), 1u);

    rte_mbuf* got = nullptr;
    ASSERT_EQ(world.rings.from_host(0).pop(&got, 1), 1u);
    const auto* data = rte_pktmbuf_mtod(got, const std::uint8_t*);
    EXPECT_EQ(Bytes(data, data + got->data_len), sent);
    EXPECT_EQ(got->port, 0);
    rte_pktmbuf_free(got);
  });
}

// F34: what does not fit is dropped and counted, nothing else is lost and no buffer either.
TEST(Tap, DropsAndCountsWhatAWorkerHasNoRoomFor) {
  in_child([] {
    TapWorld world;
    HostSocket host("slc-t");
    for (int i = 0; i < 10; ++i) {
      host.send(frame(64));
    }

    while (world.thread->step() != 0) {
    }

    EXPECT_EQ(world.rings.counters(0).read.load(), 8u);
    EXPECT_EQ(world.rings.counters(0).ring_full.load(), 2u);
    world.rings.drain();
    world.thread->stop();
    EXPECT_EQ(world.pool->in_use(), 0u);
  });
}

// poll() says at once and for ever that a deleted tap has an error.
TEST(Tap, DoesNotSpinAfterItWasDeleted) {
  in_child([] {
    TapWorld world;
    ASSERT_EQ(std::system("ip link del slc-t"), 0);
    const auto began = std::chrono::steady_clock::now();

    world.thread->wait(1'000'000);

    EXPECT_GE(std::chrono::steady_clock::now() - began, std::chrono::milliseconds(1));
    EXPECT_EQ(world.thread->step(), 0u);
  });
}

TEST(Tap, CarriesFramesAgainAfterItWasDeletedAndMadeAnew) {
  in_child([] {
    TapWorld world;
    ASSERT_EQ(std::system("ip link del slc-t"), 0);
    ASSERT_EQ(world.thread->step(), 0u);

    auto fresh = Tap::create("slc-t", 1400);
    ASSERT_TRUE(fresh) << fresh.error().message;
    ASSERT_TRUE(world.tap->replace_by(std::move(*fresh)));
    ASSERT_EQ(std::system("sysctl -qw net.ipv6.conf.slc-t.disable_ipv6=1"), 0);
    ASSERT_TRUE(set_up("slc-t"));
    HostSocket host("slc-t");
    host.send(frame(100));

    EXPECT_EQ(world.thread->step(), 1u);
    world.rings.drain();
  });
}

TEST(Tap, MovesFramesByItsOwnThread) {
  in_child([] {
    TapWorld world;
    HostSocket host("slc-t");
    const Bytes sent = frame(200);
    rte_mbuf* buffer = rte_pktmbuf_alloc(world.pool->get());
    std::memcpy(rte_pktmbuf_append(buffer, static_cast<std::uint16_t>(sent.size())), sent.data(),
                sent.size());
    world.thread->start();

    ASSERT_TRUE(world.rings.to_host(0, 0).push(buffer));

    EXPECT_EQ(host.receive(), sent);
    world.thread->stop();
    EXPECT_EQ(world.pool->in_use(), 0u);
  });
}

}  // namespace
}  // namespace sluice::dpdk::test
