#include "control/http/publisher_metrics.h"

#include <algorithm>
#include <string>

namespace sluice::http {
namespace {

using core::Family;
using core::MetricKind;

constexpr Family kFamilies[] = {Family::kIpv4, Family::kIpv6};

double seconds_of(std::chrono::system_clock::time_point at) {
  return std::chrono::duration<double>(at.time_since_epoch()).count();
}

void collect_changes(const publish::Status& status, const publish::Standing& standing,
                     core::MetricVisitor& out) {
  const auto both = [&](const std::string& what, const std::string& help, std::uint64_t total,
                        std::uint64_t in_force) {
    const std::string name = "kubeproxy_sync_proxy_rules_" + what + "_changes_";
    out.number(MetricKind::kCounter, name + "total", "Changes of " + help + " received.", "",
               static_cast<double>(total));
    out.number(MetricKind::kGauge, name + "pending",
               "Changes of " + help + " that are not in force yet.", "",
               static_cast<double>(total - std::min(total, in_force)));
  };
  both("service", "Services", status.changed_objects.services, standing.in_force.changes.services);
  both("endpoint", "EndpointSlices", status.changed_objects.endpoint_slices,
       standing.in_force.changes.endpoint_slices);
}

/// The sink that is farthest behind stands for both families, as all sinks apply both.
void collect_times(const publish::Status& status, core::MetricVisitor& out) {
  if (status.sinks.empty()) {
    return;
  }
  const auto by = [&](auto time) {
    const auto least = std::min_element(
        status.sinks.begin(), status.sinks.end(),
        [&](const auto& a, const auto& b) { return a.*time < b.*time; });
    return seconds_of((*least).*time);
  };
  for (const Family family : kFamilies) {
    const std::string label = core::family_label(family);
    out.number(MetricKind::kGauge, "kubeproxy_sync_proxy_rules_last_timestamp_seconds",
               "Time of the last successful sync.", label,
               by(&publish::SinkStatus::last_success));
    out.number(MetricKind::kGauge, "kubeproxy_sync_proxy_rules_last_queued_timestamp_seconds",
               "Time a sync was last asked for.", label, by(&publish::SinkStatus::last_queued));
  }
}

void collect_programming(const publish::Publisher& publisher, core::MetricVisitor& out) {
  for (const Family family : kFamilies) {
    out.durations("kubeproxy_network_programming_duration_seconds",
                  "From what made endpoints change until it was in force.",
                  core::family_label(family), publisher.programming_durations(family));
  }
}

void collect_sinks(const publish::Status& status, core::MetricVisitor& out) {
  for (const publish::SinkStatus& sink : status.sinks) {
    const std::string label = "sink=\"" + sink.name + "\"";
    out.number(MetricKind::kCounter, "sluice_sink_applies_total", "Tables put into force.", label,
               static_cast<double>(sink.applies));
    out.number(MetricKind::kCounter, "sluice_sink_failures_total",
               "Tables that could not be put into force; each is tried again.", label,
               static_cast<double>(sink.failures));
    out.number(MetricKind::kGauge, "sluice_sink_unsupported",
               "What Services ask for and this sink cannot do.", label,
               static_cast<double>(sink.unsupported.size()));
  }
}

void collect_answers(const AnswerCounts& counts, core::MetricVisitor& out) {
  const auto row = [&](const char* name, const char* help, const char* code, std::uint64_t value) {
    out.number(MetricKind::kCounter, name, help, std::string("code=\"") + code + "\"",
               static_cast<double>(value));
  };
  constexpr const char* kHealthz = "kubeproxy_proxy_healthz_total";
  constexpr const char* kLivez = "kubeproxy_proxy_livez_total";
  row(kHealthz, "Answers of /healthz.", "200", counts.healthz_200);
  row(kHealthz, "Answers of /healthz.", "503", counts.healthz_503);
  row(kLivez, "Answers of /livez.", "200", counts.livez_200);
  row(kLivez, "Answers of /livez.", "503", counts.livez_503);
}

}  // namespace

void collect_no_local_endpoints(const core::ForwardingTable& table, core::MetricVisitor& out) {
  std::uint64_t internal[2] = {};
  std::uint64_t external[2] = {};
  for (std::uint32_t i = 0; i < table.slot_limit(); ++i) {
    const core::ServicePort* s = table.service(static_cast<core::ServiceSlot>(i));
    if (s == nullptr) {
      continue;
    }
    const std::size_t family = s->family == Family::kIpv4 ? 0 : 1;
    internal[family] += s->lacks_local(true) ? 1 : 0;
    external[family] += s->lacks_local(false) ? 1 : 0;
  }
  for (const Family family : kFamilies) {
    const std::size_t at = family == Family::kIpv4 ? 0 : 1;
    const auto row = [&](const char* policy, std::uint64_t value) {
      out.number(MetricKind::kGauge, "kubeproxy_sync_proxy_rules_no_local_endpoints_total",
                 "Service ports with a Local policy and endpoints on other nodes only.",
                 std::string("traffic_policy=\"") + policy + "\"," + core::family_label(family),
                 static_cast<double>(value));
    };
    row("internal", internal[at]);
    row("external", external[at]);
  }
}

void PublisherMetrics::collect(core::MetricVisitor& out) const {
  const publish::Status status = publisher_.status();
  const publish::Standing standing = publisher_.standing();
  collect_changes(status, standing, out);
  collect_times(status, out);
  collect_programming(publisher_, out);
  collect_sinks(status, out);
  if (answers_) {
    collect_answers(answers_(), out);
  }
  if (standing.in_force.table != nullptr) {
    collect_no_local_endpoints(*standing.in_force.table, out);
  }
}

}  // namespace sluice::http
