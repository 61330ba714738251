#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>

#include "dataplane/core/net/parse.h"

namespace sluice::pipeline {

/// Index of a port in the configuration's order. Queue numbers are the I/O layer's business.
enum class PortIndex : std::uint8_t { kNone = 0xff };
inline constexpr std::size_t kMaxPorts = 16;
inline constexpr std::size_t kMaxWorkers = 128;
/// Frames a stage takes at a time. What a burst costs once (its rings' indices, the clock, the wait
/// for the first lines of a lookup) is shared by so many; a bulk lookup takes no more.
inline constexpr std::size_t kBurst = 64;

/// Where a frame came from. The host side of port p is the tap slc-p.
enum class Origin : std::uint8_t { kWire, kHost };

/// A frame the worker owns. `handle` is the I/O layer's (an mbuf, a buffer of the in-memory port).
/// Headers up to L4 are contiguous at `data`; `total` may be more than `contiguous` (segments).
struct Packet {
  void* handle = nullptr;
  std::uint8_t* data = nullptr;
  std::uint32_t contiguous = 0;  ///< bytes readable at data
  std::uint32_t total = 0;       ///< whole frame
  PortIndex port = PortIndex::kNone;
  Origin origin = Origin::kWire;
};

/// What the worker template needs of an I/O layer. All calls: owner worker only, noexcept, no
/// allocation, no lock. `InMemoryIo` (test/support) and dpdk::DpdkIo implement it.
template <class T>
concept PacketIo = requires(T io, Packet* out, const Packet& packet, Packet& grow, std::size_t n,
                            PortIndex port) {
  /// Up to n frames from the worker's queues of all ports, round robin; Origin::kWire. A frame that
  /// cannot be made contiguous is dropped there and counted. Sets `full_burst()`.
  { io.receive(out, n) }
  noexcept->std::same_as<std::size_t>;
  /// Up to n frames the host sent into the taps, as handed to this worker; Origin::kHost.
  { io.receive_from_host(out, n) }
  noexcept->std::same_as<std::size_t>;
  /// Queues one frame for transmission by `port`; ownership passes. Buffered until flush().
  { io.transmit(port, packet) }
  noexcept;
  /// Sends what is queued, and frees what was dropped. @return frames the ports did not take (freed
  /// here, counted tx_dropped).
  { io.flush() }
  noexcept->std::same_as<std::size_t>;
  /// Hands a frame to the host by the tap of packet.port. @return false: ring full, still owned.
  { io.to_host(packet) }
  noexcept->std::same_as<bool>;
  /// Ownership passes; it may be freed as late as in flush().
  { io.drop(packet) }
  noexcept;
  /// A new empty frame with headroom for tunnels. @return false: pool empty.
  { io.allocate(port, grow) }
  noexcept->std::same_as<bool>;
  /// Moves `data` n bytes forward into the headroom; content of the new bytes does not matter.
  /// @return false: no room.
  { io.prepend(grow, n) }
  noexcept->std::same_as<bool>;
  /// Changes the length at the tail (replies made in place). @return false: no room.
  { io.resize(grow, n) }
  noexcept->std::same_as<bool>;
};

}  // namespace sluice::pipeline
