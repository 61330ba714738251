#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "dataplane/core/net/address.h"
#include "dataplane/core/net/flow_key.h"
#include "dataplane/core/net/toeplitz.h"
#include "dataplane/pipeline/worker_tables.h"

namespace sluice::pipeline {

// Which worker a connection lives on (design section 5, owner rule). A NIC that hashes requests by
// source and replies by destination with the same key and table delivers each packet to its owner;
// correctness never depends on that.

/// The key used where the configuration names none; 40 bytes.
[[nodiscard]] std::span<const std::uint8_t> default_rss_key() noexcept;

/// For tests: ownership that no steering matches. It does not touch who uses which source port.
enum class OwnerTwist : std::uint8_t {
  kNone,
  kInverted,  ///< each flow belongs to the worker after the one it would: steered ports hand over
  kLast,      ///< each flow belongs to the last worker: with all frames on the first one's queue
              ///< every packet is handed over
};

/// Immutable policy, the same for all workers of a group. Thread: any.
class OwnerMap {
 public:
  struct Config {
    std::size_t workers = 1;                ///< 1..kMaxWorkers
    std::span<const std::uint8_t> rss_key;  ///< 40 or 52 bytes; empty: the built-in key
    /// Redirection table of the ports: hash (low bits) -> worker. Power of two; empty: 128 entries
    /// over the workers in turn.
    std::vector<std::uint16_t> reta;
    OwnerTwist twist = OwnerTwist::kNone;
  };
  explicit OwnerMap(const Config& config);

  [[nodiscard]] std::size_t workers() const noexcept { return workers_; }
  /// Owner of a flow whose client side (source of a request, destination of a reply) is this.
  [[nodiscard]] std::size_t of_client(const core::IpAddress& address,
                                      core::Be16 port) const noexcept {
    if (workers_ == 1) {
      return 0;
    }
    const std::uint32_t hash =
        address.is_v4() ? toeplitz_(address.v4(), port) : toeplitz_(address.v6(), port);
    return reta_[hash & (reta_.size() - 1)];
  }
  /// Worker that keeps a client's affinity pins (design section 5).
  [[nodiscard]] std::size_t home_of(const core::IpAddress& client) const noexcept {
    return of_client(client, core::Be16{});  // a port of 0 adds nothing to the hash
  }
  /// Worker where the pieces of a datagram meet.
  [[nodiscard]] std::size_t of_fragment(const core::IpAddress& src, const core::IpAddress& dst,
                                        std::uint32_t id, std::uint8_t protocol) const noexcept;

 private:
  std::size_t workers_;
  core::Toeplitz toeplitz_;
  std::vector<std::uint16_t> reta_;
};

/// What the steering book makes of a packet without a connection on this worker.
enum class FlowClass : std::uint8_t {
  kToSourceAddress,  ///< step 4: to an address and port of source translation
  kRequest,          ///< step 5: to a frontend
  kReply,            ///< step 6: from a backend
  kDirect,           ///< step 7: TCP SYN to a backend, past its Service
  kNone,             ///< step 8: no owner
};

struct Ownership {
  FlowClass cls = FlowClass::kNone;
  std::size_t worker = 0;  ///< meaningless for kNone
  std::optional<core::Frontend> frontend = {};  ///< kRequest: at exactly this destination
};

/// Steps 4 to 8 of the owner procedure.
/// @param tcp_syn  the packet opens a TCP connection.
[[nodiscard]] Ownership owner_of(const WorkerTables& tables, const OwnerMap& map,
                                 const core::FlowTuple& tuple, bool tcp_syn) noexcept;

/// True when source translation may use this address (of the pool, or of a port).
[[nodiscard]] bool is_source_address(const WorkerTables& tables,
                                     const core::IpAddress& address) noexcept;

}  // namespace sluice::pipeline
