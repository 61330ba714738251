#pragma once

#include <yaml-cpp/yaml.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "test/conformance/wire_probe.h"

namespace sluice::conformance {

/// The `conntrack` steps of a case on the workers' own tables. A flow is installed by its first
/// packets and judged by its next one: deleted is a flow that goes to another endpoint now, kept is
/// one that goes where it went. Thread: one.
class WireConntrack {
 public:
  WireConntrack(WireNode& node, ProbeJudge& probes) : node_(node), probes_(probes) {}

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
  void check(const YAML::Node& ids, bool kept, Result& result);

  WireNode& node_;
  ProbeJudge& probes_;
  std::map<std::string, Flow> flows_;
};

}  // namespace sluice::conformance
