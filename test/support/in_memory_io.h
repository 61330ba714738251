#pragma once

#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

#include "dataplane/pipeline/packet.h"
#include "test/support/packet_builder.h"

namespace sluice::test {

/// Frame buffers with exact accounting: taking from an empty pool fails, giving a buffer back twice
/// ends the test program. Thread: any.
class FramePool {
 public:
  static constexpr std::size_t kHeadroom = 128;
  static constexpr std::size_t kRoom = 9728;
  struct Buffer {
    std::array<std::uint8_t, kHeadroom + kRoom> bytes;
    bool taken = false;
  };

  explicit FramePool(std::size_t buffers) : buffers_(buffers) {
    for (Buffer& b : buffers_) {
      free_.push_back(&b);
    }
  }
  Buffer* take() {
    const std::lock_guard lock(mutex_);
    if (free_.empty()) {
      return nullptr;
    }
    Buffer* b = free_.back();
    free_.pop_back();
    b->taken = true;
    return b;
  }
  void give(void* handle) {
    const std::lock_guard lock(mutex_);
    auto* b = static_cast<Buffer*>(handle);
    if (b == nullptr || !b->taken) {
      std::fputs("FramePool: a frame was freed twice\n", stderr);
      std::abort();
    }
    b->taken = false;
    free_.push_back(b);
  }
  [[nodiscard]] std::size_t size() const { return buffers_.size(); }
  [[nodiscard]] std::size_t free_count() const {
    const std::lock_guard lock(mutex_);
    return free_.size();
  }

 private:
  mutable std::mutex mutex_;
  std::vector<Buffer> buffers_;
  std::vector<Buffer*> free_;
};

struct SentFrame {
  pipeline::PortIndex port = pipeline::PortIndex::kNone;
  Bytes bytes;
};

/// PacketIo over memory: the test puts frames into the queue it chooses and takes out what was
/// sent. Thread: the worker's; the test's while the worker stands still.
class InMemoryIo {
 public:
  explicit InMemoryIo(FramePool& pool) : pool_(pool) {}

  // --- the test's side ---------------------------------------------------------------------

  /// Puts a frame into this worker's queue of `port`. @return false: no buffer or too long.
  bool inject(pipeline::PortIndex port, std::span<const std::uint8_t> frame,
              pipeline::Origin origin = pipeline::Origin::kWire) {
    FramePool::Buffer* b = frame.size() <= FramePool::kRoom ? pool_.take() : nullptr;
    if (b == nullptr) {
      return false;
    }
    pipeline::Packet p;
    p.handle = b;
    p.data = b->bytes.data() + FramePool::kHeadroom;
    std::memcpy(p.data, frame.data(), frame.size());
    p.contiguous = p.total = static_cast<std::uint32_t>(frame.size());
    p.port = port;
    p.origin = origin;
    (origin == pipeline::Origin::kWire ? wire_ : host_).push_back(p);
    return true;
  }
  /// Frames the ports take in each flush; the rest is refused (F6).
  void accept_per_flush(std::size_t frames) { accept_ = frames; }
  /// Frames the tap's ring still takes.
  void host_ring_room(std::size_t frames) { host_room_ = frames; }

  /// The source port a NIC's hash would prefer to this one; 0: none.
  std::function<std::uint16_t(std::uint16_t)> steer;

  [[nodiscard]] std::vector<SentFrame> take_sent() { return std::exchange(sent_, {}); }
  [[nodiscard]] std::vector<SentFrame> take_to_host() { return std::exchange(to_host_, {}); }
  [[nodiscard]] std::size_t offered() const { return wire_.size() + host_.size(); }

  // --- PacketIo ----------------------------------------------------------------------------

  std::size_t receive(pipeline::Packet* out, std::size_t n) noexcept { return take(wire_, out, n); }
  std::size_t receive_from_host(pipeline::Packet* out, std::size_t n) noexcept {
    return take(host_, out, n);
  }
  void transmit(pipeline::PortIndex port, const pipeline::Packet& packet) noexcept {
    queued_.emplace_back(port, packet);
  }
  std::size_t flush() noexcept {
    std::size_t taken = 0;
    for (const auto& [port, packet] : queued_) {
      if (taken < accept_) {
        sent_.push_back({port, Bytes(packet.data, packet.data + packet.total)});
        ++taken;
      }
      pool_.give(packet.handle);
    }
    const std::size_t refused = queued_.size() - taken;
    queued_.clear();
    return refused;
  }
  bool to_host(const pipeline::Packet& packet) noexcept {
    if (to_host_.size() >= host_room_) {
      return false;
    }
    to_host_.push_back({packet.port, Bytes(packet.data, packet.data + packet.total)});
    pool_.give(packet.handle);
    return true;
  }
  void drop(const pipeline::Packet& packet) noexcept { pool_.give(packet.handle); }
  bool allocate(pipeline::PortIndex port, pipeline::Packet& out) noexcept {
    FramePool::Buffer* b = pool_.take();
    if (b == nullptr) {
      return false;
    }
    out = {b, b->bytes.data() + FramePool::kHeadroom, 0, 0, port, pipeline::Origin::kWire};
    return true;
  }
  template <class Key>
  std::uint16_t steered_port(pipeline::PortIndex, const Key& reply) const noexcept {
    return steer ? steer(reply.dport.host()) : std::uint16_t{0};
  }
  bool prepend(pipeline::Packet& packet, std::size_t n) noexcept {
    const auto* b = static_cast<const FramePool::Buffer*>(packet.handle);
    if (n > static_cast<std::size_t>(packet.data - b->bytes.data())) {
      return false;
    }
    packet.data -= n;
    packet.total += static_cast<std::uint32_t>(n);
    packet.contiguous += static_cast<std::uint32_t>(n);
    return true;
  }
  bool resize(pipeline::Packet& packet, std::size_t n) noexcept {
    if (n > FramePool::kRoom) {
      return false;
    }
    packet.contiguous = packet.total = static_cast<std::uint32_t>(n);
    return true;
  }

 private:
  static std::size_t take(std::deque<pipeline::Packet>& from, pipeline::Packet* out,
                          std::size_t n) noexcept {
    std::size_t k = 0;
    for (; k < n && !from.empty(); ++k) {
      out[k] = from.front();
      from.pop_front();
    }
    return k;
  }

  FramePool& pool_;
  std::deque<pipeline::Packet> wire_;
  std::deque<pipeline::Packet> host_;
  std::vector<std::pair<pipeline::PortIndex, pipeline::Packet>> queued_;
  std::vector<SentFrame> sent_;
  std::vector<SentFrame> to_host_;
  std::size_t accept_ = SIZE_MAX;
  std::size_t host_room_ = SIZE_MAX;
};
static_assert(pipeline::PacketIo<InMemoryIo>);

}  // namespace sluice::test
