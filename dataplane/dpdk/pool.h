#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "dataplane/core/sink.h"

struct rte_mempool;
struct rte_mbuf;

namespace sluice::dpdk {

/// Packet memory of all ports and workers: one contiguous chunk (net_af_xdp makes it the umem).
/// Thread: made and destroyed by main; mbufs are taken and given back by any thread, lcores from
/// their own cache.
class MbufPool {
 public:
  /// @param mbufs  count, best 2^k - 1.  @param max_frame  bytes of the largest frame.
  /// Errors: too little memory, with the number of bytes.
  [[nodiscard]] static core::Result<MbufPool> create(std::uint32_t mbufs, std::uint32_t max_frame,
                                                     bool one_page_elements);
  ~MbufPool();
  MbufPool(MbufPool&& other) noexcept;
  MbufPool& operator=(MbufPool&&) = delete;

  /// Bytes a pool of this shape takes.
  [[nodiscard]] static std::size_t memory_bytes(std::uint32_t mbufs, std::uint32_t max_frame);
  /// Data room of an element, headroom included.
  [[nodiscard]] static std::uint16_t data_room(std::uint32_t max_frame) noexcept;

  [[nodiscard]] rte_mempool* get() const noexcept { return pool_; }
  [[nodiscard]] std::uint32_t size() const noexcept { return size_; }
  /// mbufs taken now. Exact when no thread takes or gives. Thread: control.
  [[nodiscard]] std::uint32_t in_use() const noexcept;

 private:
  MbufPool(rte_mempool* pool, std::uint32_t size) noexcept : pool_(pool), size_(size) {}
  rte_mempool* pool_;
  std::uint32_t size_;
};

}  // namespace sluice::dpdk
