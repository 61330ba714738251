#pragma once

#include <string>
#include <vector>

#include "dataplane/core/fwd/decide.h"

namespace sluice::core {

/// One step that led to a verdict.
struct Step {
  std::string rule;  ///< id in the rule book, such as "P-5"
  std::string text;  ///< one clear line
  bool operator==(const Step&) const = default;
};

/// decide(), and a step for everything the procedure asked. It is the same procedure with another
/// trace (procedure.h), not a second one.
/// Thread: any; allocates, so not for workers.
[[nodiscard]] Decision explain(const ForwardingTable& table, const Flow& flow,
                               std::vector<Step>& steps);

/// source_is_translated(), and the step that says why.
[[nodiscard]] bool explain_source(const ForwardingTable& table, const Decision& decision,
                                  const Flow& flow, const Endpoint& chosen,
                                  std::vector<Step>& steps);

/// "10.0.0.1:80/tcp", "node port 30080/tcp".
[[nodiscard]] std::string to_string(const FrontendKey& key);

}  // namespace sluice::core
