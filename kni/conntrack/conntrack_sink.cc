#include "kni/conntrack/conntrack_sink.h"

#include <string>

namespace sluice::kni {
namespace {

using core::MetricKind;

bool has_udp(const core::ForwardingTable& table) {
  for (std::uint32_t i = 0; i < table.slot_limit(); ++i) {
    const auto* service = table.service(static_cast<core::ServiceSlot>(i));
    if (service != nullptr && service->protocol == core::Protocol::kUdp) {
      return true;
    }
  }
  return false;
}

}  // namespace

core::Result<core::ApplyReport> ConntrackSink::apply(const core::TablePtr& table) {
  auto report = sink_.apply(table);
  if (!report) {
    return report;
  }
  const bool due = again_ || (applied_ == nullptr
                                  ? has_udp(*table)
                                  : core::udp_endpoints_changed(applied_.get(), *table));
  if (due) {
    again_ = !remove_stale(*table);
  }
  applied_ = table;
  return report;
}

/// @return whether the flows could be listed.
bool ConntrackSink::remove_stale(const core::ForwardingTable& table) {
  ++counters_.passes;
  const auto began = Clock::now();
  const auto result = conntrack_->remove_udp(
      [&](const core::UdpFlow& flow) { return core::is_stale(table, flow); });
  durations_.record(Clock::now() - began);
  if (!result) {
    ++counters_.failed;
    if (warn_) {
      warn_(result.error().message);
    }
    return false;
  }
  counters_.removed_v4 += result->removed_v4;
  counters_.removed_v6 += result->removed_v6;
  counters_.failed += result->failed;
  if (result->failed != 0 && warn_) {
    warn_("conntrack: " + std::to_string(result->failed) + " stale UDP flows could not be removed");
  }
  return true;
}

void ConntrackSink::collect(core::MetricVisitor& out) const {
  const auto number = [&](MetricKind kind, const char* name, const char* help,
                          const std::string& label, std::uint64_t value) {
    out.number(kind, name, help, label, static_cast<double>(value));
  };
  for (const core::Family family : {core::Family::kIpv4, core::Family::kIpv6}) {
    const std::string label = core::family_label(family);
    const auto& removed =
        family == core::Family::kIpv4 ? counters_.removed_v4 : counters_.removed_v6;
    out.durations("kubeproxy_conntrack_reconciler_sync_duration_seconds",
                  "Duration of the search for stale UDP flows.", label, durations_);
    number(MetricKind::kCounter, "kubeproxy_conntrack_reconciler_deleted_entries_total",
           "Stale UDP flows removed.", label, removed);
  }
  number(MetricKind::kCounter, "sluice_conntrack_failures_total",
         "Flows that could not be removed, and searches that failed.", "", counters_.failed);
  const auto fill = read_conntrack_fill();
  if (!fill) {
    return;
  }
  number(MetricKind::kGauge, "sluice_conntrack_entries", "Flows in the kernel's table.", "",
         fill->entries);
  number(MetricKind::kGauge, "sluice_conntrack_max", "Flows it may have.", "", fill->max);
  number(MetricKind::kCounter, "sluice_conntrack_insert_failed_total",
         "Flows the kernel could not insert.", "", fill->insert_failed);
  number(MetricKind::kCounter, "sluice_conntrack_drop_total",
         "Packets dropped because the table was full.", "", fill->drop);
  number(MetricKind::kCounter, "sluice_conntrack_early_drop_total",
         "Flows ended to make room for others.", "", fill->early_drop);
}

}  // namespace sluice::kni
