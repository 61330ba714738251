#include "test/conformance/wire_probe.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "test/conformance/case_text.h"

namespace sluice::conformance {
namespace {

constexpr std::size_t kRefusedFlows = 2 * WireNode::kWorkers;
/// Flows of one client that affinity must keep together.
constexpr std::size_t kPinnedFlows = 2 * WireNode::kWorkers;
constexpr std::size_t kFlowsPerEndpoint = 48;
constexpr std::size_t kMostFlows = 2048;
/// Deviation from the equal share, in standard deviations. The choices come from a fixed seed.
constexpr double kMostDeviation = 5.5;
/// Times the client comes back when its pin is over, per endpoint.
constexpr std::size_t kReturnsPerEndpoint = 12;
/// Below the ports of hosts' own connections, of node ports and of source translation.
constexpr std::uint16_t kFirstClientPort = 10000;
constexpr std::uint16_t kClientPorts = 19000;

std::optional<std::uint32_t> seconds_of(const std::string& affinity) {
  if (affinity.empty() || affinity == "none") {
    return std::nullopt;
  }
  return static_cast<std::uint32_t>(std::stoul(affinity));
}

}  // namespace

ProbeJudge::ProbeJudge(WireNode& node, Fresh fresh, bool thorough)
    : node_(node), fresh_(std::move(fresh)), thorough_(thorough) {}

std::vector<std::string> ProbeJudge::judge(const Probe& probe) {
  failures_.clear();
  chosen_.clear();
  what_ = probe.from_kind + " " + probe.from_ip + " -> " + probe.to + ":" +
          std::to_string(probe.port) + "/" + probe.protocol;
  if (probe.verdict == "forward") {
    judge_forward(probe);
  } else {
    judge_refusals(probe);
  }
  return std::exchange(failures_, {});
}

WireFlow::Spec ProbeJudge::spec_of(const Probe& probe, std::uint16_t sport) {
  const std::uint32_t n = flows_++;
  WireFlow::Spec s;
  s.protocol = protocol_of(probe.protocol);
  s.client.address = core::parse_address(probe.from_ip).value_or(core::IpAddress{});
  s.client.port =
      sport != 0 ? sport : static_cast<std::uint16_t>(kFirstClientPort + n % kClientPorts);
  s.to.address = core::parse_address(probe.to).value_or(core::IpAddress{});
  s.to.port = probe.port;
  s.port = node_.port_of(probe.iface);
  s.from_host = probe.from_kind == "node";
  s.id = 0x10000 + 16 * n;
  return s;
}

void ProbeJudge::judge_refusals(const Probe& probe) {
  for (std::size_t k = 0; k < kRefusedFlows; ++k) {
    WireFlow flow(node_, spec_of(probe, k == 0 ? probe.sport : std::uint16_t{0}));
    expect("", probe.verdict, flow.open());
  }
}

void ProbeJudge::judge_forward(const Probe& probe) {
  chosen_ = send(node_, probe, probe.sport);
  if (chosen_.empty()) {
    return;
  }
  judge_labels(probe);
  if (!thorough_) {
    return;
  }
  if (const auto seconds = seconds_of(probe.affinity)) {
    judge_one_endpoint(probe);
    if (failures_.empty()) {
      judge_pins(probe, *seconds);
    }
  } else {
    judge_spread(probe);
  }
}

std::string ProbeJudge::send(WireNode& node, const Probe& probe, std::uint16_t sport) {
  WireFlow flow(node, spec_of(probe, sport));
  const std::string verdict = flow.open();
  expect("", probe.verdict, verdict);
  if (verdict != "forward") {
    return {};
  }
  judge_source(probe, flow);
  const std::string backend = flow.backend_text();
  flow.converse();
  if (!flow.error().empty()) {
    fail(flow.error());
  }
  return backend;
}

void ProbeJudge::judge_source(const Probe& probe, const WireFlow& flow) {
  const auto special = probe.snat_if_endpoint.find(flow.backend_text());
  const std::string& wanted =
      special != probe.snat_if_endpoint.end() ? special->second : probe.snat;
  if (!wanted.empty()) {
    expect(" to " + flow.backend_text() + " snat", wanted, flow.source());
  }
}

void ProbeJudge::judge_labels(const Probe& probe) {
  if (!probe.pick.empty()) {
    labels_[probe.pick] = chosen_;
  }
  if (!probe.same_as.empty()) {
    expect(" same endpoint as '" + probe.same_as + "'", labels_[probe.same_as], chosen_);
  }
}

void ProbeJudge::judge_spread(const Probe& probe) {
  if (!probe.endpoints) {
    return;
  }
  const std::size_t n = std::max<std::size_t>(probe.endpoints->size(), 1);
  const std::size_t total = std::min(n * kFlowsPerEndpoint, kMostFlows);
  std::map<std::string, std::size_t> taken;
  for (std::size_t k = 0; k < total && failures_.empty(); ++k) {
    ++taken[send(node_, probe, 0)];
  }
  std::set<std::string> got;
  for (const auto& [endpoint, flows] : taken) {
    got.insert(endpoint);
  }
  expect(" endpoints", join({probe.endpoints->begin(), probe.endpoints->end()}), join(got));
  const double share = static_cast<double>(total) / static_cast<double>(n);
  const double most = kMostDeviation * std::sqrt(share);
  for (const auto& [endpoint, flows] : taken) {
    if (std::abs(static_cast<double>(flows) - share) > most) {
      fail("spread: expected about " + std::to_string(std::lround(share)) + " of " +
           std::to_string(total) + " flows at " + endpoint + ", got " + std::to_string(flows));
    }
  }
}

/// all flows of the client go where the first went.
void ProbeJudge::judge_one_endpoint(const Probe& probe) {
  for (std::size_t k = 0; k < kPinnedFlows; ++k) {
    expect(" pinned to", chosen_, send(node_, probe, 0));
  }
  const auto& wanted = probe.endpoints;
  if (wanted && std::find(wanted->begin(), wanted->end(), chosen_) == wanted->end()) {
    expect(" endpoint one of", join({wanted->begin(), wanted->end()}), chosen_);
  }
}

/// without a past: pinned while the time runs, which every flow renews, free after it.
void ProbeJudge::judge_pins(const Probe& probe, std::uint32_t seconds) {
  if (!probe.endpoints) {
    return;
  }
  const auto node = fresh_();
  std::set<std::string> got;
  const std::size_t returns = kReturnsPerEndpoint * probe.endpoints->size();
  for (std::size_t k = 0; k < returns && failures_.empty(); ++k) {
    const std::string first = send(*node, probe, 0);
    got.insert(first);
    for (int again = 0; again < 2; ++again) {
      node->advance(seconds - 0.5);
      expect(" still pinned to", first, send(*node, probe, 0));
    }
    node->advance(seconds + 0.5);
  }
  if (failures_.empty()) {
    expect(" endpoints in the course of time",
           join({probe.endpoints->begin(), probe.endpoints->end()}), join(got));
  }
}

void ProbeJudge::fail(const std::string& what) {
  const std::string line = what_ + ": " + what;
  if (std::find(failures_.begin(), failures_.end(), line) == failures_.end()) {
    failures_.push_back(line);
  }
}

void ProbeJudge::expect(const std::string& what, const std::string& wanted,
                        const std::string& got) {
  const std::string line = what_ + what + ": expected " + wanted + ", got " + got;
  if (wanted != got && std::find(failures_.begin(), failures_.end(), line) == failures_.end()) {
    failures_.push_back(line);
  }
}

}  // namespace sluice::conformance
