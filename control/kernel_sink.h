#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "conf/config.h"
#include "dataplane/core/metrics.h"
#include "dataplane/core/sink.h"
#include "kni/conntrack/conntrack_sink.h"

namespace sluice::daemon {

/// What the daemon takes over from when it starts.
enum class TakeOver : std::uint8_t { kNothing, kKubeProxy };

struct KernelSinkOptions {
  std::chrono::milliseconds sync_period{30000};
  TakeOver take_over = TakeOver::kNothing;
  conf::IptablesConfig iptables;  ///< mode iptables
  /// Beside workers (host-mode): the begin of their taps' names; empty: the kernel forwards all.
  std::string taps;
};

/// A kernel adapter as the daemon uses it, with its conntrack. Thread: main.
class KernelSink {
 public:
  /// Errors: one line; the kernel cannot be asked, a right is missing, or what is to be taken over
  /// from still runs.
  [[nodiscard]] static core::Result<KernelSink> open(conf::Mode mode,
                                                     const KernelSinkOptions& options);

  [[nodiscard]] core::TableSink& sink() noexcept { return *with_conntrack_; }
  /// Live as long as this, wherever it is moved to.
  [[nodiscard]] const std::vector<const core::MetricSource*>& metrics() const noexcept {
    return metrics_;
  }

 private:
  KernelSink() = default;

  std::unique_ptr<core::TableSink> adapter_;
  std::unique_ptr<kni::ConntrackSink> with_conntrack_;
  std::vector<const core::MetricSource*> metrics_;
};

/// Removes what a kernel mode has made. @param mode  empty: every one (SY-12). Errors: one line.
[[nodiscard]] core::Result<void> clean_up_kernel(std::optional<conf::Mode> mode);

}  // namespace sluice::daemon
