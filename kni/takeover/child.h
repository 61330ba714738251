#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace sluice::kni {

/// How a program ended.
struct ChildResult {
  bool missing = false;  ///< no such program
  int status = -1;       ///< of its exit; -1: ended by a signal, or by us at the deadline
  bool cut = false;      ///< it printed more than is kept
  std::string out;
  std::string err;
};

/// More than any rule set has.
inline constexpr std::size_t kMostOutput = std::size_t{1} << 30;

/// Runs a program, found by PATH, and waits for it. No shell. What it prints is kept up to `most`
/// bytes; one that is not done at the deadline is killed.
[[nodiscard]] ChildResult run_child(const std::vector<std::string>& words, const std::string& input,
                                    std::chrono::milliseconds deadline,
                                    std::size_t most = kMostOutput);

}  // namespace sluice::kni
