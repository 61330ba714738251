#pragma once

#include <yaml-cpp/yaml.h>

#include <string>
#include <vector>

#include "test/conformance/iptables_text.h"

namespace sluice::conformance {

/// A call of iptables-restore.
struct RestoreCall {
  std::string command;  ///< "iptables-restore -w 5 --noflush --counters"
  IptablesInput input;
};

/// Judges a `render` entry of the adapter iptables. @return lines "what: expected .., got ..".
/// @param written  what the input of iptables-restore amounts to
/// @param kernel   what iptables-save prints
[[nodiscard]] std::vector<std::string> judge_rendered(const YAML::Node& want,
                                                      const IptablesText& written,
                                                      const IptablesText& kernel);

/// Judges a `restore` step. @param calls  of one family, since the step before
[[nodiscard]] std::vector<std::string> judge_restore(const YAML::Node& want,
                                                     const std::vector<RestoreCall>& calls);

}  // namespace sluice::conformance
