#include "test/conformance/compute_cases.h"

#include <algorithm>
#include <cmath>

#include "test/conformance/compute_functions.h"
#include "test/conformance/sync_timeline.h"

namespace sluice::conformance {
namespace {

std::string in_one_line(const YAML::Node& node) {
  YAML::Emitter out;
  out.SetMapFormat(YAML::Flow);
  out.SetSeqFormat(YAML::Flow);
  out << node;
  return out.c_str();
}

std::vector<std::string> sorted_items(const YAML::Node& list) {
  std::vector<std::string> out;
  for (const YAML::Node& item : list) {
    out.push_back(in_one_line(item));
  }
  std::sort(out.begin(), out.end());
  return out;
}

bool same_scalar(const std::string& want, const std::string& got) {
  return want == got || (want == "~" && got == "null");
}

/// Deep comparison; scalars by their text.
bool same(const YAML::Node& want, const YAML::Node& got) {
  if (!want.IsDefined() || want.IsNull() || !got.IsDefined() || got.IsNull()) {
    return (!want.IsDefined() || want.IsNull()) && (!got.IsDefined() || got.IsNull());
  }
  if (want.Type() != got.Type() || want.size() != got.size()) {
    return false;
  }
  if (want.IsScalar()) {
    return same_scalar(want.Scalar(), got.Scalar());
  }
  if (want.IsSequence()) {
    return std::equal(want.begin(), want.end(), got.begin(), same);
  }
  return std::all_of(want.begin(), want.end(), [&](const auto& item) {
    return same(item.second, got[item.first.template as<std::string>()]);
  });
}

/// Every key of `want` as in `got`; keys only in `got` say more than was asked. `ips` has no order,
/// and a `reason` is there to be read (cases/README.md).
bool answers(const YAML::Node& want, const YAML::Node& got) {
  return std::all_of(want.begin(), want.end(), [&](const auto& item) {
    const auto key = item.first.template as<std::string>();
    if (key == "reason") {
      return true;
    }
    if (key == "ips") {
      return sorted_items(item.second) == sorted_items(got[key]);
    }
    return same(item.second, got[key]);
  });
}

const ComputeFunctions& all_functions() {
  static const ComputeFunctions functions = [] {
    ComputeFunctions out;
    add_adapter_functions(out);
    add_allocation_functions(out);
    add_hint_functions(out);
    add_node_functions(out);
    return out;
  }();
  return functions;
}

void run_timeline(const YAML::Node& sync, ComputeOutcome& outcome) {
  ++outcome.entries;
  try {
    const auto want = sync["runs"].as<std::vector<double>>();
    const std::vector<double> got = play_timeline(sync);
    const bool equal = std::equal(want.begin(), want.end(), got.begin(), got.end(),
                                  [](double a, double b) { return std::abs(a - b) < 1e-5; });
    if (!equal) {
      outcome.failures.push_back("sync: expected runs at " + in_one_line(sync["runs"]) + ", got " +
                                 in_one_line(YAML::Node(got)));
    }
  } catch (const YAML::Exception& e) {
    outcome.failures.push_back(std::string("sync: ") + e.what());
  }
}

void run_entry(const YAML::Node& entry, ComputeOutcome& outcome) {
  const auto name = entry["fn"].as<std::string>();
  const auto function = all_functions().find(name);
  if (function == all_functions().end()) {
    outcome.not_applicable = "function " + name + " belongs to another subject";
    return;
  }
  ++outcome.entries;
  const std::string what = name + " " + in_one_line(entry["in"]) + ": ";
  try {
    const YAML::Node got = function->second(entry["in"]);
    if (!answers(entry["out"], got)) {
      outcome.failures.push_back(what + "expected " + in_one_line(entry["out"]) + ", got " +
                                 in_one_line(got));
    }
  } catch (const YAML::Exception& e) {
    outcome.failures.push_back(what + e.what());
  }
}

}  // namespace

ComputeOutcome run_compute_case(const YAML::Node& c) {
  ComputeOutcome outcome;
  if (c["compute"]) {
    for (const YAML::Node& entry : c["compute"]) {
      run_entry(entry, outcome);
    }
  }
  if (c["sync"]) {
    run_timeline(c["sync"], outcome);
  }
  return outcome;
}

}  // namespace sluice::conformance
