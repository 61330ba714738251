#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

namespace sluice::kni {

/// How a program ended.
struct ChildResult {
  bool missing = false;  ///< no such program
  int status = -1;       ///< of its exit; -1: ended by a signal, or by us at the deadline
  std::string out;
  std::string err;
};

/// Runs a program, found by PATH, and waits for it. No shell. What it prints is kept up to 64 MiB;
/// one that is not done at the deadline is killed.
[[nodiscard]] ChildResult run_child(const std::vector<std::string>& words, const std::string& input,
                                    std::chrono::milliseconds deadline);

}  // namespace sluice::kni
