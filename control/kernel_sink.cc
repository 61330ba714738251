// Which adapter a kernel mode has, and what it takes over from.
#include "control/kernel_sink.h"

#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "control/daemon_parts.h"
#include "kni/iptables/iptables_sink.h"
#include "kni/iptables/kube_proxy.h"
#include "kni/nftables/nftables_sink.h"
#include "kni/takeover/process.h"
#include "kni/takeover/take_over_sink.h"

namespace sluice::daemon {
namespace {

constexpr const char* kKubeProxy = "kube-proxy";  // its process, and its nftables tables

core::Result<void> refuse_running(const std::string& wanted) {
  const auto pid = kni::find_process(kKubeProxy);
  if (!pid) {
    return {};
  }
  return tl::make_unexpected(core::Error{wanted + " " + kKubeProxy + ": it runs (pid " +
                                         std::to_string(*pid) + "); end it first"});
}

core::Result<std::unique_ptr<kni::NftablesSink>> make_nftables(const KernelSinkOptions& options) {
  auto kernel = kni::nft::open_kernel();
  if (!kernel) {
    return tl::make_unexpected(kernel.error());
  }
  kni::NftablesSink::Options sink_options;
  sink_options.verify_within = options.sync_period;
  sink_options.warn = warn_line;
  sink_options.scope.taps = options.taps;
  if (options.take_over == TakeOver::kKubeProxy) {
    sink_options.replaces = {kKubeProxy};
  }
  return std::make_unique<kni::NftablesSink>(std::move(*kernel), std::move(sink_options));
}

/// For a restore that outlives the daemon that began it.
constexpr std::chrono::seconds kClaimPatience{30};
constexpr const char* kBeLiberal = "/proc/sys/net/netfilter/nf_conntrack_tcp_be_liberal";

/// CT-10: packets that belong to no flow are dropped, unless the kernel is told to be liberal.
bool drops_invalid() {
  int liberal = 0;
  std::ifstream(kBeLiberal) >> liberal;
  return liberal == 0;
}

core::Result<std::unique_ptr<kni::IptablesSink>> make_iptables(const KernelSinkOptions& options) {
  using Variant = conf::IptablesConfig::Variant;
  kni::IptablesSink::Options sink_options;
  sink_options.sync_period = options.sync_period;
  sink_options.warn = warn_line;
  sink_options.ending = told_to_end;
  sink_options.variant = options.iptables.variant == Variant::kLegacy ? kni::ipt::Variant::kLegacy
                         : options.iptables.variant == Variant::kNft  ? kni::ipt::Variant::kNft
                                                                      : kni::ipt::Variant::kAuto;
  sink_options.render.localhost_node_ports = options.iptables.localhost_node_ports;
  sink_options.render.taps = options.taps;
  // Beside workers the kernel sees only a part of the flows, and of others no first packet.
  sink_options.render.drop_invalid = options.taps.empty() && drops_invalid();
  auto claim = kni::ipt::Claim::take(kClaimPatience, told_to_end);
  if (!claim) {
    return tl::make_unexpected(claim.error());
  }
  return kni::IptablesSink::open(kni::ipt::make_runner(std::move(*claim), told_to_end),
                                 std::move(sink_options));
}

core::Result<void> remove_nftables_tables(const std::vector<std::string>& names) {
  auto kernel = kni::nft::open_kernel();
  if (!kernel) {
    return {};  // without nftables there are none
  }
  return kni::remove_tables(**kernel, names);
}

core::Result<void> remove_kube_proxy_rules(const std::vector<std::string>& kept) {
  const auto runner = kni::ipt::make_runner(nullptr, told_to_end);
  return kni::remove_kube_proxy_rules(*runner, kept);
}

/// What else would go on translating beside mode iptables: what we made in mode nftables (SY-12),
/// and when it is taken over from kube-proxy its nftables tables and the other variant's chains.
core::Result<void> remove_others_of_iptables(TakeOver take_over,
                                             const std::vector<std::string>& kept) {
  if (take_over != TakeOver::kKubeProxy) {
    return remove_nftables_tables({kni::nft::kTable});
  }
  core::Result<void> tables = remove_nftables_tables({kni::nft::kTable, kKubeProxy});
  core::Result<void> rules = remove_kube_proxy_rules(kept);
  return tables ? rules : tables;
}

/// What a mode iptables has left, kube-proxy's or our own: the chains have the same names (SY-12).
core::Result<void> remove_iptables_leftovers() {
  if (const auto pid = kni::find_process(kKubeProxy)) {
    return tl::make_unexpected(
        core::Error{std::string(kKubeProxy) + " runs (pid " + std::to_string(*pid) +
                    "): its rules, if there are any, translate beside ours"});
  }
  auto claim = kni::ipt::Claim::take(std::chrono::seconds(0), told_to_end);
  core::Result<void> removed;
  if (claim) {
    const auto runner = kni::ipt::make_runner(std::move(*claim), told_to_end);
    removed = kni::remove_kube_proxy_rules(*runner, {});
  } else {
    removed = tl::make_unexpected(claim.error());
  }
  if (!removed) {
    return tl::make_unexpected(
        core::Error{"chains KUBE-* of iptables, if there are any, translate beside our rules: " +
                    removed.error().message});
  }
  return {};
}

/// An adapter, and what it counts.
struct Adapter {
  std::unique_ptr<core::TableSink> sink;
  const core::MetricSource* metrics = nullptr;  ///< lives as long as `sink`
};

core::Result<Adapter> make_iptables_adapter(const KernelSinkOptions& options) {
  if (auto stopped = refuse_running("mode iptables writes the chains of"); !stopped) {
    return tl::make_unexpected(stopped.error());
  }
  auto iptables = make_iptables(options);
  if (!iptables) {
    return tl::make_unexpected(iptables.error());
  }
  Adapter out;
  out.metrics = iptables->get();
  std::vector<std::string> kept;
  for (const core::Family family : {core::Family::kIpv4, core::Family::kIpv6}) {
    if (const auto* sync = (*iptables)->family(family); sync != nullptr) {
      kept.push_back(sync->programs().variant_name());
    }
  }
  out.sink = std::make_unique<kni::TakeOverSink>(
      std::move(*iptables),
      [kept, take_over = options.take_over] { return remove_others_of_iptables(take_over, kept); },
      warn_line);
  return out;
}

core::Result<Adapter> make_nftables_adapter(const KernelSinkOptions& options) {
  const bool take_over = options.take_over == TakeOver::kKubeProxy;
  if (take_over) {
    if (auto stopped = refuse_running("--take-over"); !stopped) {
      return tl::make_unexpected(stopped.error());
    }
  }
  auto nftables = make_nftables(options);
  if (!nftables) {
    return tl::make_unexpected(nftables.error());
  }
  Adapter out;
  out.metrics = nftables->get();
  out.sink = std::move(*nftables);
  out.sink = std::make_unique<kni::TakeOverSink>(
      std::move(out.sink),
      [take_over] { return take_over ? remove_kube_proxy_rules({}) : remove_iptables_leftovers(); },
      warn_line);
  return out;
}

}  // namespace

core::Result<KernelSink> KernelSink::open(conf::Mode mode, const KernelSinkOptions& options) {
  auto adapter = mode == conf::Mode::kIptables ? make_iptables_adapter(options)
                                               : make_nftables_adapter(options);
  if (!adapter) {
    return tl::make_unexpected(adapter.error());
  }
  auto conntrack = kni::open_conntrack();
  if (!conntrack) {
    return tl::make_unexpected(conntrack.error());
  }
  KernelSink out;
  out.adapter_ = std::move(adapter->sink);
  out.with_conntrack_ =
      std::make_unique<kni::ConntrackSink>(*out.adapter_, std::move(*conntrack), warn_line);
  out.metrics_ = {adapter->metrics, out.with_conntrack_.get()};
  return out;
}

namespace {

core::Result<void> clean_up_iptables() {
  auto claim = kni::ipt::Claim::take(kClaimPatience);
  if (!claim) {
    return tl::make_unexpected(claim.error());
  }
  const auto runner = kni::ipt::make_runner(std::move(*claim));
  return kni::clean_up_iptables(*runner);
}

core::Result<void> clean_up_nftables() {
  auto nftables = make_nftables({});
  if (!nftables) {
    return tl::make_unexpected(nftables.error());
  }
  return (*nftables)->cleanup();
}

/// The chains KUBE-* are left alone where a kube-proxy writes them.
core::Result<void> clean_up_all() {
  core::Result<void> tables;
  if (kni::nft::is_in_kernel()) {
    tables = clean_up_nftables();
  }
  core::Result<void> chains = refuse_running("--cleanup: chains KUBE-* are left to");
  if (chains) {
    chains = clean_up_iptables();
  }
  return tables ? chains : tables;
}

}  // namespace

core::Result<void> clean_up_kernel(std::optional<conf::Mode> mode) {
  if (!mode) {
    return clean_up_all();
  }
  if (*mode == conf::Mode::kIptables) {
    return clean_up_iptables();
  }
  return clean_up_nftables();
}

}  // namespace sluice::daemon
