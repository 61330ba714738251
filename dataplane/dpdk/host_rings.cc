#include "dataplane/dpdk/host_rings.h"

#include <array>

#include <rte_mbuf.h>

namespace sluice::dpdk {
namespace {

void free_all(HostRings::Ring& ring) noexcept {
  std::array<rte_mbuf*, pipeline::kBurst> frames;
  while (const std::size_t count = ring.pop(frames.data(), frames.size())) {
    rte_pktmbuf_free_bulk(frames.data(), static_cast<unsigned>(count));
  }
}

}  // namespace

void HostRings::drain() noexcept {
  for (auto& ring : to_host_) {
    free_all(*ring);
  }
  for (auto& ring : from_host_) {
    free_all(*ring);
  }
}

}  // namespace sluice::dpdk
