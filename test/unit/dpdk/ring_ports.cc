#include "test/unit/dpdk/ring_ports.h"

#include <cstdio>
#include <cstring>

#include <sys/wait.h>
#include <unistd.h>

#include <rte_eth_ring.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>
#include <rte_ring.h>

#include <gtest/gtest.h>

namespace sluice::dpdk::test {
namespace {

constexpr unsigned kRingSize = 1024;

rte_mbuf* make_segment(rte_mempool* pool, const std::uint8_t* data, std::size_t size) {
  rte_mbuf* segment = rte_pktmbuf_alloc(pool);
  std::memcpy(rte_pktmbuf_append(segment, static_cast<std::uint16_t>(size)), data, size);
  return segment;
}

}  // namespace

void in_child(const std::function<void()>& body) {
  std::fflush(nullptr);
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    body();
    std::fflush(nullptr);
    _exit(testing::Test::HasFailure() ? 1 : 0);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << "the child says why";
}

RingPort::RingPort(const std::string& name, std::uint16_t queues) : name_(name) {
  for (std::uint16_t q = 0; q < queues; ++q) {
    const std::string number = name + std::to_string(q);
    receive_.push_back(rte_ring_create(("rx" + number).c_str(), kRingSize, SOCKET_ID_ANY, 0));
    transmit_.push_back(rte_ring_create(("tx" + number).c_str(), kRingSize, SOCKET_ID_ANY, 0));
  }
  EXPECT_GE(rte_eth_from_rings(name.c_str(), receive_.data(), queues, transmit_.data(), queues, 0),
            0);
}

RingPort::~RingPort() = default;  // the rings go with the EAL's memory

void RingPort::inject(std::uint16_t queue, const sluice::test::Bytes& frame, rte_mempool* pool,
                      std::size_t segments) {
  rte_mbuf* head = nullptr;
  const std::size_t part = frame.size() / segments;
  for (std::size_t s = 0; s < segments; ++s) {
    const std::size_t begin = s * part;
    const std::size_t size = s + 1 == segments ? frame.size() - begin : part;
    rte_mbuf* segment = make_segment(pool, frame.data() + begin, size);
    if (head == nullptr) {
      head = segment;
    } else {
      ASSERT_EQ(rte_pktmbuf_chain(head, segment), 0);
    }
  }
  ASSERT_EQ(rte_ring_enqueue(receive_[queue], head), 0);
}

std::vector<sluice::test::Bytes> RingPort::take_sent() {
  std::vector<sluice::test::Bytes> all;
  for (rte_ring* ring : transmit_) {
    void* object = nullptr;
    while (rte_ring_dequeue(ring, &object) == 0) {
      auto* frame = static_cast<rte_mbuf*>(object);
      EXPECT_EQ(frame->nb_segs, 1);
      EXPECT_EQ(frame->pkt_len, frame->data_len);
      const auto* data = rte_pktmbuf_mtod(frame, const std::uint8_t*);
      all.emplace_back(data, data + frame->data_len);
      rte_pktmbuf_free(frame);
    }
  }
  return all;
}

void RingPort::fill_transmit_queues(rte_mempool* pool, std::size_t room) {
  for (rte_ring* ring : transmit_) {
    while (rte_ring_free_count(ring) > room) {
      ASSERT_EQ(rte_ring_enqueue(ring, rte_pktmbuf_alloc(pool)), 0);
    }
  }
}

RingGroup::RingGroup(std::uint32_t workers, std::size_t ports, bool inverted) {
  EalSettings eal;
  eal.program = "test_dpdk";
  // Workers beyond the cores: they are stepped, so the EAL needs no lcores for them.
  auto started = Eal::start(eal, MemoryChoice{false, 256, ""}, {});
  EXPECT_TRUE(started) << started.error().message;
  GroupSettings settings;
  for (std::size_t p = 0; p < ports; ++p) {
    const std::string name = "p" + std::to_string(p);
    wires.push_back(std::make_unique<RingPort>(name, static_cast<std::uint16_t>(workers)));
    PortSettings port;
    port.name = name;
    port.target = wires.back()->device();
    settings.ports.push_back(port);
  }
  settings.workers = workers;
  settings.mbufs = 16383;
  settings.connections = 2048;
  settings.backends = 1024;
  settings.next_hops = 64;
  settings.owner_twist = inverted ? pipeline::OwnerTwist::kInverted : pipeline::OwnerTwist::kNone;
  settings.taps = false;
  auto made = WorkerGroup::create_stepped(std::move(settings), std::move(*started));
  EXPECT_TRUE(made) << made.error().message;
  group = std::move(*made);
  pool = group->pool_for_test().get();
  std::vector<pipeline::Route> routes = {
      {core::Cidr(core::IpAddress{}, 0), pipeline::PortIndex{0}, std::nullopt},
      {core::Cidr(core::IpAddress(core::Ipv6Address{}), 0), pipeline::PortIndex{0}, std::nullopt}};
  group->set_routes(std::move(routes));
}

RingGroup::~RingGroup() = default;

void RingGroup::settle() {
  for (bool busy = true; busy;) {
    busy = false;
    for (std::uint32_t w = 0; w < group->workers().size(); ++w) {
      busy = group->step_worker_for_test(w) || busy;
    }
    std::vector<pipeline::NeighbourRequest> requests;
    group->take_requests(requests);
    for (const auto& request : requests) {
      group->set_neighbour(request.port, request.address, *core::parse_mac(sluice::test::kPeerMac),
                           pipeline::NeighbourState::kReachable);
      busy = true;
    }
    // What waits for a neighbour is looked at once a tick of the real clock.
    busy = busy || counter("held_neighbour") != 0;
  }
}

std::uint64_t RingGroup::counter(std::string_view name) const {
  std::uint64_t sum = 0;
  for (const auto& value : group->counters()) {
    for (const std::uint64_t one : value.per_worker) {
      sum += value.name == name ? one : 0;
    }
  }
  return sum;
}

}  // namespace sluice::dpdk::test
