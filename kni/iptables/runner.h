#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "dataplane/core/sink.h"
#include "kni/iptables/claim.h"

namespace sluice::kni::ipt {

/// One run of another program.
struct Command {
  std::vector<std::string> words;  ///< program, found by PATH, and arguments
  std::string_view input;          ///< of its standard input
  std::chrono::milliseconds deadline{std::chrono::seconds(60)};
};

/// How it ended.
struct Outcome {
  int status = 0;          ///< exit status; 128 + signal
  bool timed_out = false;  ///< killed at the deadline
  std::string errors;      ///< the first 4 KiB of its standard error
  [[nodiscard]] bool good() const noexcept { return status == 0 && !timed_out; }
};

/// Takes the standard output line by line, without the ends of lines.
using LineTaker = std::function<void(std::string_view)>;

class Runner {
 public:
  virtual ~Runner() = default;
  /// Errors: the program cannot be started, or was killed because we end; one line that names it.
  /// Thread: one at a time.
  virtual core::Result<Outcome> run(const Command& command, const LineTaker& take) = 0;
};

/// Runs programs of this host, without a shell. The input is complete before the program starts, so
/// that one whose parent is killed has all of it or never begins.
/// @param claim  held by what is run as well; may be null.
/// @param ending  what runs then is killed, and nothing is begun: a restore that is killed between
/// two commits leaves rules that are good.
[[nodiscard]] std::unique_ptr<Runner> make_runner(std::unique_ptr<Claim> claim = nullptr,
                                                  Ending ending = {});

}  // namespace sluice::kni::ipt
