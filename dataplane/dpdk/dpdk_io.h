#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <rte_ethdev.h>
#include <rte_mbuf.h>
#include <rte_prefetch.h>

#include "dataplane/dpdk/host_rings.h"
#include "dataplane/dpdk/reply_steering.h"
#include "dataplane/dpdk/settings.h"
#include "dataplane/pipeline/packet.h"

namespace sluice::dpdk {

/// One port as one worker uses it.
struct IoPort {
  pipeline::PortIndex index = pipeline::PortIndex::kNone;
  std::vector<QueueRef> receive;    ///< queues this worker polls
  QueueRef transmit;                ///< queue this worker sends on; shared with no other worker
  std::uint32_t max_frame = 1518;   ///< longer frames are dropped, counted
  const ReplySteering* steering = nullptr;  ///< set where the port's hash and key are known
  std::uint16_t queue = 0;                  ///< of this worker, for `steering`
};

/// What DpdkIo itself lost. Thread: written by the owner worker, read by any.
struct IoCounters {
  std::atomic<std::uint64_t> rx_not_contiguous{0};  ///< segments that do not fit one buffer
  std::atomic<std::uint64_t> tx_oversize{0};        ///< longer than the port carries
  std::atomic<std::uint64_t> tx_refused{0};         ///< the driver's queue did not take it (F6)
};

// Theory of operation
//
// The mbuf is the frame; Packet is a view of it. prepend() and resize() alone change where a frame
// begins and ends, and they make the mbuf say so at once: the frames that leave as they came, nearly
// all, are sent without a look at it.
//
// Every frame has one segment: chains are linearised at receive, so
// nothing downstream, and no driver that only sends first segments (net_af_xdp), ever meets one
// (F32). Sends are gathered per port; what a driver does not take is freed at once and counted, it
// is never kept (F6).

/// The I/O layer of one worker over ethdevs. Implements pipeline::PacketIo.
/// Thread: the owner worker only, except counters().
class DpdkIo {
 public:
  /// @param rings  borrowed; outlives the object.
  DpdkIo(std::uint32_t worker, const std::vector<IoPort>& ports, rte_mempool* pool,
         HostRings& rings);
  DpdkIo(const DpdkIo&) = delete;
  DpdkIo& operator=(const DpdkIo&) = delete;

  std::size_t receive(pipeline::Packet* out, std::size_t n) noexcept {
    std::size_t count = 0;
    full_burst_ = false;
    for (std::size_t i = 0; i < receive_.size() && count < n; ++i) {
      count += receive_queue(receive_[next_], out + count, n - count);
      next_ = next_ + 1 == receive_.size() ? 0 : next_ + 1;
    }
    full_burst_ = count == n;
    return count;
  }
  /// True when the last receive() returned all that was asked for.
  [[nodiscard]] bool full_burst() const noexcept { return full_burst_; }

  std::size_t receive_from_host(pipeline::Packet* out, std::size_t n) noexcept {
    std::array<rte_mbuf*, pipeline::kBurst> frames;
    const std::size_t count =
        rings_.from_host(worker_).pop(frames.data(), n < frames.size() ? n : frames.size());
    for (std::size_t i = 0; i < count; ++i) {
      view(frames[i], static_cast<pipeline::PortIndex>(frames[i]->port), out[i]);
      out[i].origin = pipeline::Origin::kHost;
    }
    return count;
  }

  // Always inline: it is a few stores, and a call saves more registers than that.
  [[gnu::always_inline]] void transmit(pipeline::PortIndex port,
                                       const pipeline::Packet& packet) noexcept {
    auto* frame = static_cast<rte_mbuf*>(packet.handle);
    const auto index = static_cast<std::size_t>(port);
    if (index >= pipeline::kMaxPorts || packet.total > transmit_[index].max_frame) [[unlikely]] {
      refuse_oversize(frame);
      return;
    }
    TxBuffer& buffer = transmit_[index];
    buffer.frames[buffer.count++] = frame;
    if (buffer.count == buffer.frames.size()) [[unlikely]] {
      send(buffer);
    }
  }

  std::size_t flush() noexcept {
    for (std::size_t i = 0; i < used_ports_; ++i) {
      if (transmit_[i].count != 0) {
        send(transmit_[i]);
      }
    }
    if (dropped_size_ != 0) {
      free_dropped();
    }
    const std::size_t lost = unsent_;
    unsent_ = 0;
    return lost;
  }

  bool to_host(const pipeline::Packet& packet) noexcept {
    const auto index = static_cast<std::size_t>(packet.port);
    if (index >= rings_.ports()) {
      return false;
    }
    return rings_.to_host(worker_, index).push(static_cast<rte_mbuf*>(packet.handle));
  }

  void drop(const pipeline::Packet& packet) noexcept {
    dropped_[dropped_size_++] = static_cast<rte_mbuf*>(packet.handle);
    if (dropped_size_ == dropped_.size()) [[unlikely]] {
      free_dropped();
    }
  }

  bool allocate(pipeline::PortIndex port, pipeline::Packet& grow) noexcept {
    rte_mbuf* frame = rte_pktmbuf_alloc(pool_);
    if (frame == nullptr) {
      return false;
    }
    view(frame, port, grow);
    return true;
  }

  bool resize(pipeline::Packet& grow, std::size_t n) noexcept {
    auto* frame = static_cast<rte_mbuf*>(grow.handle);
    const std::uint8_t* end = static_cast<std::uint8_t*>(frame->buf_addr) + frame->buf_len;
    if (n > static_cast<std::size_t>(end - grow.data)) {
      return false;
    }
    grow.total = static_cast<std::uint32_t>(n);
    grow.contiguous = grow.total;
    tell(frame, grow);
    return true;
  }

  bool prepend(pipeline::Packet& grow, std::size_t n) noexcept {
    auto* frame = static_cast<rte_mbuf*>(grow.handle);
    if (n > static_cast<std::size_t>(grow.data - static_cast<std::uint8_t*>(frame->buf_addr))) {
      return false;
    }
    grow.data -= n;
    grow.total += static_cast<std::uint32_t>(n);
    grow.contiguous += static_cast<std::uint32_t>(n);
    tell(frame, grow);
    return true;
  }

  /// A source port by which the reply, arriving at `egress`, would come to this worker at once.
  /// @param reply  with the port to begin with. @return 0: no preference.
  template <class Key>
  [[nodiscard]] std::uint16_t steered_port(pipeline::PortIndex egress,
                                           const Key& reply) const noexcept {
    const auto index = static_cast<std::size_t>(egress);
    if (index >= pipeline::kMaxPorts || transmit_[index].steering == nullptr) {
      return 0;
    }
    return transmit_[index].steering->adjust(reply, transmit_[index].queue);
  }

  [[nodiscard]] const IoCounters& counters() const noexcept { return counters_; }

 private:
  struct RxQueue {
    QueueRef ref;
    pipeline::PortIndex port = pipeline::PortIndex::kNone;
  };
  struct TxBuffer {
    QueueRef ref;
    std::uint32_t max_frame = 0;  ///< 0: no such port
    std::uint32_t count = 0;
    std::array<rte_mbuf*, pipeline::kBurst> frames{};
    const ReplySteering* steering = nullptr;
    std::uint16_t queue = 0;
  };

  static void bump(std::atomic<std::uint64_t>& cell, std::uint64_t n) noexcept {
    cell.store(cell.load(std::memory_order_relaxed) + n, std::memory_order_relaxed);
  }

  static void view(rte_mbuf* frame, pipeline::PortIndex port, pipeline::Packet& out) noexcept {
    out.handle = frame;
    out.data = rte_pktmbuf_mtod(frame, std::uint8_t*);
    out.contiguous = frame->data_len;
    out.total = frame->pkt_len;
    out.port = port;
    out.origin = pipeline::Origin::kWire;
  }

  /// The mbuf says what the view says.
  static void tell(rte_mbuf* frame, const pipeline::Packet& packet) noexcept {
    frame->data_off =
        static_cast<std::uint16_t>(packet.data - static_cast<std::uint8_t*>(frame->buf_addr));
    frame->data_len = static_cast<std::uint16_t>(packet.total);
    frame->pkt_len = packet.total;
  }

  [[gnu::noinline]] void refuse_oversize(rte_mbuf* frame) noexcept {
    rte_pktmbuf_free(frame);
    bump(counters_.tx_oversize, 1);
    ++unsent_;
  }

  /// Many drivers give 32 frames at most, however many they are asked for. Whoever took that for
  /// all there is would never see that a queue is full.
  static std::size_t ask(const QueueRef& queue, rte_mbuf** frames, std::size_t most) noexcept {
    constexpr std::size_t kDriversBurst = 32;
    std::size_t got = 0;
    std::size_t more = kDriversBurst;
    while (more == kDriversBurst && got < most) {
      more = rte_eth_rx_burst(queue.device, queue.queue, frames + got,
                              static_cast<std::uint16_t>(most - got));
      got += more;
    }
    return got;
  }

  std::size_t receive_queue(const RxQueue& queue, pipeline::Packet* out, std::size_t n) noexcept {
    std::array<rte_mbuf*, pipeline::kBurst> frames;
    const std::size_t got = ask(queue.ref, frames.data(), n < frames.size() ? n : frames.size());
    for (std::size_t i = 0; i < got; ++i) {
      rte_prefetch0(rte_pktmbuf_mtod(frames[i], void*));
    }
    std::size_t kept = 0;
    for (std::size_t i = 0; i < got; ++i) {
      if (frames[i]->nb_segs > 1 && rte_pktmbuf_linearize(frames[i]) != 0) {
        rte_pktmbuf_free(frames[i]);
        bump(counters_.rx_not_contiguous, 1);
        continue;
      }
      view(frames[i], queue.port, out[kept++]);
    }
    return kept;
  }

  [[gnu::noinline]] void free_dropped() noexcept {
    rte_pktmbuf_free_bulk(dropped_.data(), dropped_size_);
    dropped_size_ = 0;
  }

  [[gnu::noinline]] void send(TxBuffer& buffer) noexcept {
    const std::uint16_t count = static_cast<std::uint16_t>(buffer.count);
    const std::uint16_t taken =
        rte_eth_tx_burst(buffer.ref.device, buffer.ref.queue, buffer.frames.data(), count);
    if (taken < count) {
      const auto left = static_cast<unsigned>(count - taken);
      rte_pktmbuf_free_bulk(buffer.frames.data() + taken, left);
      bump(counters_.tx_refused, left);
      unsent_ += left;
    }
    buffer.count = 0;
  }

  std::uint32_t worker_;
  rte_mempool* pool_;
  HostRings& rings_;
  std::vector<RxQueue> receive_;
  std::size_t next_ = 0;
  bool full_burst_ = false;
  std::size_t unsent_ = 0;
  std::size_t used_ports_ = 0;
  std::array<TxBuffer, pipeline::kMaxPorts> transmit_{};
  unsigned dropped_size_ = 0;
  std::array<rte_mbuf*, pipeline::kBurst> dropped_{};  ///< freed together, by flush() at last
  IoCounters counters_;
};
static_assert(pipeline::PacketIo<DpdkIo>);

}  // namespace sluice::dpdk
