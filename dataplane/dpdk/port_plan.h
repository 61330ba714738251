#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "dataplane/core/sink.h"
#include "dataplane/dpdk/settings.h"

namespace sluice::dpdk {

/// What a configured port becomes, known before the EAL starts: memory is sized by it.
struct PortPlan {
  PortSettings settings;
  DeviceKind kind = DeviceKind::kVdev;  ///< kAuto is resolved
  std::vector<std::string> devices;     ///< vdev strings or one PCI address
  std::uint32_t queues = 1;             ///< receive queues over all devices
  bool kernel_fed = false;              ///< checksums may come unfinished
  bool shares_memory = false;           ///< the peer maps our packet memory: needs huge pages
  std::string interface;                ///< shared interface of af_xdp and af_packet; else empty
  std::string fallback_reason;          ///< why `auto` did not take af_xdp; else empty
};

/// Resolves devices and queue counts. Changes nothing.
/// @param numbers  counts vdevs over all ports so that their names differ; grows.
/// Errors: unknown interface or PCI address, more workers than queues (the line says how many each
/// has), an MTU the device cannot carry.
/// Thread: main.
[[nodiscard]] core::Result<PortPlan> plan_port(const PortSettings& settings, std::uint32_t workers,
                                               std::uint32_t& numbers);

/// Makes the shared interface of a plan ready: queues, MTU, up. Other plans need nothing.
/// Errors: what the interface refuses. Thread: main.
[[nodiscard]] core::Result<void> prepare_port(const PortPlan& plan);

/// The same port over af_packet, for `auto` when af_xdp could not be opened.
[[nodiscard]] PortPlan fall_back_to_af_packet(PortPlan plan, std::uint32_t workers,
                                              std::uint32_t& numbers, const std::string& reason);

}  // namespace sluice::dpdk
