#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "conf/config.h"
#include "dataplane/core/metrics.h"
#include "dataplane/core/sink.h"

namespace sluice::daemon {

/// What the daemon takes over from when it starts.
enum class TakeOver : std::uint8_t { kNothing, kKubeProxy };

/// A kernel adapter as the daemon uses it.
struct KernelSink {
  std::unique_ptr<core::TableSink> sink;
  const core::MetricSource* metrics = nullptr;  ///< lives as long as `sink`
};

struct KernelSinkOptions {
  std::chrono::milliseconds sync_period{30000};
  TakeOver take_over = TakeOver::kNothing;
  conf::IptablesConfig iptables;  ///< mode iptables
  /// Beside workers (host-mode): the begin of their taps' names; empty: the kernel forwards all.
  std::string taps;
};

/// The adapter of a kernel mode. Errors: one line; the kernel cannot be asked, a right is missing,
/// or what is to be taken over from still runs. Thread: main.
[[nodiscard]] core::Result<KernelSink> make_kernel_sink(conf::Mode mode,
                                                        const KernelSinkOptions& options);

/// Removes what a kernel mode has made. Errors: one line.
[[nodiscard]] core::Result<void> clean_up_kernel(conf::Mode mode);

}  // namespace sluice::daemon
