#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <rte_ethdev.h>
#include <rte_mbuf.h>

#include "dataplane/core/net/address.h"
#include "dataplane/core/sink.h"

namespace sluice::bench {

struct DeviceOptions {
  std::string vdev;             ///< "net_memif0,role=client,...", or a PCI address
  std::uint32_t core = 0;       ///< CPU of the generator
  bool hugepages = false;
  std::uint32_t memory_mib = 256;
  std::uint16_t descriptors = 1024;
  std::uint32_t frame = 1518;   ///< longest frame
};

/// EAL and one ethdev with one queue. Frames to send come from a pool of their own whose buffers
/// are zero behind the headers, so that a long frame costs no filling. Thread: one.
class Device {
 public:
  static constexpr std::uint16_t kBurst = 64;

  /// Errors: what EAL or driver refuse.
  [[nodiscard]] static core::Result<std::unique_ptr<Device>> open(const DeviceOptions& options);
  ~Device();
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  [[nodiscard]] const core::MacAddress& mac() const noexcept { return mac_; }
  [[nodiscard]] bool link_up() const noexcept;

  std::uint16_t receive(rte_mbuf** frames) noexcept {
    return rte_eth_rx_burst(id_, 0, frames, kBurst);
  }
  /// @return how many the driver took; the others are freed.
  std::uint16_t send(rte_mbuf** frames, std::uint16_t n) noexcept {
    const std::uint16_t taken = rte_eth_tx_burst(id_, 0, frames, n);
    if (taken < n) {
      rte_pktmbuf_free_bulk(frames + taken, static_cast<unsigned>(n - taken));
    }
    return taken;
  }
  /// @return false when the pool is empty: the peer holds too many.
  [[nodiscard]] bool allocate(rte_mbuf** frames, std::uint16_t n) noexcept {
    return rte_pktmbuf_alloc_bulk(transmit_pool_, frames, n) == 0;
  }

 private:
  Device() = default;
  core::Result<void> start(const DeviceOptions& options);

  std::uint16_t id_ = 0;
  bool started_ = false;
  rte_mempool* receive_pool_ = nullptr;
  rte_mempool* transmit_pool_ = nullptr;
  core::MacAddress mac_;
};

}  // namespace sluice::bench
