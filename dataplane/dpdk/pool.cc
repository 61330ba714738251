#include "dataplane/dpdk/pool.h"

#include <algorithm>
#include <utility>

#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_mbuf.h>
#include <rte_mbuf_pool_ops.h>
#include <rte_mempool.h>

namespace sluice::dpdk {
namespace {

constexpr unsigned kCacheSize = 512;  // RTE_MEMPOOL_CACHE_MAX_SIZE: 8 bursts without the ring
// Frames of net_af_xdp start XDP_PACKET_HEADROOM (256) behind our headroom.
constexpr std::uint32_t kXdpHeadroom = 256;
// Ethernet header, two VLAN tags and FCS.
constexpr std::uint32_t kLinkOverhead = 14 + 8 + 4;

std::size_t element_bytes(std::uint32_t max_frame) {
  return rte_mempool_calc_obj_size(
      static_cast<std::uint32_t>(sizeof(rte_mbuf)) + MbufPool::data_room(max_frame), 0, nullptr);
}

/// rte_pktmbuf_pool_create() with elements packed densely. Left to itself a mempool lets no element
/// cross a page, which without hugepages costs a whole page each, and net_af_xdp's umem, sized by
/// count times element, would not reach the last ones. Where bus addresses are virtual ones an
/// element is contiguous for a device wherever it lies.
rte_mempool* make_pool(std::uint32_t mbufs, std::uint16_t data_room) {
  const bool virtual_addresses = rte_eal_iova_mode() == RTE_IOVA_VA;
  const unsigned flags = virtual_addresses ? RTE_MEMPOOL_F_NO_IOVA_CONTIG : 0;
  rte_mempool* pool = rte_mempool_create_empty(
      "sluice_mbufs", mbufs, static_cast<unsigned>(sizeof(rte_mbuf)) + data_room, kCacheSize,
      sizeof(rte_pktmbuf_pool_private), SOCKET_ID_ANY, flags);
  if (pool == nullptr) {
    return nullptr;
  }
  if (rte_mempool_set_ops_byname(pool, rte_mbuf_best_mempool_ops(), nullptr) != 0) {
    rte_mempool_free(pool);
    return nullptr;
  }
  rte_pktmbuf_pool_private shape = {};
  shape.mbuf_data_room_size = data_room;
  rte_pktmbuf_pool_init(pool, &shape);
  if (rte_mempool_populate_default(pool) < 0) {
    rte_mempool_free(pool);
    return nullptr;
  }
  rte_mempool_obj_iter(pool, rte_pktmbuf_init, nullptr);
  return pool;
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
  rte_mempool* pool = make_pool(mbufs, data_room(max_frame));
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
