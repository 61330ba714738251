#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "dataplane/core/sink.h"

namespace sluice::bench {

/// Layout of shared memory by the memif protocol, version 2.0. head and tail count on for ever;
/// modulo the ring's size they are slots.
namespace memif {

struct Descriptor {
  std::uint16_t flags;
  std::uint16_t region;
  std::uint32_t length;  ///< of the frame; of an empty buffer: its room
  std::uint32_t offset;  ///< in the region
  std::uint32_t metadata;
};

struct Ring {
  std::uint32_t cookie;
  std::uint16_t flags;
  std::uint16_t head;  ///< client to server: frames sent; the other way: buffers supplied
  alignas(64) std::uint16_t tail;  ///< what the server has done with them

  /// They follow the ring's head in memory.
  [[nodiscard]] Descriptor* descriptors() noexcept {
    return reinterpret_cast<Descriptor*>(this + 1);
  }
};
static_assert(sizeof(Descriptor) == 16 && sizeof(Ring) == 128);

inline constexpr std::uint32_t kCookie = 0x3e31f20;
inline constexpr std::uint16_t kNoInterrupts = 1;  // flag of a ring: who reads it polls

}  // namespace memif

/// Memory of one side that both map.
struct MemifRegion {
  std::uint8_t* base = nullptr;
  std::size_t bytes = 0;
  int file = -1;
};

/// Where a ring lies.
struct MemifRing {
  std::uint16_t region = 0;
  std::uint32_t offset = 0;
  std::uint8_t log2_slots = 0;
  int event = -1;  ///< wakes a reader that does not poll
};

/// What both sides agree on: the client's memory, and one ring in each direction.
struct MemifLayout {
  std::vector<MemifRegion> regions;
  MemifRing to_server;
  MemifRing to_client;
};

/// The control channel of a memif: a socket on which the client names its memory and rings, each
/// message answered before the next. Calls wait 10 s at most. Thread: one.
class MemifChannel {
 public:
  MemifChannel() = default;
  ~MemifChannel();
  MemifChannel(MemifChannel&& other) noexcept;
  MemifChannel& operator=(MemifChannel&& other) noexcept;

  /// Errors: no server there.
  [[nodiscard]] static core::Result<MemifChannel> connect(const std::string& path);
  /// A server's channels come from accept(). Errors: what the system refuses.
  [[nodiscard]] static core::Result<MemifChannel> listen(const std::string& path);
  /// @return whether a client waits for accept().
  [[nodiscard]] bool has_client() const noexcept;
  [[nodiscard]] core::Result<MemifChannel> accept() const;

  /// As client. Errors: the server refuses, with its reason; silence.
  [[nodiscard]] core::Result<void> offer(const MemifLayout& layout) const;
  /// As server. Regions are mapped, and like events the caller's then. Errors: what does not follow
  /// the protocol; silence. The caller says connected() when the rings are ready.
  [[nodiscard]] core::Result<void> learn(MemifLayout& layout) const;
  [[nodiscard]] core::Result<void> connected() const;

 private:
  explicit MemifChannel(int socket);

  int socket_ = -1;
};

}  // namespace sluice::bench
