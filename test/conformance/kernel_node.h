#pragma once

#include <yaml-cpp/yaml.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "control/compile/compile.h"
#include "dataplane/core/sink.h"
#include "test/conformance/case.h"
#include "test/conformance/socket_flow.h"

namespace sluice::conformance {

/// An adapter in the kernel and what tests ask its kernel, in the network namespace of the thread
/// that made it. Thread: that one.
class KernelNode {
 public:
  virtual ~KernelNode() = default;

  /// Applies a table and looks at the kernel behind it: what others read there agrees with what the
  /// adapter rendered. @return what is wrong.
  virtual std::vector<std::string> apply(const core::TablePtr& table) = 0;
  /// What rules for packets to `family` refused since they were written.
  [[nodiscard]] virtual SocketNet::Refusals refusals(core::Family family) = 0;
  /// Seconds for which `source` is remembered, one for each endpoint that remembers it.
  [[nodiscard]] virtual std::vector<std::uint32_t> remembered(const core::IpAddress& source) = 0;
  /// No endpoint remembers any source.
  virtual void wipe() = 0;
  /// Judges what the adapter wrote: an entry of `render`, or a step of the kind `restore`.
  /// @return what is wrong; nullopt: that is of another adapter.
  [[nodiscard]] virtual std::optional<std::vector<std::string>> judge(const std::string& kind,
                                                                      const YAML::Node& value) {
    (void)kind, (void)value;
    return std::nullopt;
  }
};

/// An adapter as a subject of the cases.
struct KernelAdapter {
  std::string_view mode;  ///< of the rule book
  compile::Profile profile = compile::Profile::kNftables;
  std::unique_ptr<KernelNode> (*make)(const NodeSetup& setup) = nullptr;
};

/// For what a test cannot go on without.
template <class T>
T or_throw(core::Result<T> result) {
  if (!result) {
    throw std::runtime_error(result.error().message);
  }
  return std::move(*result);
}

}  // namespace sluice::conformance
