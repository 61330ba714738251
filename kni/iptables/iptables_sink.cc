#include "kni/iptables/iptables_sink.h"

#include <fstream>

#include "dataplane/core/fwd/unsupported.h"

namespace sluice::kni {

using core::Error;
using core::Family;
using core::Result;

namespace {

constexpr std::array kFamilies = {Family::kIpv4, Family::kIpv6};

}  // namespace

IptablesSink::IptablesSink(std::unique_ptr<ipt::Runner> runner, Options options)
    : runner_(std::move(runner)), options_(std::move(options)) {}

Result<std::unique_ptr<IptablesSink>> IptablesSink::open(std::unique_ptr<ipt::Runner> runner,
                                                         Options options) {
  std::unique_ptr<IptablesSink> sink(new IptablesSink(std::move(runner), std::move(options)));
  if (const auto opened = sink->open_families(); !opened) {
    return tl::make_unexpected(opened.error());
  }
  return sink;
}

Result<void> IptablesSink::open_families() {
  for (std::size_t i = 0; i < kFamilies.size(); ++i) {
    auto programs = ipt::find_programs(*runner_, kFamilies[i], options_.variant);
    if (programs) {
      families_[i] =
          std::make_unique<ipt::FamilySync>(*runner_, std::move(*programs), options_, counters_[i]);
    } else {
      why_not_[i] = programs.error().message;
    }
  }
  if (families_[0] == nullptr && families_[1] == nullptr) {
    return tl::make_unexpected(Error{why_not_[0]});
  }
  for (std::size_t i = 0; i < kFamilies.size(); ++i) {
    if (families_[i] == nullptr) {
      warn(std::string(i == 0 ? "IPv4" : "IPv6") + " is not served: " + why_not_[i]);
    }
  }
  return {};
}

core::Capabilities IptablesSink::capabilities() const {
  return ipt::iptables_capabilities();
}

Result<core::ApplyReport> IptablesSink::apply(const core::TablePtr& table) {
  std::string errors;
  for (const auto& family : families_) {
    if (family == nullptr) {
      continue;
    }
    if (const auto done = family->apply(table); !done) {
      warn(done.error().message);
      errors += (errors.empty() ? "" : "; ") + done.error().message;
    }
  }
  if (!errors.empty()) {
    return tl::make_unexpected(Error{errors});
  }
  return core::ApplyReport{table->generation(), unsupported(*table)};
}

namespace {

/// Of each endpoint, by the kernel's match for session affinity; its default when it does not say.
std::string remembered_clients() {
  std::string number;
  std::ifstream("/sys/module/xt_recent/parameters/ip_list_tot") >> number;
  return number.empty() ? "100" : number;
}

}  // namespace

/// All that holds now; a line that is new is told.
std::vector<core::Unsupported> IptablesSink::unsupported(const core::ForwardingTable& table) {
  std::vector<core::Unsupported> out;
  const core::Capabilities can = capabilities();
  const std::string clients = remembered_clients();
  std::set<std::pair<std::string, std::string>> now;
  for (std::uint32_t i = 0; i < table.slot_limit(); ++i) {
    const core::ServicePort* service = table.service(static_cast<core::ServiceSlot>(i));
    if (service == nullptr) {
      continue;
    }
    std::vector<core::Unsupported> lines = core::unsupported_of(*service, can);
    if (family(service->family) == nullptr) {
      lines.push_back(
          {service->name, "not served: " + why_not_[service->family == Family::kIpv4 ? 0 : 1]});
    }
    if (service->affinity_seconds != 0) {
      lines.push_back({service->name, "session affinity: the kernel remembers the last " + clients +
                                          " clients of each endpoint (xt_recent's ip_list_tot)"});
    }
    for (core::Unsupported& line : lines) {
      const auto [at, is_new] = now.emplace(line.service_port, line.what);
      if (is_new) {
        out.push_back(std::move(line));
      }
      if (is_new && !said_.contains(*at)) {
        warn("service " + at->first + ": " + at->second);
      }
    }
  }
  said_ = std::move(now);
  return out;
}

void IptablesSink::warn(const std::string& line) const {
  if (options_.warn) {
    options_.warn(line);
  }
}

void IptablesSink::collect(core::MetricVisitor& out) const {
  using core::MetricKind;
  const auto number = [&](MetricKind kind, const char* name, const char* help,
                          const std::string& labels, std::uint64_t value) {
    out.number(kind, name, help, labels, static_cast<double>(value));
  };
  for (const Family family : kFamilies) {
    const ipt::FamilyCounters& c = counters(family);
    const std::string label = core::family_label(family);
    c.durations.collect(out, family);
    number(MetricKind::kCounter, "kubeproxy_sync_proxy_rules_iptables_restore_failures_total",
           "Restores that failed.", label, c.sync_failures);
    number(MetricKind::kCounter,
           "kubeproxy_sync_proxy_rules_iptables_partial_restore_failures_total",
           "Partial syncs that failed.", label, c.partial_failures);
    const auto rules = [&](const char* name, const char* help, std::uint64_t filter,
                           std::uint64_t nat) {
      number(MetricKind::kGauge, name, help, "table=\"filter\"," + label, filter);
      number(MetricKind::kGauge, name, help, "table=\"nat\"," + label, nat);
    };
    rules("kubeproxy_sync_proxy_rules_iptables_total", "Rules we own.", c.filter_rules,
          c.nat_rules);
    rules("kubeproxy_sync_proxy_rules_iptables_last", "Rules written by the last sync.",
          c.last_filter_rules, c.last_nat_rules);
    number(MetricKind::kCounter, "sluice_iptables_repairs_total",
           "Times our chains had been changed from outside.", label, c.repairs);
  }
}

Result<void> IptablesSink::cleanup() {
  return clean_up_iptables(*runner_);
}

Result<void> clean_up_iptables(ipt::Runner& runner) {
  const auto cleanup_of = [&](const ipt::Programs& programs) -> Result<std::string> {
    const auto present = ipt::read_present(runner, programs);
    if (!present) {
      return tl::make_unexpected(present.error());
    }
    return ipt::write_cleanup(*present);
  };
  return ipt::restore_all_that(runner, &ipt::Present::has_ours, cleanup_of);
}

}  // namespace sluice::kni
