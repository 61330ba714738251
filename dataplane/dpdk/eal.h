#pragma once

#include <memory>
#include <string>
#include <vector>

#include "dataplane/core/sink.h"
#include "dataplane/dpdk/log.h"
#include "dataplane/dpdk/memory.h"
#include "dataplane/dpdk/settings.h"

namespace sluice::dpdk {

/// The arguments the EAL gets. Pure, so that tests can look at them. Memory that a peer maps lies in
/// one file and is taken whole at start: net_memif closes that file when its peer leaves, and the EAL
/// could not grow it any more.
[[nodiscard]] std::vector<std::string> eal_arguments(const EalSettings& settings,
                                                     const MemoryChoice& memory,
                                                     const std::vector<std::uint32_t>& available);

/// DPDK's environment; one per process and only once in its life (a limit of the EAL). Ports, pools
/// and lcores must be gone before it is destroyed.
/// Thread: main.
class Eal {
 public:
  /// Errors: one line that says what the EAL refused.
  [[nodiscard]] static core::Result<std::unique_ptr<Eal>> start(const EalSettings& settings,
                                                                const MemoryChoice& memory,
                                                                LogSink sink);
  ~Eal();
  Eal(const Eal&) = delete;
  Eal& operator=(const Eal&) = delete;

  /// Makes a device by its vdev string, or probes a PCI address that was allowed at start.
  /// @return ethdev port ids it brought, usually one.
  /// Errors: one line with the device and DPDK's reason.
  [[nodiscard]] core::Result<std::vector<std::uint16_t>> add_device(const std::string& device);

  [[nodiscard]] DpdkLog& log() noexcept { return log_; }
  /// lcore of worker i (see lcores_argument()).
  [[nodiscard]] static unsigned lcore_of_worker(std::uint32_t worker) noexcept {
    return worker + 1;
  }

 private:
  explicit Eal(LogSink sink) : log_(std::move(sink)) {}
  DpdkLog log_;
  std::string runtime_dir_;
  bool running_ = false;
};

}  // namespace sluice::dpdk
