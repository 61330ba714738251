#include "dataplane/dpdk/pool.h"

#include <algorithm>
#include <utility>

#include <rte_errno.h>
#include <rte_mbuf.h>
#include <rte_mempool.h>

namespace sluice::dpdk {
namespace {

constexpr unsigned kCacheSize = 512;  // RTE_MEMPOOL_CACHE_MAX_SIZE: 16 bursts without the ring
// Frames of net_af_xdp start XDP_PACKET_HEADROOM (256) behind our headroom.
constexpr std::uint32_t kXdpHeadroom = 256;
// Ethernet header, two VLAN tags and FCS.
constexpr std::uint32_t kLinkOverhead = 14 + 8 + 4;

std::size_t element_bytes(std::uint32_t max_frame) {
  return rte_mempool_calc_obj_size(
      static_cast<std::uint32_t>(sizeof(rte_mbuf)) + MbufPool::data_room(max_frame), 0, nullptr);
}

}  // namespace

std::uint16_t MbufPool::data_room(std::uint32_t max_frame) noexcept {
  const std::uint32_t room = RTE_PKTMBUF_HEADROOM + kXdpHeadroom + max_frame + kLinkOverhead;
  const std::uint32_t at_least = RTE_MBUF_DEFAULT_BUF_SIZE;
  return static_cast<std::uint16_t>(std::min(65535u, (std::max(room, at_least) + 63) / 64 * 64));
}

std::size_t MbufPool::memory_bytes(std::uint32_t mbufs, std::uint32_t max_frame) {
  // Element, its place in the ring, and the rounding of the chunk to pages.
  return std::size_t{mbufs} * (element_bytes(max_frame) + sizeof(void*)) + (std::size_t{4} << 20);
}

core::Result<MbufPool> MbufPool::create(std::uint32_t mbufs, std::uint32_t max_frame,
                                        bool one_page_elements) {
  const auto fail = [&](const std::string& reason) {
    return tl::make_unexpected(core::Error{
        "packet pool of " + std::to_string(mbufs) + " frames (" +
        std::to_string(memory_bytes(mbufs, max_frame) >> 20) + " MiB): " + reason});
  };
  if (one_page_elements && element_bytes(max_frame) > 4096) {
    return fail("an af_xdp port needs frames within one page: the MTU may be 3498 at most");
  }
  rte_mempool* pool = rte_pktmbuf_pool_create("sluice_mbufs", mbufs, kCacheSize, 0,
                                              data_room(max_frame), SOCKET_ID_ANY);
  if (pool == nullptr) {
    return fail(std::string(rte_strerror(rte_errno)));
  }
  if (one_page_elements && pool->nb_mem_chunks != 1) {
    rte_mempool_free(pool);
    return fail("no contiguous memory, which an af_xdp port needs");
  }
  return MbufPool(pool, mbufs);
}

MbufPool::MbufPool(MbufPool&& other) noexcept
    : pool_(std::exchange(other.pool_, nullptr)), size_(other.size_) {}

MbufPool::~MbufPool() { rte_mempool_free(pool_); }

std::uint32_t MbufPool::in_use() const noexcept { return rte_mempool_in_use_count(pool_); }

}  // namespace sluice::dpdk
