#include "kni/conntrack/conntrack_sink.h"

namespace sluice::kni {
namespace {

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
  const bool due =
      applied_ == nullptr ? has_udp(*table) : core::udp_endpoints_changed(applied_.get(), *table);
  if (due) {
    remove_stale(*table);
  }
  applied_ = table;
  return report;
}

void ConntrackSink::remove_stale(const core::ForwardingTable& table) {
  ++counters_.passes;
  const auto result = conntrack_->remove_udp(
      [&](const core::UdpFlow& flow) { return core::is_stale(table, flow); });
  if (!result) {
    ++counters_.failed;
    if (warn_) {
      warn_(result.error().message);
    }
    return;
  }
  counters_.removed += result->removed;
  counters_.failed += result->failed;
  if (result->failed != 0 && warn_) {
    warn_("conntrack: " + std::to_string(result->failed) + " stale UDP flows could not be removed");
  }
}

}  // namespace sluice::kni
