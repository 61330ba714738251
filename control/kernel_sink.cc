// Which adapter a kernel mode has, and what it takes over from.
#include "control/kernel_sink.h"

#include <string>
#include <utility>

#include "control/daemon_parts.h"
#include "kni/nftables/nftables_sink.h"
#include "kni/takeover/iptables_rules.h"
#include "kni/takeover/process.h"
#include "kni/takeover/take_over_sink.h"

namespace sluice::daemon {
namespace {

constexpr const char* kKubeProxy = "kube-proxy";  // its process, and its nftables tables

core::Result<void> refuse_running(const char* process) {
  const auto pid = kni::find_process(process);
  if (!pid) {
    return {};
  }
  return tl::make_unexpected(core::Error{std::string("--take-over ") + process + ": it runs (pid " +
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

}  // namespace

core::Result<KernelSink> make_kernel_sink(conf::Mode, const KernelSinkOptions& options) {
  const bool take_over = options.take_over == TakeOver::kKubeProxy;
  if (take_over) {
    if (auto stopped = refuse_running(kKubeProxy); !stopped) {
      return tl::make_unexpected(stopped.error());
    }
  }
  auto nftables = make_nftables(options);
  if (!nftables) {
    return tl::make_unexpected(nftables.error());
  }
  KernelSink out;
  out.metrics = nftables->get();
  out.sink = std::move(*nftables);
  if (take_over) {
    out.sink = std::make_unique<kni::TakeOverSink>(std::move(out.sink),
                                                   kni::remove_kube_proxy_rules, warn_line);
  }
  return out;
}

core::Result<void> clean_up_kernel() {
  auto nftables = make_nftables({});
  if (!nftables) {
    return tl::make_unexpected(nftables.error());
  }
  return (*nftables)->cleanup();
}

}  // namespace sluice::daemon
