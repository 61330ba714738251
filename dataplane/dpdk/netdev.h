#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "dataplane/core/net/address.h"
#include "dataplane/core/sink.h"

namespace sluice::dpdk {

/// What the kernel says about an ordinary interface a port is made from.
struct NetdevInfo {
  std::string name;
  std::uint32_t index = 0;
  core::MacAddress mac;
  std::uint16_t mtu = 0;
  bool up = false;
  std::string driver;              ///< "veth", "virtio_net", ...; empty: unknown
  std::uint32_t rx_queues = 1;     ///< now
  std::uint32_t max_rx_queues = 1; ///< what set_queues() may ask for
};

/// Errors: no such interface, not an Ethernet one. Thread: any control thread.
[[nodiscard]] core::Result<NetdevInfo> read_netdev(const std::string& name);

/// Sets the number of receive and transmit queues (what `ethtool -L` does).
[[nodiscard]] core::Result<void> set_queues(const std::string& name, std::uint32_t queues);
/// Sets the MTU / brings the interface up.
[[nodiscard]] core::Result<void> set_mtu(const std::string& name, std::uint16_t mtu);
[[nodiscard]] core::Result<void> set_up(const std::string& name);

/// Asks the kernel whether it has AF_XDP and lets this process load XDP programs. Changes nothing.
/// @return empty: usable; else the reason.
[[nodiscard]] std::string xdp_unusable_reason();

/// One vdev string per receive queue, each a device of its own with one queue pair.
/// @param number  first device number; makes names unique over ports.
[[nodiscard]] std::vector<std::string> af_xdp_vdevs(const std::string& interface,
                                                    std::uint32_t queues, std::uint32_t number);
/// One vdev string with `queues` pairs. The frame size is the power of two that holds the MTU.
[[nodiscard]] std::string af_packet_vdev(const std::string& interface, std::uint32_t queues,
                                         std::uint32_t number, std::uint16_t mtu);

}  // namespace sluice::dpdk
