#include "kni/takeover/removal.h"

#include <algorithm>
#include <array>
#include <set>
#include <sstream>
#include <vector>

namespace sluice::kni {
namespace {

bool is_built_in(std::string_view chain) {
  constexpr std::array<std::string_view, 5> kBuiltIn = {"PREROUTING", "INPUT", "FORWARD", "OUTPUT",
                                                        "POSTROUTING"};
  return std::find(kBuiltIn.begin(), kBuiltIn.end(), chain) != kBuiltIn.end();
}

/// Words of a saved rule. A quoted text holds no word that reads as an option of ours, or it is a
/// comment: quotes are kept together.
std::vector<std::string> words_of(const std::string& line) {
  std::vector<std::string> words(1);
  bool quoted = false;
  for (std::size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    if (c == '\\' && quoted && i + 1 < line.size()) {
      words.back() += line[++i];
    } else if (c == '"') {
      quoted = !quoted;
      words.back() += c;
    } else if (c == ' ' && !quoted) {
      words.emplace_back();
    } else {
      words.back() += c;
    }
  }
  return words;
}

/// The chain a rule goes to; "": none.
std::string target_of(const std::vector<std::string>& words) {
  for (std::size_t i = 0; i + 1 < words.size(); ++i) {
    if (words[i] == "-j" || words[i] == "-g") {
      return words[i + 1];
    }
  }
  return "";
}

/// One table as it is read.
struct Table {
  std::string name;
  std::vector<std::string> chains;  ///< of kube-proxy
  std::vector<std::string> hooks;   ///< rules of built-in chains that go to one
  std::set<std::string> held;       ///< chains that others' chains go to

  void take_rule(const std::string& line) {
    const std::vector<std::string> words = words_of(line);
    const std::string target = target_of(words);
    if (words.size() < 2 || !is_kube_proxy_chain(target) || is_kube_proxy_chain(words[1])) {
      return;
    }
    if (is_built_in(words[1])) {
      hooks.push_back(line.substr(3));
    } else {
      held.insert(target);
    }
  }

  [[nodiscard]] std::string removal() const {
    if (chains.empty()) {
      return "";
    }
    std::string out = "*" + name + "\n";
    for (const std::string& chain : chains) {
      out += ":" + chain + " - [0:0]\n";  // empties it
    }
    for (const std::string& hook : hooks) {
      out += "-D " + hook + "\n";
    }
    for (const std::string& chain : chains) {
      if (held.count(chain) == 0) {
        out += "-X " + chain + "\n";
      }
    }
    return out + "COMMIT\n";
  }
};

}  // namespace

bool is_kube_proxy_chain(std::string_view name) {
  constexpr std::array<std::string_view, 14> kNames = {
      "KUBE-SERVICES",     "KUBE-EXTERNAL-SERVICES", "KUBE-NODEPORTS",
      "KUBE-POSTROUTING",  "KUBE-MARK-MASQ",         "KUBE-FORWARD",
      "KUBE-PROXY-CANARY", "KUBE-PROXY-FIREWALL",    "KUBE-NODE-PORT",
      "KUBE-LOAD-BALANCER", "KUBE-IPVS-FILTER",      "KUBE-IPVS-OUT-FILTER",
      "KUBE-LOAD-BALANCER-SOURCE-CIDR",              "KUBE-SOURCE-RANGES-FIREWALL"};
  constexpr std::array<std::string_view, 6> kBegins = {"KUBE-SVC-", "KUBE-SVL-", "KUBE-EXT-",
                                                       "KUBE-XLB-", "KUBE-FW-",  "KUBE-SEP-"};
  return std::find(kNames.begin(), kNames.end(), name) != kNames.end() ||
         std::any_of(kBegins.begin(), kBegins.end(),
                     [&](std::string_view begin) { return name.substr(0, begin.size()) == begin; });
}

std::string removal_of(std::string_view saved) {
  std::istringstream in{std::string(saved)};
  std::string out;
  Table table;
  for (std::string line; std::getline(in, line);) {
    if (line.empty() || line[0] == '#') {
      continue;
    }
    if (line[0] == '*') {
      table = {};
      table.name = line.substr(1);
    } else if (line[0] == ':') {
      const std::string chain = line.substr(1, line.find(' ') - 1);
      if (is_kube_proxy_chain(chain)) {
        table.chains.push_back(chain);
      }
    } else if (line.rfind("-A ", 0) == 0) {
      table.take_rule(line);
    } else if (line == "COMMIT") {
      out += table.removal();
    }
  }
  return out;
}

}  // namespace sluice::kni
