// Contested frontends: rule 24.5 point 4, and the order of kinds within one Service.
#include "control/compile/frontends.h"

#include <algorithm>
#include <tuple>

namespace sluice::compile {
namespace {

// Within one Service a VIP comes before an equal external IP, so that its source ranges hold (P-1).
int rank(core::FrontendKind kind) {
  switch (kind) {
    case core::FrontendKind::kClusterIp:
      return 0;
    case core::FrontendKind::kLoadBalancerVip:
      return 1;
    case core::FrontendKind::kExternalIp:
      return 2;
    case core::FrontendKind::kNodePort:
      return 3;
  }
  return 3;
}

bool beats(const Claim& a, const Claim& b) {
  const auto order = [](const Claim& c) {
    return std::tuple<bool, std::int64_t, const model::ObjectName&, std::uint16_t, int>(
        !c.dispatches, c.created, *c.service, c.port, rank(c.kind));
  };
  return order(a) < order(b);
}

const char* field_of(core::FrontendKind kind) {
  switch (kind) {
    case core::FrontendKind::kClusterIp:
      return "spec.clusterIP";
    case core::FrontendKind::kLoadBalancerVip:
      return "status.loadBalancer.ingress";
    case core::FrontendKind::kExternalIp:
      return "spec.externalIPs";
    case core::FrontendKind::kNodePort:
      return "spec.ports";
  }
  return "";
}

std::string text_of(const core::FrontendKey& key) {
  const std::string protocol(core::protocol_name(key.protocol));
  return (key.node_port ? "node port " + std::to_string(key.port)
                        : core::to_string(key.address, key.port)) +
         "/" + protocol;
}

}  // namespace

void FrontendContest::add(const core::FrontendKey& key, const Claim& claim) {
  claims_[key].push_back(claim);
  touched_.push_back(key);
}

void FrontendContest::remove(const core::FrontendKey& key, core::ServiceSlot slot,
                             core::FrontendKind kind) {
  const auto at = claims_.find(key);
  if (at == claims_.end()) {
    return;
  }
  std::erase_if(at->second, [&](const Claim& c) { return c.slot == slot && c.kind == kind; });
  if (at->second.empty()) {
    claims_.erase(at);
  }
  touched_.push_back(key);
}

bool FrontendContest::settle(core::TableBuilder& builder) {
  bool reported = false;
  std::sort(touched_.begin(), touched_.end());
  touched_.erase(std::unique(touched_.begin(), touched_.end()), touched_.end());
  for (const core::FrontendKey& key : touched_) {
    reported = lost_.erase(key) != 0 || reported;
    const auto at = claims_.find(key);
    if (at == claims_.end()) {
      builder.remove_frontend(key);
      continue;
    }
    std::vector<Claim>& claims = at->second;
    std::sort(claims.begin(), claims.end(), beats);
    const Claim& winner = claims.front();
    builder.set_frontend(key, {winner.slot, winner.kind});
    for (const Claim& c : claims) {
      if (c.slot != winner.slot) {
        reported = true;
        lost_[key].push_back({ReportLine::Kind::kFrontendLost, "service " + c.service->text(),
                              field_of(c.kind),
                              text_of(key) + " belongs to service " + winner.service->text()});
      }
    }
  }
  touched_.clear();
  return reported;
}

void FrontendContest::append_report(std::vector<ReportLine>& lines) const {
  for (const auto& [key, lost] : lost_) {
    lines.insert(lines.end(), lost.begin(), lost.end());
  }
}

void FrontendContest::clear() {
  claims_.clear();
  touched_.clear();
  lost_.clear();
}

}  // namespace sluice::compile
