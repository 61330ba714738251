#pragma once

#include <cstdlib>
#include <string>
#include <string_view>
#include <utility>

#include <fcntl.h>
#include <unistd.h>

namespace sluice::bench {

/// The one figure a run is asked for; without a name all are.
class Section {
 public:
  Section() = default;
  explicit Section(std::string name) : name_(std::move(name)) {}

  [[nodiscard]] bool alone() const noexcept { return !name_.empty(); }
  [[nodiscard]] bool has(std::string_view figure) const noexcept {
    return name_.empty() || figure == name_;
  }
  /// It is one whose name begins so.
  [[nodiscard]] bool has_some(std::string_view prefix) const noexcept {
    return name_.starts_with(prefix);
  }

 private:
  std::string name_;
};

/// While one lives, `perf record -D -1 --control fifo:PATH` takes samples; SLUICE_PERF_CONTROL is
/// that PATH. Without the variable it does nothing. Thread: one.
class ProfileWindow {
 public:
  /// @param section  of a bench with several: the window opens if SLUICE_PERF_SECTION names it.
  explicit ProfileWindow(std::string_view section = {}) noexcept {
    const char* path = std::getenv("SLUICE_PERF_CONTROL");
    const char* asked = std::getenv("SLUICE_PERF_SECTION");
    if (path != nullptr && (section.empty() || (asked != nullptr && section == asked))) {
      control_ = ::open(path, O_WRONLY | O_CLOEXEC);
      say("enable\n");
    }
  }
  ~ProfileWindow() {
    if (control_ >= 0) {
      say("disable\n");
      ::close(control_);
    }
  }
  ProfileWindow(const ProfileWindow&) = delete;
  ProfileWindow& operator=(const ProfileWindow&) = delete;

 private:
  void say(std::string_view order) const noexcept {
    // An order that is lost shows as a profile without samples.
    [[maybe_unused]] const auto written = ::write(control_, order.data(), order.size());
  }

  int control_ = -1;
};

}  // namespace sluice::bench
