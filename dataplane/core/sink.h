#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <tl/expected.hpp>

#include "dataplane/core/fwd/forwarding_table.h"

namespace sluice::core {

/// A failure off the fast path: what failed, on what, what to do. One line.
struct Error {
  std::string message;
};
template <class T>
using Result = tl::expected<T, Error>;

/// What a sink could not express, per service port.
struct Unsupported {
  std::string service_port;  ///< printed name
  std::string what;          ///< one clear line
};

struct ApplyReport {
  std::uint64_t generation = 0;
  std::vector<Unsupported> unsupported;
};

struct Capabilities {
  std::string name;                           ///< "dpdk", "nftables", ...
  std::vector<SchedulerKind> schedulers;
  std::vector<ForwardingMode> modes;
};

/// Where a table goes: the worker group or a kernel adapter. apply() is given the whole wanted
/// state and is idempotent; a failure keeps the old state. Thread: the publisher's only.
class TableSink {
 public:
  virtual ~TableSink() = default;
  [[nodiscard]] virtual Capabilities capabilities() const = 0;
  virtual Result<ApplyReport> apply(const TablePtr& table) = 0;
  /// Removes exactly what this sink made.
  virtual Result<void> cleanup() = 0;
};

}  // namespace sluice::core
