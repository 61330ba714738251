#include "dataplane/dpdk/dpdk_io.h"

#include <algorithm>

namespace sluice::dpdk {

DpdkIo::DpdkIo(std::uint32_t worker, const std::vector<IoPort>& ports, rte_mempool* pool,
               HostRings& rings)
    : worker_(worker), pool_(pool), rings_(rings) {
  for (const IoPort& port : ports) {
    for (const QueueRef& queue : port.receive) {
      receive_.push_back({queue, port.index});
    }
    const auto index = static_cast<std::size_t>(port.index);
    transmit_[index].ref = port.transmit;
    transmit_[index].max_frame = port.max_frame;
    transmit_[index].steering = port.steering;
    transmit_[index].queue = port.queue;
    used_ports_ = std::max(used_ports_, index + 1);
  }
}

}  // namespace sluice::dpdk
