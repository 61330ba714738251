#pragma once

#include <array>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "dataplane/core/metrics.h"
#include "dataplane/core/sink.h"
#include "kni/iptables/family_sync.h"

namespace sluice::kni {

/// Writes tables into the kernel's iptables, by its programs: chains KUBE-* of IPv4 and IPv6.
/// Thread: one, but counters.
class IptablesSink : public core::TableSink, public core::MetricSource {
 public:
  struct Options : ipt::SyncOptions {
    ipt::Variant variant = ipt::Variant::kAuto;
  };

  /// Finds the programs of both families. One family without any is told, and its Services are
  /// reported. Errors: neither family has one, or may not use it; one line.
  [[nodiscard]] static core::Result<std::unique_ptr<IptablesSink>> open(
      std::unique_ptr<ipt::Runner> runner, Options options);

  [[nodiscard]] core::Capabilities capabilities() const override;
  /// Errors: one line; what was in force still is, the next apply() is a full one.
  core::Result<core::ApplyReport> apply(const core::TablePtr& table) override;
  /// Removes our chains and the rules that lead to them, of both variants; not KUBE-FIREWALL.
  core::Result<void> cleanup() override;

  /// AD-2, by kube-proxy's names. Thread: any.
  void collect(core::MetricVisitor& out) const override;
  [[nodiscard]] const ipt::FamilyCounters& counters(core::Family family) const noexcept {
    return counters_[family == core::Family::kIpv4 ? 0 : 1];
  }
  /// What is rendered with. Precondition: the family has programs.
  [[nodiscard]] const ipt::RenderOptions& render_options(core::Family f) const noexcept {
    return family(f)->render_options();
  }
  /// null: the family has no programs.
  [[nodiscard]] const ipt::FamilySync* family(core::Family family) const noexcept {
    return families_[family == core::Family::kIpv4 ? 0 : 1].get();
  }

 private:
  IptablesSink(std::unique_ptr<ipt::Runner> runner, Options options);

  core::Result<void> open_families();
  [[nodiscard]] std::vector<core::Unsupported> unsupported(const core::ForwardingTable& table);
  void warn(const std::string& line) const;

  std::unique_ptr<ipt::Runner> runner_;
  Options options_;
  std::array<ipt::FamilyCounters, 2> counters_;
  std::array<std::unique_ptr<ipt::FamilySync>, 2> families_;
  std::array<std::string, 2> why_not_;  ///< families without programs
  std::set<std::pair<std::string, std::string>> said_;
};

/// Removes what IptablesSink made, of every variant and family whose programs are there.
/// Errors: one line; a variant that may not be looked at is one.
[[nodiscard]] core::Result<void> clean_up_iptables(ipt::Runner& runner);

}  // namespace sluice::kni
