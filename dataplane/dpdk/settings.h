#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "dataplane/pipeline/packet.h"

namespace sluice::dpdk {

/// Severity of a line this folder reports. The caller decides where lines go.
enum class Severity : std::uint8_t { kDebug, kInfo, kWarning, kError };
/// Receives one line without newline. Called from control threads only, never from a worker.
using LogSink = std::function<void(Severity, std::string_view)>;

enum class HugepageUse : std::uint8_t { kAuto, kOn, kOff };

/// What the EAL is started with.
struct EalSettings {
  std::string program = "sluiced";
  std::string file_prefix;              ///< empty: "sluice-<pid>"
  std::vector<std::string> extra_args;  ///< appended as they are
  std::vector<std::string> pci;         ///< allowed PCI addresses; empty: no PCI scan at all
  std::vector<std::string> vdevs;       ///< made at start, in this order
  std::string driver_dir;               ///< empty: found (SLUICE_PMD_DIR, then the library's own)
  HugepageUse hugepages = HugepageUse::kAuto;
  bool shared_memory = false;           ///< a port's peer maps our memory; see eal_arguments()
  std::size_t memory_bytes = 0;         ///< what pools and tables need, see memory.h
  std::size_t memory_limit_mib = 0;     ///< configured; 0: as computed
  std::vector<std::uint32_t> worker_cores;  ///< CPU of worker i; empty: no lcores but main
};

enum class DeviceKind : std::uint8_t { kPci, kVdev, kAfXdp, kAfPacket, kAuto };

/// One port as configured.
struct PortSettings {
  std::string name;                     ///< 1..11 characters
  DeviceKind kind = DeviceKind::kVdev;
  std::string target;                   ///< PCI address, vdev string or interface name
  std::uint16_t mtu = 1500;
  std::uint16_t queues = 0;             ///< 0: one per worker
  std::uint16_t rx_descriptors = 1024;
  std::uint16_t tx_descriptors = 1024;
  std::vector<std::uint8_t> rss_key;    ///< 40 or 52 bytes; empty: the built-in key
};

/// One receive and transmit queue pair of an ethdev.
struct QueueRef {
  std::uint16_t device = 0;  ///< ethdev port id
  std::uint16_t queue = 0;
};

}  // namespace sluice::dpdk
