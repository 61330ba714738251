// The chains of one service port.
#include <algorithm>
#include <array>
#include <cstdio>
#include <utility>

#include "kni/iptables/names.h"
#include "kni/iptables/render.h"
#include "kni/iptables/words.h"

namespace sluice::kni::ipt {
namespace {

using core::EndpointIndex;
using core::ForwardingMode;
using core::SchedulerKind;
using core::TrafficPolicy;

constexpr const char* kFromHost = "-m addrtype --src-type LOCAL ";

bool has_weights(SchedulerKind scheduler) {
  return scheduler == SchedulerKind::kWrandom || scheduler == SchedulerKind::kWrr;
}

class Writer {
 public:
  Writer(const core::ForwardingTable& table, core::ServiceSlot slot, bool comments)
      : table_(table),
        s_(*table.service(slot)),
        comments_(comments),
        name_(safe_name(s_.name)),
        hash_(chain_hash(s_.name, s_.protocol)) {}

  Chains render() {
    if (s_.crosses_families()) {
      return {};
    }
    const bool has_cluster = s_.uses_cluster && !s_.cluster.empty();
    const bool has_local = s_.uses_local && !s_.local.empty();
    if (s_.has_internal) {
      add_cluster_ip_mark();
    }
    if (has_cluster) {
      add_list(cluster_chain(), s_.cluster);
    }
    if (has_local) {
      add_list(local_chain(), s_.local);
    }
    if (s_.external_dispatch()) {
      add_external(has_local);
      add_ranges();
    }
    for (const EndpointIndex i : s_.all_reachable) {
      add_endpoint(s_.endpoint(i));
    }
    return std::move(out_);
  }

 private:
  [[nodiscard]] std::string cluster_chain() const { return kClusterPrefix + hash_; }
  [[nodiscard]] std::string local_chain() const { return kLocalPrefix + hash_; }
  [[nodiscard]] std::string endpoint_chain(const core::Endpoint& e) const {
    return kEndpointPrefix + chain_hash(s_.name, s_.protocol, core::to_string(e.address, e.port));
  }
  [[nodiscard]] std::string say(const std::string& text) const { return comment(text, comments_); }

  /// P-2, for the cluster IP's own port.
  void add_cluster_ip_mark() {
    std::vector<std::string>& rules =
        out_[s_.internal_policy == TrafficPolicy::kLocal ? local_chain() : cluster_chain()];
    const bool all = table_.node().masquerade_all;
    const std::string others = pod_local_match(table_.node().of(s_.family).detector, true);
    if (all || !others.empty()) {
      rules.push_back(say(name_ + " cluster IP") +
                      frontend_match(s_.protocol, s_.cluster_ip, s_.port) + (all ? "" : others) +
                      "-j " + kMarkChain);
    }
  }

  /// the first candidate that remembers the source, else a choice by share.
  void add_list(const std::string& chain, const std::vector<EndpointIndex>& list) {
    std::vector<std::string>& rules = out_[chain];
    const bool weighted = has_weights(s_.scheduler);
    const auto weight = [&](EndpointIndex i) -> std::uint64_t {
      return weighted ? std::max<std::uint64_t>(s_.endpoint(i).weight, 1) : 1;
    };
    std::uint64_t left = 0;
    std::vector<std::pair<std::string, std::string>> targets;  // comment, chain
    for (const EndpointIndex i : list) {
      const core::Endpoint& e = s_.endpoint(i);
      targets.emplace_back(say(name_ + " -> " + core::to_string(e.address, e.port)),
                           endpoint_chain(e));
      left += weight(i);
    }
    if (s_.affinity_seconds != 0) {
      for (const auto& [text, target] : targets) {
        rules.push_back(text + "-m recent --name " + target + " --rcheck --seconds " +
                        std::to_string(s_.affinity_seconds) + " --reap -j " + target);
      }
    }
    for (std::size_t i = 0; i < list.size(); ++i) {
      const std::uint64_t mine = weight(list[i]);
      std::string rule = targets[i].first;
      if (i + 1 < list.size()) {
        rule += "-m statistic --mode random --probability " + probability_text(mine, left) + " ";
      }
      rules.push_back(rule + "-j " + targets[i].second);
      left -= mine;
    }
  }

  /// P-5, all policies and modes.
  void add_external(bool has_local) {
    std::vector<std::string>& rules = out_[kExternalPrefix + hash_];
    const std::string where = name_ + " external destinations";
    const std::string mark = std::string("-j ") + kMarkChain;
    const std::string to_cluster = "-j " + cluster_chain();
    out_[cluster_chain()];  // there even when all endpoints have weight 0
    const std::string mark_all = say("masquerade traffic for " + where) + mark;
    const std::string mark_host = say("masquerade LOCAL traffic for " + where) + kFromHost + mark;
    if (s_.external_policy == TrafficPolicy::kCluster) {
      rules.push_back(s_.marks_external() ? mark_all : mark_host);
      rules.push_back(to_cluster);
      return;
    }
    if (s_.mode == ForwardingMode::kFullNat) {
      rules.push_back(mark_all);
    }
    if (const std::string pods = pod_local_match(table_.node().of(s_.family).detector, false);
        !pods.empty()) {
      rules.push_back(say("pod traffic for " + where) + pods + to_cluster);
    }
    rules.push_back(mark_host);
    rules.push_back(say("route LOCAL traffic for " + where) + kFromHost + to_cluster);
    if (has_local) {
      rules.push_back("-j " + local_chain());
    }
  }

  /// F-1..F-7. What no rule lets through stays untranslated and meets KUBE-PROXY-FIREWALL.
  void add_ranges() {
    if (s_.allowed_sources.empty() || s_.load_balancer_vips.empty()) {
      return;
    }
    std::vector<std::string>& rules = out_[kRangesPrefix + hash_];
    for (const core::Cidr& range : s_.allowed_sources) {
      const auto& vips = s_.load_balancer_vips;
      const bool is_vip = range.length() == range.address().size() * 8 &&
                          std::find(vips.begin(), vips.end(), range.address()) != vips.end();
      rules.push_back(say(name_ + " loadbalancer IP") + "-s " +
                      (is_vip ? core::to_string(range.address()) : core::to_string(range)) +
                      " -j " + kExternalPrefix + hash_);
    }
    // Says so to whoever reads the chain; in a large cluster it has nothing to say.
    if (comments_) {
      std::string text = say("other traffic to " + name_ + " will be dropped by " + kFirewallChain);
      text.pop_back();
      rules.push_back(std::move(text));
    }
  }

  /// Hairpin, memory, translation.
  void add_endpoint(const core::Endpoint& e) {
    const std::string chain = endpoint_chain(e);
    std::vector<std::string>& rules = out_[chain];
    rules.push_back(say(name_) + "-s " + core::to_string(e.address) + " -j " + kMarkChain);
    const std::string remember =
        s_.affinity_seconds != 0 ? "-m recent --name " + chain + " --set " : "";
    rules.push_back(say(name_) + remember + protocol_match(s_.protocol) +
                    "-j DNAT --to-destination " + core::to_string(e.address, e.port));
  }

  const core::ForwardingTable& table_;
  const core::ServicePort& s_;
  const bool comments_;
  const std::string name_;
  const std::string hash_;
  Chains out_;
};

}  // namespace

Chains render_service(const core::ForwardingTable& table, core::ServiceSlot slot, bool comments) {
  return Writer(table, slot, comments).render();
}

std::string probability_text(std::uint64_t weight, std::uint64_t left) {
  std::array<char, 32> out{};
  std::snprintf(out.data(), out.size(), "%.10f",
                static_cast<double>(weight) / static_cast<double>(left));
  return out.data();
}

core::Capabilities iptables_capabilities() {
  return {"iptables",
          {SchedulerKind::kRandom, SchedulerKind::kWrandom, SchedulerKind::kWrr},
          {ForwardingMode::kByRule, ForwardingMode::kNat, ForwardingMode::kFullNat}};
}

}  // namespace sluice::kni::ipt
