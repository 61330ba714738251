#include "test/conformance/wire_conntrack.h"

#include <utility>

namespace sluice::conformance {
namespace {

/// New flows until one goes to the wanted endpoint.
constexpr int kTries = 64;

std::string text(const YAML::Node& entry, const char* key) {
  return entry[key].as<std::string>();
}

Probe first_packet_of(const YAML::Node& entry) {
  Probe p;
  p.from_kind = "external";
  p.from_ip = text(entry, "src");
  p.to = text(entry, "dst");
  p.port = entry["dport"].as<std::uint16_t>();
  p.protocol = text(entry, "proto");
  return p;
}

}  // namespace

WireConntrack::Result WireConntrack::perform(const YAML::Node& step) {
  Result result;
  for (const YAML::Node& entry : step["entries"]) {
    install(entry, result);
  }
  check(step["deleted"], false, result);
  check(step["kept"], true, result);
  return result;
}

void WireConntrack::install(const YAML::Node& entry, Result& result) {
  const std::string id = text(entry, "id");
  if (text(entry, "dst") == text(entry, "replySrc")) {
    result.skipped.push_back("flow " + id + " was never translated");
    return;
  }
  const auto address = core::parse_address(text(entry, "replySrc")).value_or(core::IpAddress{});
  const auto port = entry["replySport"].as<std::uint16_t>();
  const std::string backend = core::to_string(address, port);
  bool made = try_install(entry, backend);
  if (!made) {
    past_(address, port, [&] { made = try_install(entry, backend); });
  }
  if (!made) {
    result.skipped.push_back("flow " + id + ": no packet is translated to " + backend);
  }
}

/// @return false: the rules in force lead no packet of the entry to `backend`.
bool WireConntrack::try_install(const YAML::Node& entry, const std::string& backend) {
  const Probe probe = first_packet_of(entry);
  auto sport = entry["sport"].as<std::uint16_t>();
  for (int k = 0; k < kTries; ++k) {
    auto flow = std::make_unique<WireFlow>(node_, probes_.spec_of(probe, sport));
    sport = 0;  // the choice is random: another flow, another endpoint
    if (flow->open() != "forward") {
      return false;
    }
    if (flow->backend_text() == backend) {
      flow->answer();
      flows_[text(entry, "id")] = {std::move(flow), backend};
      return true;
    }
  }
  return false;
}

void WireConntrack::check(const YAML::Node& ids, bool kept, Result& result) {
  for (const YAML::Node& id : ids) {
    const auto at = flows_.find(id.as<std::string>());
    if (at == flows_.end()) {
      continue;  // said when it was to be installed
    }
    auto& [flow, backend] = at->second;
    if (kept && !present_(backend)) {
      result.skipped.push_back("flow " + at->first + ": a worker moves it at once when " + backend +
                               " leaves, so it never waits for a sync");
      continue;
    }
    ++result.judged;
    const std::string verdict = flow->go_on();
    const std::string now = verdict == "forward" ? flow->backend_text() : verdict;
    if (verdict == "forward") {
      flow->answer();
    }
    if ((now == backend) != kept || verdict != "forward") {
      result.failures.push_back("flow " + at->first + ": expected " +
                                (kept ? "still " : "other than ") + backend + ", got " + now);
    }
    if (!flow->error().empty()) {
      result.failures.push_back("flow " + at->first + ": " + flow->error());
    }
  }
}

}  // namespace sluice::conformance
