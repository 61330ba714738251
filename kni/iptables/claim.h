#pragma once

#include <chrono>
#include <functional>
#include <memory>

#include "dataplane/core/sink.h"

namespace sluice::kni::ipt {

/// Asked while something is waited for: the daemon has been told to end. May be empty. Thread: any.
using Ending = std::function<bool()>;
/// How often it is asked.
inline constexpr std::chrono::milliseconds kAskEvery{200};

/// The right to write the chains of this network namespace. Programs that are run with it hold it
/// as well, until they end: one that outlives a killed daemon keeps the next from writing what the
/// older one would overwrite.
class Claim {
 public:
  Claim(const Claim&) = delete;
  Claim& operator=(const Claim&) = delete;
  ~Claim();

  /// Waits for another holder to end. Errors: it does not in time, or we end; one line.
  [[nodiscard]] static core::Result<std::unique_ptr<Claim>> take(std::chrono::milliseconds patience,
                                                                 const Ending& ending = {});
  [[nodiscard]] int fd() const noexcept { return fd_; }

 private:
  explicit Claim(int fd) noexcept : fd_(fd) {}
  int fd_;
};

}  // namespace sluice::kni::ipt
