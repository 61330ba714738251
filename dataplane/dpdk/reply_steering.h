#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "dataplane/core/net/flow_key.h"
#include "dataplane/core/sink.h"

struct rte_thash_ctx;
struct rte_thash_subtuple_helper;

namespace sluice::dpdk {

/// Chooses source ports by which the replies of translated flows arrive at the worker that owns
/// them: bends the low bits of a port so that the NIC's hash of the reply ends in wanted bits
/// (rte_thash_adjust_tuple()). A preference: whoever cannot follow it takes any port, and the reply
/// is handed over. Bits are bent within a block of 512 ports, which all belong to one worker.
///
/// The NIC's key has to be made for it: helpers write a sequence into the key where the reply's
/// destination port is hashed. So ports, and the software that computes owners, use key().
/// Thread: create() and the destructor main, the rest any.
class ReplySteering {
 public:
  static constexpr unsigned kBits = 9;  ///< of the port that bend; also the largest table, 512

  /// @param key  40 bytes to begin with.
  /// Errors: DPDK does not take it; owners are then found without this help.
  [[nodiscard]] static core::Result<std::unique_ptr<ReplySteering>> create(
      std::span<const std::uint8_t> key);
  ~ReplySteering();
  ReplySteering(const ReplySteering&) = delete;
  ReplySteering& operator=(const ReplySteering&) = delete;

  [[nodiscard]] std::span<const std::uint8_t> key() const noexcept { return key_; }

  /// @param reply   {backend, source address, backend port, port to begin with}, as the reply has it
  /// @param wanted  low bits of the hash, below 512
  /// @return a port of the same block of 512; 0: none.
  [[nodiscard]] std::uint16_t adjust(const core::FlowKey4& reply,
                                     std::uint16_t wanted) const noexcept;
  [[nodiscard]] std::uint16_t adjust(const core::FlowKey6& reply,
                                     std::uint16_t wanted) const noexcept;

 private:
  ReplySteering() = default;
  rte_thash_ctx* context_ = nullptr;
  rte_thash_subtuple_helper* port4_ = nullptr;
  rte_thash_subtuple_helper* port6_ = nullptr;
  std::vector<std::uint8_t> key_;
};

}  // namespace sluice::dpdk
