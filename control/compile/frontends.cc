// Contested frontends: rule 24.5 point 4, and the order of kinds within one Service.
#include "control/compile/frontends.h"

#include <algorithm>
#include <tuple>
#include <utility>

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

void FrontendContest::touch(Contests::value_type& contest) {
  if (!std::exchange(contest.second.touched, true)) {
    touched_.push_back(&contest);
  }
}

void FrontendContest::add(const core::FrontendKey& key, const Claim& claim) {
  auto& contest = *contests_.try_emplace(key).first;
  contest.second.claims.push_back(claim);
  touch(contest);
}

void FrontendContest::remove(const core::FrontendKey& key, core::ServiceSlot slot,
                             core::FrontendKind kind) {
  const auto at = contests_.find(key);
  if (at == contests_.end()) {
    return;
  }
  std::erase_if(at->second.claims,
                [&](const Claim& c) { return c.slot == slot && c.kind == kind; });
  touch(*at);
}

bool FrontendContest::settle(core::TableBuilder& builder) {
  bool reported = false;
  for (std::size_t i = 0; i < touched_.size(); ++i) {
    constexpr std::size_t kAhead = 8;
    if (i + kAhead < touched_.size()) {
      __builtin_prefetch(touched_[i + kAhead]);
    }
    auto& [key, contest] = *touched_[i];
    contest.touched = false;
    reported = (!lost_.empty() && lost_.erase(key) != 0) || reported;
    std::vector<Claim>& claims = contest.claims;
    if (claims.empty()) {
      builder.remove_frontend(key);
      contests_.erase(core::FrontendKey(key));
      continue;
    }
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
  contests_.clear();
  touched_.clear();
  lost_.clear();
}

}  // namespace sluice::compile
