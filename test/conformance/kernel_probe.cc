#include "test/conformance/kernel_probe.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "test/conformance/case_text.h"

namespace sluice::conformance {
namespace {

constexpr std::size_t kRefusedFlows = 4;
constexpr std::size_t kPinnedFlows = 8;
constexpr std::size_t kFlowsPerEndpoint = 48;
constexpr std::size_t kMostFlows = 1024;
constexpr std::size_t kReturnsPerEndpoint = 24;
/// Deviation from the equal share, in standard deviations: one run in ten million.
constexpr double kMostDeviation = 5.5;

std::string text_of(const SocketName& name) {
  return core::to_string(name.address, name.port);
}

}  // namespace

std::vector<std::string> KernelProbeJudge::judge(const Probe& probe) {
  failures_.clear();
  chosen_.clear();
  what_ = probe.from_kind + " " + probe.from_ip + " -> " + probe.to + ":" +
          std::to_string(probe.port) + "/" + probe.protocol;
  const core::IpAddress from = *core::parse_address(probe.from_ip);
  if (probe.from_kind == "node") {
    place_ = NetNamespaceSet::kNode;
  } else {
    place_ = !probe.iface.empty() ? probe.iface : net_.where(from);
    net_.place(from, place_);
  }
  if (probe.verdict == "forward") {
    judge_forward(probe);
  } else {
    judge_refusals(probe);
  }
  return std::exchange(failures_, {});
}

SocketNet::Seen KernelProbeJudge::open(const Probe& probe, std::uint16_t sport,
                                       SocketNet::Refused refused) {
  return sockets_.open({protocol_of(probe.protocol), place_,
                        {*core::parse_address(probe.from_ip), sport},
                        {*core::parse_address(probe.to), probe.port}},
                       refused);
}

/// Verdict of a flow in the words of a case. Untouched means that the destination itself got it.
void KernelProbeJudge::judge_refusals(const Probe& probe) {
  const SocketName to{*core::parse_address(probe.to), probe.port};
  if (probe.verdict == "pass") {
    if (net_.where(to.address) == NetNamespaceSet::kElsewhere) {
      net_.place(to.address, NetNamespaceSet::kElsewhere);
    }
    sockets_.serve(protocol_of(probe.protocol), to);
  }
  for (std::size_t k = 0; k < kRefusedFlows; ++k) {
    const SocketNet::Seen seen = open(probe, k == 0 ? probe.sport : std::uint16_t{0},
                                      SocketNet::Refused::kByARule);
    std::string got = seen.verdict;
    if (seen.verdict == "served") {
      got = seen.server == to && seen.source == seen.client ? "pass"
                                                            : "forward to " + text_of(seen.server);
    } else if (seen.verdict == "rejected" || seen.verdict == "dropped") {
      got = seen.verdict == "rejected" ? "reject" : "drop";
    }
    expect("", probe.verdict, got);
  }
}

void KernelProbeJudge::judge_forward(const Probe& probe) {
  chosen_ = send(probe, probe.sport);
  if (chosen_.empty()) {
    return;
  }
  judge_labels(probe);
  if (probe.affinity.empty() || probe.affinity == "none") {
    judge_spread(probe);
  } else {
    judge_affinity(probe, static_cast<std::uint32_t>(std::stoul(probe.affinity)));
  }
}

std::string KernelProbeJudge::send(const Probe& probe, std::uint16_t sport) {
  const SocketNet::Seen seen = open(probe, sport, SocketNet::Refused::kNot);
  if (seen.verdict != "served") {
    expect("", "forward", seen.verdict);
    return {};
  }
  judge_source(probe, seen);
  return text_of(seen.server);
}

void KernelProbeJudge::judge_source(const Probe& probe, const SocketNet::Seen& seen) {
  const std::string server = text_of(seen.server);
  const auto special = probe.snat_if_endpoint.find(server);
  const std::string& wanted =
      special != probe.snat_if_endpoint.end() ? special->second : probe.snat;
  if (wanted.empty()) {
    return;
  }
  std::string got = "of " + text_of(seen.source);
  if (seen.source == seen.client) {
    got = "none";
  } else if (net_.is_node_address(seen.source.address)) {
    got = "masquerade";
  }
  expect(" to " + server + " snat", wanted, got);
}

void KernelProbeJudge::judge_spread(const Probe& probe) {
  if (!probe.endpoints) {
    return;
  }
  const std::size_t n = probe.endpoints->size();
  const std::size_t flows = std::min(kMostFlows, n * kFlowsPerEndpoint);
  std::map<std::string, std::size_t> counts;
  for (std::size_t k = 0; k < flows && failures_.empty(); ++k) {
    ++counts[send(probe, 0)];
  }
  std::set<std::string> got = {chosen_};
  const double share = 1.0 / static_cast<double>(n);
  const double mean = static_cast<double>(flows) * share;
  const double most = kMostDeviation * std::sqrt(mean * (1 - share));
  for (const auto& [endpoint, count] : counts) {
    got.insert(endpoint);
    if (n > 1 && std::abs(static_cast<double>(count) - mean) > most) {
      fail(" share of " + endpoint + ": expected about " + std::to_string(mean) + ", got " +
           std::to_string(count));
    }
  }
  expect(" endpoints", join({probe.endpoints->begin(), probe.endpoints->end()}), join(got));
}

void KernelProbeJudge::judge_affinity(const Probe& probe, std::uint32_t seconds) {
  for (std::size_t k = 0; k < kPinnedFlows && failures_.empty(); ++k) {
    expect(" flow " + std::to_string(k + 2) + " of the client", chosen_, send(probe, 0));
  }
  const core::IpAddress from = *core::parse_address(probe.from_ip);
  const auto remembered = node_.remembered(from);
  if (std::find(remembered.begin(), remembered.end(), seconds) == remembered.end()) {
    expect(" affinity", std::to_string(seconds),
           remembered.empty() ? "none" : std::to_string(remembered.front()));
  }
  if (!probe.endpoints) {
    return;
  }
  std::set<std::string> got = {chosen_};
  const std::set<std::string> wanted(probe.endpoints->begin(), probe.endpoints->end());
  for (std::size_t k = 0; may_wipe_ && failures_.empty() && k < kReturnsPerEndpoint * wanted.size();
       ++k) {
    node_.wipe();
    got.insert(send(probe, 0));
  }
  if (may_wipe_ ? got != wanted : wanted.count(chosen_) == 0) {
    expect(" endpoints", join(wanted), join(got));
  }
}

void KernelProbeJudge::judge_labels(const Probe& probe) {
  if (!probe.pick.empty()) {
    labels_[probe.pick] = chosen_;
  }
  if (!probe.same_as.empty()) {
    expect(" same endpoint as '" + probe.same_as + "'", labels_[probe.same_as], chosen_);
  }
}

void KernelProbeJudge::fail(const std::string& what) {
  failures_.push_back(what_ + what);
}

void KernelProbeJudge::expect(const std::string& what, const std::string& wanted,
                              const std::string& got) {
  if (wanted != got) {
    fail(what + ": expected " + wanted + ", got " + got);
  }
}

}  // namespace sluice::conformance
