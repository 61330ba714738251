#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "bench/traffic.h"
#include "dataplane/dpdk/core_kind.h"
#include "dataplane/dpdk/rte_hash_index.h"
#include "dataplane/pipeline/view_publisher.h"
#include "dataplane/pipeline/worker.h"

namespace sluice::bench {

/// PacketIo without devices: receives what it is given, keeps pointers to what is sent, as a driver
/// with buffered transmission would. Thread: one.
class BenchIo {
 public:
  void offer(const pipeline::Packet* packets, std::uint32_t n) noexcept {
    offered_ = packets;
    offered_size_ = n;
  }
  [[nodiscard]] std::uint64_t sent() const noexcept { return sent_; }
  [[nodiscard]] std::uint64_t lost() const noexcept { return lost_; }
  /// Frames of the last flush.
  [[nodiscard]] std::uint32_t last_size() const noexcept { return flushed_; }
  [[nodiscard]] const pipeline::Packet& last(std::uint32_t i) const noexcept { return out_[i]; }

  std::size_t receive(pipeline::Packet* out, std::size_t n) noexcept {
    const std::size_t take = offered_size_ < n ? offered_size_ : n;
    std::copy_n(offered_, take, out);
    offered_size_ = 0;
    return take;
  }
  std::size_t receive_from_host(pipeline::Packet*, std::size_t) noexcept { return 0; }
  void transmit(pipeline::PortIndex, const pipeline::Packet& packet) noexcept {
    out_[queued_++ % out_.size()] = packet;
  }
  std::size_t flush() noexcept {
    sent_ += queued_;
    flushed_ = queued_;
    queued_ = 0;
    return 0;
  }
  bool to_host(const pipeline::Packet&) noexcept {
    ++lost_;
    return true;
  }
  void drop(const pipeline::Packet&) noexcept { ++lost_; }
  bool allocate(pipeline::PortIndex, pipeline::Packet&) noexcept { return false; }
  bool resize(pipeline::Packet&, std::size_t) noexcept { return false; }
  bool prepend(pipeline::Packet& packet, std::size_t n) noexcept {
    packet.data -= n;
    packet.total += static_cast<std::uint32_t>(n);
    packet.contiguous += static_cast<std::uint32_t>(n);
    return true;
  }

 private:
  const pipeline::Packet* offered_ = nullptr;
  std::uint32_t offered_size_ = 0;
  std::uint32_t queued_ = 0;
  std::uint32_t flushed_ = 0;
  std::uint64_t sent_ = 0;
  std::uint64_t lost_ = 0;
  std::array<pipeline::Packet, 128> out_{};
};
static_assert(pipeline::PacketIo<BenchIo>);

struct BenchClock {
  const std::uint64_t* now;
  std::uint64_t now_ns() noexcept { return *now; }
};

struct RigConfig {
  static constexpr std::uint64_t kNsPerPoll = 20'000;  ///< 64 packets at 3.2 million a second

  core::Family family = core::Family::kIpv4;
  std::uint32_t connections = 1000;
  core::Protocol protocol = core::Protocol::kTcp;
  bool fullnat = false;      ///< a Service that masquerades external traffic
  bool ipip = false;         ///< to every endpoint through a tunnel; only clients send
  bool dr = false;           ///< endpoints on the link, packets unchanged; only clients send
  core::SchedulerKind scheduler = core::SchedulerKind::kRandom;
  bool affinity = false;     ///< a Service that keeps clients at their endpoint
  bool handed_over = false;  ///< a second worker owns every flow, the first receives every frame
  bool shared = false;       ///< a second worker owns about half of the flows
  bool limits_new_flows = false;  ///< as sluiced does in an overload: here every burst is full
  std::uint64_t ns_per_poll = kNsPerPoll;
  core::ConnTimeouts timeouts{};
  pipeline::MemoryPace pace = dpdk::memory_pace(dpdk::this_core());
};

/// Workers as sluiced builds them, over rte_hash and huge pages, with one Service of 64 endpoints,
/// one port and a gateway whose neighbour is resolved. Thread: one.
class Rig {
 public:
  using Worker = pipeline::Worker<BenchIo, dpdk::RteHashIndex<core::FlowKey4>,
                                  dpdk::RteHashIndex<core::FlowKey6>, BenchClock>;
  static constexpr std::uint32_t kBackends = 64;
  static constexpr std::uint32_t kSnatAddresses = 8;

  /// Errors: too little memory.
  [[nodiscard]] static core::Result<std::unique_ptr<Rig>> create(const RigConfig& config);

  /// One burst through the worker that receives and, if there is one, the owner.
  void poll(const pipeline::Packet* packets, std::uint32_t n) noexcept {
    now_ns_ += config_.ns_per_poll;
    members_[0]->io.offer(packets, n);
    members_[0]->worker->poll_once();
    if (members_.size() > 1) {
      members_[1]->worker->poll_once();
    }
  }
  /// As poll(), with only the first `handed` packets at the wrong worker.
  void poll_split(const pipeline::Packet* packets, std::uint32_t n, std::uint32_t handed) noexcept {
    now_ns_ += config_.ns_per_poll;
    members_.front()->io.offer(packets, handed);
    members_.front()->worker->poll_once();
    members_.back()->io.offer(packets + handed, n - handed);
    members_.back()->worker->poll_once();
  }
  /// One burst through worker `w` alone.
  void poll_at(std::size_t w, const pipeline::Packet* packets, std::uint32_t n) noexcept {
    now_ns_ += config_.ns_per_poll;
    members_[w]->io.offer(packets, n);
    members_[w]->worker->poll_once();
  }
  /// The worker a client's flow belongs to.
  [[nodiscard]] std::size_t owner_of(const core::IpAddress& client, core::Be16 port) const {
    return owners_.of_client(client, port);
  }
  /// The last endpoint leaves the Service, or comes back. Errors: none is expected.
  [[nodiscard]] core::Result<void> change_endpoint();
  /// Where frames leave.
  [[nodiscard]] const BenchIo& out() const noexcept { return members_.back()->io; }
  [[nodiscard]] const BenchIo& out_of(std::size_t w) const noexcept { return members_[w]->io; }
  [[nodiscard]] std::uint64_t connections() const noexcept {
    const Worker& w = *members_.back()->worker;
    return std::uint64_t{w.conns4().size()} + w.conns6().size();
  }
  /// Names and values of the counters that are not zero, for a message.
  [[nodiscard]] std::string counters() const;

 private:
  struct Member {
    BenchIo io;
    pipeline::CounterBlock counters;
    pipeline::NeighbourRequestRing requests{256};
    pipeline::DumpMailbox dumps;
    std::unique_ptr<dpdk::EntryMemory> memory4;
    std::unique_ptr<dpdk::EntryMemory> memory6;
    std::unique_ptr<dpdk::EntryMemory> steering;  ///< null for one worker
    std::unique_ptr<Worker> worker;
  };
  explicit Rig(const RigConfig& config);
  core::Result<void> apply_table();
  core::Result<void> add_member(std::size_t index, std::size_t workers);
  core::Result<void> add_steering(Member& member, std::size_t workers, const std::string& name);
  void add_neighbour(const core::IpAddress& at);

  RigConfig config_;
  core::TablePtr table_;
  std::uint32_t endpoints_ = kBackends;
  std::uint64_t now_ns_ = 1'000'000'000'000;
  pipeline::ConnectionCounts counts_;
  pipeline::ViewPublisher publisher_;
  pipeline::HandoverRings rings_;
  pipeline::OwnerMap owners_;
  pipeline::NextHopDirectory hops_{1024};
  std::vector<std::unique_ptr<Member>> members_;
};

}  // namespace sluice::bench
