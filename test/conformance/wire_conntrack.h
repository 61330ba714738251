#pragma once

#include <yaml-cpp/yaml.h>

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "test/conformance/wire_probe.h"

namespace sluice::conformance {

/// The `conntrack` steps of a case on the workers' own tables. A flow is installed by its first
/// packets and judged by its next one: deleted is a flow that goes to another endpoint now, kept is
/// one that goes where it went. Thread: one.
class WireConntrack {
 public:
  /// Runs a body at a time when that endpoint took flows of every Service.
  using Past = std::function<void(const core::IpAddress& endpoint, std::uint16_t port,
                                  const std::function<void()>& body)>;
  /// True for an endpoint "ip:port" of the table in force.
  using Present = std::function<bool(const std::string& endpoint)>;
  WireConntrack(WireNode& node, ProbeJudge& probes, Past past, Present present)
      : node_(node), probes_(probes), past_(std::move(past)), present_(std::move(present)) {}

  struct Result {
    std::vector<std::string> failures;
    std::vector<std::string> skipped;  ///< flows that no packets can make, and why
    std::size_t judged = 0;
  };
  Result perform(const YAML::Node& step);

 private:
  struct Flow {
    std::unique_ptr<WireFlow> flow;
    std::string backend;
  };
  void install(const YAML::Node& entry, Result& result);
  bool try_install(const YAML::Node& entry, const std::string& backend);
  void check(const YAML::Node& ids, bool kept, Result& result);

  WireNode& node_;
  ProbeJudge& probes_;
  Past past_;
  Present present_;
  std::map<std::string, Flow> flows_;
};

}  // namespace sluice::conformance
