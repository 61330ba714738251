#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

#include "dataplane/core/net/checksum.h"
#include "dataplane/core/net/flow_key.h"
#include "dataplane/core/net/headers.h"
#include "dataplane/pipeline/packet.h"

namespace sluice::bench {

/// Address number `n` of `block`: block.0.0.0 + n, fdBB::BB00:0:0:n. The lower halves of two blocks
/// differ, as they do in real traffic: equal ones take the parser's slow way.
template <class F>
[[nodiscard]] typename F::Address numbered(std::uint8_t block, std::uint32_t n) noexcept {
  if constexpr (F::kFamily == core::Family::kIpv4) {
    return core::Be32::from_host(std::uint32_t{block} << 24 | n);
  } else {
    core::Ipv6Address a;
    a.bytes[0] = 0xfd;
    a.bytes[1] = a.bytes[8] = block;
    core::Be32::from_host(n).store(&a.bytes[12]);
    return a;
  }
}

/// The flows of a bench: flow n comes from client n / 50000, port 10000 + n % 50000.
template <class F>
struct FlowSpace {
  using Key = typename F::Key;
  std::uint32_t flows = 0;
  std::uint32_t backends = 1;
  std::uint8_t proto = 6;
  const std::vector<std::uint32_t>* picked = nullptr;  ///< flow n is the n-th of these; all: null

  static constexpr std::uint8_t kClients = 11, kVips = 12, kBackends = 13, kSnat = 14;

  [[nodiscard]] Key forward(std::uint32_t at) const noexcept {
    const std::uint32_t n = picked == nullptr ? at : (*picked)[at];
    return {numbered<F>(kClients, 1 + n / 50'000),
            numbered<F>(kVips, 1),
            core::Be16::from_host(static_cast<std::uint16_t>(10'000 + n % 50'000)),
            core::Be16::from_host(80),
            proto,
            {}};
  }
  /// As the backend answers in nat mode.
  [[nodiscard]] Key reply(std::uint32_t n) const noexcept {
    const Key f = forward(n);
    return {numbered<F>(kBackends, 1 + n % backends),
            f.src,
            core::Be16::from_host(8080),
            f.sport,
            proto,
            {}};
  }
};

/// A permutation of [0, size) that jumps about, so that a pass over all flows has no order that a
/// cache could use. An xorshift-multiply bijection on the next power of two, walked until it is in
/// range.
class Shuffle {
 public:
  explicit Shuffle(std::uint32_t size) : size_(size) {
    while ((1u << bits_) < size) {
      ++bits_;
    }
  }
  [[nodiscard]] std::uint32_t at(std::uint32_t i) const noexcept {
    const std::uint32_t mask = (1u << bits_) - 1;
    const unsigned half = bits_ / 2 + 1;
    do {
      i = (i * 0x9e3779b1u + 0x7f4a7c15u) & mask;
      i ^= i >> half;
      i = (i * 0x85ebca6bu) & mask;
      i ^= i >> half;
    } while (i >= size_);
    return i;
  }

 private:
  std::uint32_t size_;
  unsigned bits_ = 1;
};

/// As a mempool lays out mbufs of the usual 2,176 bytes of room: 64 of its own, 128 of the mbuf. An
/// odd number of cache lines, so that frames spread over all sets of a cache.
inline constexpr std::size_t kBufferSize = 64 + 128 + 2176;
inline constexpr std::size_t kHeadroom = 128;

/// Writes a TCP segment without payload (padded to 60 bytes) of `key`; UDP likewise.
/// @return length of the frame in bytes.
template <class F>
std::uint32_t write_frame(std::uint8_t* at, const typename F::Key& key,
                          std::uint8_t tcp_flags) noexcept {
  constexpr bool kV4 = F::kFamily == core::Family::kIpv4;
  constexpr std::size_t kL3 = kV4 ? 20 : 40;
  const std::size_t l4_length = key.proto == 6 ? 20 : 12;
  std::memset(at, 0, 14 + kL3 + 20);
  std::memset(at, 0x02, 12);
  std::uint8_t* ip = at + 14;
  std::uint8_t* l4 = ip + kL3;
  core::Be16::from_host(kV4 ? 0x0800 : 0x86dd).store(at + 12);
  if constexpr (kV4) {
    ip[0] = 0x45;
    core::Be16::from_host(static_cast<std::uint16_t>(kL3 + l4_length)).store(ip + 2);
    ip[8] = 64;
    ip[9] = key.proto;
    key.src.store(ip + 12);
    key.dst.store(ip + 16);
    const std::uint16_t sum = core::ipv4_header_checksum(ip, 20);
    std::memcpy(ip + 10, &sum, 2);
  } else {
    ip[0] = 0x60;
    core::Be16::from_host(static_cast<std::uint16_t>(l4_length)).store(ip + 4);
    ip[6] = key.proto;
    ip[7] = 64;
    key.src.store(ip + 8);
    key.dst.store(ip + 24);
  }
  key.sport.store(l4);
  key.dport.store(l4 + 2);
  if (key.proto == 6) {
    l4[12] = 0x50;
    l4[13] = tcp_flags;
  } else {
    core::Be16::from_host(static_cast<std::uint16_t>(l4_length)).store(l4 + 4);
  }
  const std::uint16_t l4_sum = core::l4_checksum(core::IpAddress(key.src), core::IpAddress(key.dst),
                                                 key.proto, l4, l4_length);
  std::memcpy(l4 + (key.proto == 6 ? 16 : 6), &l4_sum, 2);
  const std::size_t length = 14 + kL3 + l4_length;
  return static_cast<std::uint32_t>(length < 60 ? 60 : length);
}

/// Frames of one timed round: as many bursts as fit the second-level cache like a mempool's hot
/// buffers do.
class FrameRing {
 public:
  static constexpr std::size_t kBursts = 4;
  static constexpr std::size_t kFrames = kBursts * pipeline::kBurst;

  FrameRing() : memory_(kFrames * kBufferSize + 64) {
    const auto start = reinterpret_cast<std::uintptr_t>(memory_.data());
    base_ = memory_.data() + (64 - start % 64) % 64;
  }
  [[nodiscard]] std::uint8_t* buffer(std::size_t i) noexcept {
    return base_ + i * kBufferSize + kHeadroom;
  }
  [[nodiscard]] pipeline::Packet& packet(std::size_t i) noexcept { return packets_[i]; }

  template <class F>
  void put(std::size_t i, const typename F::Key& key, std::uint8_t tcp_flags) noexcept {
    pipeline::Packet& p = packets_[i];
    p.handle = reinterpret_cast<void*>(i + 1);
    p.data = buffer(i);
    p.total = p.contiguous = write_frame<F>(p.data, key, tcp_flags);
    p.port = static_cast<pipeline::PortIndex>(0);
    p.origin = pipeline::Origin::kWire;
  }

 private:
  std::vector<std::uint8_t> memory_;
  std::uint8_t* base_;
  std::array<pipeline::Packet, kFrames> packets_{};
};

}  // namespace sluice::bench
