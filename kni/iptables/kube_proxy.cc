#include "kni/iptables/kube_proxy.h"

#include <algorithm>
#include <array>

#include "kni/iptables/programs.h"
#include "kni/iptables/restore_text.h"
#include "kni/iptables/saved_line.h"

namespace sluice::kni {
namespace ipt {
namespace {

/// Chains that rules of built-in chains lead to.
constexpr std::array<std::string_view, 9> kHooked = {
    "KUBE-SERVICES",  "KUBE-EXTERNAL-SERVICES", "KUBE-NODEPORTS",
    "KUBE-FORWARD",   "KUBE-POSTROUTING",       "KUBE-PROXY-FIREWALL",
    "KUBE-NODE-PORT", "KUBE-IPVS-FILTER",       "KUBE-IPVS-OUT-FILTER"};
/// Chains that only its own chains lead to, or none.
constexpr std::array<std::string_view, 5> kInner = {
    "KUBE-MARK-MASQ", "KUBE-PROXY-CANARY", "KUBE-LOAD-BALANCER", "KUBE-LOAD-BALANCER-SOURCE-CIDR",
    "KUBE-SOURCE-RANGES-FIREWALL"};
/// Begins of the names of inner chains that belong to one Service.
constexpr std::array<std::string_view, 6> kBegins = {"KUBE-SVC-", "KUBE-SVL-", "KUBE-EXT-",
                                                     "KUBE-XLB-", "KUBE-FW-",  "KUBE-SEP-"};
constexpr std::array<std::string_view, 5> kBuiltIn = {"PREROUTING", "INPUT", "FORWARD", "OUTPUT",
                                                      "POSTROUTING"};

template <class List, class Value>
bool contains(const List& list, const Value& value) {
  return std::find(list.begin(), list.end(), value) != list.end();
}

bool has_kube_proxy_chains(const Present& present) {
  return std::any_of(kTables.begin(), kTables.end(), [&](Table table) {
    const auto& chains = present.of(table).chains;
    return std::any_of(chains.begin(), chains.end(), is_kube_proxy_chain);
  });
}

}  // namespace

bool is_kube_proxy_chain(std::string_view name) {
  return contains(kHooked, name) || contains(kInner, name) ||
         std::any_of(kBegins.begin(), kBegins.end(),
                     [&](std::string_view begin) { return name.starts_with(begin); });
}

void KubeProxyRemoval::take(std::string_view text) {
  const SavedLine line = read_saved_line(text);
  switch (line.kind) {
    case SavedLine::Kind::kTable:
      table_ = line.name;
      chains_.clear();
      hooks_.clear();
      held_.clear();
      break;
    case SavedLine::Kind::kChain:
      if (is_kube_proxy_chain(line.name)) {
        chains_.emplace_back(line.name);
      }
      break;
    case SavedLine::Kind::kAppend:
      take_rule(line.name, line.rule);
      break;
    case SavedLine::Kind::kCommit:
      end_table();
      break;
    default:
      break;
  }
}

void KubeProxyRemoval::take_rule(std::string_view chain, std::string_view rule) {
  const std::string target = target_of(rule);
  if (!is_kube_proxy_chain(target) || is_kube_proxy_chain(chain)) {
    return;
  }
  if (contains(kBuiltIn, chain) && contains(kHooked, target)) {
    hooks_.push_back(std::string(chain).append(" ").append(rule));
  } else {
    held_.insert(target);
  }
}

void KubeProxyRemoval::end_table() {
  if (chains_.empty()) {
    return;
  }
  text_ += "*" + table_ + "\n";
  for (const std::string& chain : chains_) {
    text_ += "-F " + chain + "\n";
  }
  for (const std::string& hook : hooks_) {
    text_ += "-D " + hook + "\n";
  }
  sort_for_deletion(chains_);
  for (const std::string& chain : chains_) {
    if (!held_.contains(chain)) {
      text_ += "-X " + chain + "\n";
    }
  }
  text_ += "COMMIT\n";
}

}  // namespace ipt

core::Result<void> remove_kube_proxy_rules(ipt::Runner& runner,
                                           const std::vector<std::string>& kept) {
  const auto removal = [&](const ipt::Programs& programs) -> core::Result<std::string> {
    if (ipt::contains(kept, programs.variant_name())) {
      return std::string();
    }
    ipt::KubeProxyRemoval of_all;
    const auto read = ipt::read_saved(runner, programs,
                                      [&](std::string_view line) { of_all.take(line); });
    if (!read) {
      return tl::make_unexpected(read.error());
    }
    return of_all.text();
  };
  return ipt::restore_all_that(runner, ipt::has_kube_proxy_chains, removal);
}

}  // namespace sluice::kni
