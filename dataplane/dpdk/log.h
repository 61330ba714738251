#pragma once

#include <cstdio>
#include <memory>
#include <string>

#include "dataplane/dpdk/settings.h"

namespace sluice::dpdk {

/// Takes over what DPDK, libbpf and libxdp print, so that an operator sees our lines and not
/// theirs. Everything goes to the sink at debug level; the last error line is kept for the message
/// of the call that failed.
/// Thread: made and destroyed by the main thread; DPDK may write from any.
class DpdkLog {
 public:
  explicit DpdkLog(LogSink sink);
  ~DpdkLog();
  DpdkLog(const DpdkLog&) = delete;
  DpdkLog& operator=(const DpdkLog&) = delete;

  /// The last line DPDK logged as an error since the previous call; empty: none.
  [[nodiscard]] std::string take_last_error();

  /// Redirects libbpf's and libxdp's own printing once the plugins that use them are loaded.
  static void quiet_bpf_libraries();

 private:
  struct State;
  std::unique_ptr<State> state_;
  std::FILE* stream_ = nullptr;
};

/// Catches what a library writes to stderr itself while this object lives (the EAL prints fatal
/// errors there besides logging them). Process-wide: for the start-up phase only.
class StderrCapture {
 public:
  StderrCapture();
  ~StderrCapture();
  StderrCapture(const StderrCapture&) = delete;
  StderrCapture& operator=(const StderrCapture&) = delete;
  /// Restores stderr. @return what was written.
  std::string finish();

 private:
  int saved_ = -1;
  int memory_ = -1;
};

}  // namespace sluice::dpdk
