// sluice-conformance --subject NAME[,NAME...] --cases DIR|FILE: runs the case files against subjects.
// One line per failing probe; then what is not applicable, by name and why; then the totals.
// Exit code: 0 exactly when nothing failed, 1 when something failed, 2 for wrong use.
#include <algorithm>
#include <iostream>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "test/conformance/case_reader.h"
#include "test/conformance/core_subject.h"
#include "test/conformance/dpdk_subject.h"
#include "test/conformance/iptables_node.h"
#include "test/conformance/kernel_subject.h"
#include "test/conformance/nftables_node.h"

namespace sluice::conformance {
namespace {

struct Totals {
  std::size_t passed = 0;
  std::size_t failed = 0;
  std::vector<std::string> not_applicable;
  std::vector<std::string> in_part;  ///< passed or failed, but some of it was not run
};

bool names_mode_of(const Case& c, const Subject& subject) {
  const auto modes = subject.modes();
  return std::any_of(c.modes.begin(), c.modes.end(), [&](const std::string& mode) {
    return std::find(modes.begin(), modes.end(), mode) != modes.end();
  });
}

void run_one(const Case& c, Subject& subject, const std::string& name, Totals& totals) {
  if (!names_mode_of(c, subject)) {
    totals.not_applicable.push_back(name + ": its modes do not include this subject's");
    return;
  }
  const Outcome outcome = subject.run(c);
  if (outcome.not_applicable && outcome.failures.empty()) {
    totals.not_applicable.push_back(name + ": " + *outcome.not_applicable);
    return;
  }
  for (const std::string& part : outcome.skipped) {
    totals.in_part.push_back(name + ": " + part);
  }
  for (const std::string& failure : outcome.failures) {
    std::cout << "FAIL " << name << ": " << failure << "\n";
  }
  ++(outcome.failures.empty() ? totals.passed : totals.failed);
}

/// By the name it was asked for.
using Subjects = std::map<std::string, std::unique_ptr<Subject>>;

void prepare(const std::vector<Case>& cases, Subject& subject) {
  std::vector<const Case*> mine;
  for (const Case& c : cases) {
    if (names_mode_of(c, subject)) {
      mine.push_back(&c);
    }
  }
  subject.prepare(mine);
}

int run(const Subjects& subjects, const std::string& path) {
  const auto cases = read_cases(path);
  if (!cases) {
    std::cerr << "sluice-conformance: " << cases.error().message << "\n";
    return 2;
  }
  for (const auto& [name, subject] : subjects) {
    prepare(*cases, *subject);
  }
  Totals totals;
  for (const auto& [name, subject] : subjects) {
    for (const Case& c : *cases) {
      const std::string of_many = subjects.size() > 1 ? name + " " : "";
      run_one(c, *subject, of_many + c.file + " " + c.name, totals);
    }
  }
  for (const std::string& line : totals.not_applicable) {
    std::cout << "not applicable: " << line << "\n";
  }
  for (const std::string& line : totals.in_part) {
    std::cout << "not applicable in part: " << line << "\n";
  }
  std::cout << totals.passed << " passed, " << totals.failed << " failed, "
            << totals.not_applicable.size() << " not applicable\n";
  return totals.failed == 0 ? 0 : 1;
}

/// nullptr: there is no such subject.
std::unique_ptr<Subject> make_subject(const std::string& name) {
  if (name == "core") {
    return make_core_subject();
  }
  if (name == "dpdk") {
    return make_dpdk_subject();
  }
  const std::map<std::string, KernelAdapter> adapters = {
      {"nftables", nftables_adapter()},
      {"iptables", iptables_adapter()},
      {"iptables-legacy", iptables_legacy_adapter()}};
  const auto found = adapters.find(name);
  return found == adapters.end() ? nullptr : make_kernel_subject(found->second);
}

/// @param names  with commas between. Empty: one of them is no subject.
Subjects make_subjects(const std::string& names) {
  Subjects subjects;
  std::istringstream list(names);
  for (std::string name; std::getline(list, name, ',');) {
    auto subject = make_subject(name);
    if (subject == nullptr) {
      return {};
    }
    subjects[name] = std::move(subject);
  }
  return subjects;
}

int usage() {
  std::cerr << "usage: sluice-conformance --subject core|dpdk|nftables|iptables|iptables-legacy"
               "[,...] --cases DIR|FILE\n";
  return 2;
}

}  // namespace
}  // namespace sluice::conformance

int main(int argc, char** argv) {
  const std::vector<std::string> args(argv + 1, argv + argc);
  std::string subject;
  std::string cases;
  for (std::size_t i = 0; i + 1 < args.size(); i += 2) {
    (args[i] == "--subject" ? subject : args[i] == "--cases" ? cases : subject) = args[i + 1];
  }
  const auto made = sluice::conformance::make_subjects(subject);
  if (made.empty() || cases.empty() || args.size() != 4) {
    return sluice::conformance::usage();
  }
  return sluice::conformance::run(made, cases);
}
