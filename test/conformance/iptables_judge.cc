#include "test/conformance/iptables_judge.h"

#include <algorithm>
#include <fstream>
#include <set>

namespace sluice::conformance {
namespace {

constexpr const char* kRouteLocalnet = "net.ipv4.conf.all.route_localnet";

using Strings = std::vector<std::string>;
using Names = std::set<std::string>;

std::string joined(const auto& items) {
  std::string out;
  for (const std::string& item : items) {
    out += (out.empty() ? "" : "; ") + item;
  }
  return "{" + out + "}";
}

void expect(const std::string& what, const auto& wanted, const auto& got, Strings& failures) {
  if (wanted != got) {
    failures.push_back(what + ": expected " + joined(wanted) + ", got " + joined(got));
  }
}

IptablesTable table_of(const IptablesText& text, const std::string& name) {
  const auto found = text.find(name);
  return found == text.end() ? IptablesTable{} : found->second;
}

Strings canonical(Strings rules) {
  std::transform(rules.begin(), rules.end(), rules.begin(),
                 [](const std::string& rule) { return canonical_rule(rule); });
  return rules;
}

/// Complete, ordered rules of each named chain.
void judge_chains(const YAML::Node& want, const IptablesTable& got, Strings& failures) {
  for (const auto& item : want) {
    const auto chain = item.first.as<std::string>();
    expect(chain, canonical(item.second.as<Strings>()), canonical(got.rules_of(chain)), failures);
  }
}

/// Rules "-A CHAIN ..." that must be there, or must not.
void judge_presence(const YAML::Node& want, const IptablesTable& got, bool present,
                    Strings& failures) {
  for (const YAML::Node& item : want) {
    const std::string rule = canonical_rule(item.as<std::string>());
    const bool found = std::any_of(got.chains.begin(), got.chains.end(), [&](const auto& chain) {
      const Strings rules = canonical(got.rules_of(chain.first));
      return std::any_of(rules.begin(), rules.end(), [&](const std::string& r) {
        return "-A " + chain.first + " " + r == rule;
      });
    });
    if (found != present) {
      failures.push_back(rule + ": expected " + (present ? "present" : "absent"));
    }
  }
}

/// Hooks in processing order, each put on top of its built-in chain: read from the top down a chain
/// has them the other way round.
void judge_jumps(const YAML::Node& want, const IptablesText& kernel, Strings& failures) {
  std::map<std::string, Strings> wanted;
  for (const YAML::Node& jump : want) {
    Strings& there = wanted[jump["table"].as<std::string>() + " " + jump["chain"].as<std::string>()];
    there.insert(there.begin(), jump["target"].as<std::string>() +
                                    (jump["ctstateNew"].as<bool>() ? " of new flows" : ""));
  }
  std::map<std::string, Strings> got;
  for (const char* name : {"filter", "nat"}) {
    const IptablesTable table = table_of(kernel, name);
    for (const auto& [chain, rules] : table.chains) {
      for (const auto& rule : rules) {
        const auto target = rule.text.rfind("-j KUBE-");
        if (!chain.starts_with("KUBE-") && target != std::string::npos) {
          const bool is_new = rule.text.find("--ctstate NEW") != std::string::npos;
          got[name + (" " + chain)].push_back(rule.text.substr(target + 3) +
                                              (is_new ? " of new flows" : ""));
        }
      }
    }
  }
  for (const auto& [chain, targets] : wanted) {
    expect("jumps of " + chain, targets, got[chain], failures);
  }
}

/// In the network namespace of the calling thread. What is not listed is as it was, 0.
void judge_sysctls(const YAML::Node& want, Strings& failures) {
  std::map<std::string, std::string> wanted = {{kRouteLocalnet, "0"}};
  for (const auto& item : want) {
    wanted[item.first.as<std::string>()] = item.second.as<std::string>();
  }
  for (const auto& [name, value] : wanted) {
    std::string path = name;
    std::replace(path.begin(), path.end(), '.', '/');
    std::string got;
    std::ifstream("/proc/sys/" + path) >> got;
    expect(name, Strings{value}, Strings{got}, failures);
  }
}

Names names(const YAML::Node& yaml) {
  const auto list = yaml ? yaml.as<Strings>() : Strings();
  return {list.begin(), list.end()};
}

}  // namespace

std::vector<std::string> judge_rendered(const YAML::Node& want, const IptablesText& written,
                                        const IptablesText& kernel) {
  Strings failures;
  for (const char* name : {"nat", "filter"}) {
    judge_chains(want[name], table_of(written, name), failures);
    for (const YAML::Node& chain : want["absentChains"]) {
      if (table_of(kernel, name).chains.contains(chain.as<std::string>())) {
        failures.push_back(chain.as<std::string>() + ": expected absent");
      }
    }
  }
  judge_presence(want["natContains"], table_of(written, "nat"), true, failures);
  judge_presence(want["natAbsent"], table_of(written, "nat"), false, failures);
  judge_jumps(want["jumps"], kernel, failures);
  if (want["sysctls"]) {
    judge_sysctls(want["sysctls"], failures);
  }
  return failures;
}

std::vector<std::string> judge_restore(const YAML::Node& want,
                                       const std::vector<RestoreCall>& calls) {
  Strings failures;
  std::map<std::string, Names> declared;
  Names deleted;
  for (const RestoreCall& call : calls) {
    expect("command", Strings{want["command"].as<std::string>()}, Strings{call.command}, failures);
    for (const auto& [name, table] : call.input) {
      declared[name].insert(table.declared.begin(), table.declared.end());
      deleted.insert(table.deleted.begin(), table.deleted.end());
    }
  }
  expect("chain lines of filter", names(want["filterChainLines"]), declared["filter"], failures);
  expect("chain lines of nat", names(want["natChainLines"]), declared["nat"], failures);
  expect("deletes", names(want["deletes"]), deleted, failures);
  for (const std::string& chain : names(want["absent"])) {
    if (declared["nat"].contains(chain)) {
      failures.push_back(chain + ": expected not rewritten");
    }
  }
  return failures;
}

}  // namespace sluice::conformance
