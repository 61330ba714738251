#include "dataplane/dpdk/port_plan.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "dataplane/dpdk/netdev.h"

namespace sluice::dpdk {
namespace {

// Largest MTU of net_af_xdp: a page less headers (see README.md).
constexpr std::uint16_t kAfXdpMaxMtu = 3498;

core::Error too_few_queues(const std::string& port, std::uint32_t workers, std::uint32_t queues) {
  return {"port " + port + ": " + std::to_string(workers) + " workers need as many queues, it has " +
          std::to_string(queues)};
}

/// The zero-copy side of net_memif lets the peer map our packets, virtio-user always does.
bool shares_memory(const std::string& vdev) {
  return (vdev.rfind("net_memif", 0) == 0 && vdev.find("zero-copy=yes") != std::string::npos) ||
         vdev.rfind("net_virtio_user", 0) == 0;
}

/// A memif client says how many queues a link has. net_memif as server neither tells its
/// application nor stops it from polling others: to it they are the memory of queue 0.
/// (DPDK 22.11, drivers/net/memif: memif_connect(), eth_memif_rx())
bool trusts_its_peer(const std::string& vdev, std::uint32_t queues) {
  return queues > 1 && vdev.rfind("net_memif", 0) == 0 &&
         (vdev.find("role=server") != std::string::npos ||
          vdev.find("role=master") != std::string::npos);
}

core::Result<PortPlan> plan_vdev(PortPlan plan) {
  const std::string& target = plan.settings.target;
  if (trusts_its_peer(target, plan.queues)) {
    return tl::make_unexpected(core::Error{
        "port " + plan.settings.name + ": net_memif as server does not learn how many queues its "
        "client has, and damages frames when it has fewer than " + std::to_string(plan.queues) +
        "; be the client (role=client), or use one worker"});
  }
  // The tap driver hands on what the kernel sends, unfinished checksums included.
  plan.kernel_fed = target.rfind("net_tap", 0) == 0 || target.rfind("net_af_", 0) == 0;
  plan.shares_memory = shares_memory(target);
  plan.devices = {target};
  return plan;
}

core::Result<PortPlan> plan_interface(PortPlan plan, std::uint32_t workers,
                                      std::uint32_t& numbers) {
  const std::string port = "port " + plan.settings.name + ": ";
  plan.interface = plan.settings.target;
  plan.kernel_fed = true;
  if (plan.kind == DeviceKind::kAuto) {
    plan.fallback_reason = xdp_unusable_reason();
    plan.kind = plan.fallback_reason.empty() ? DeviceKind::kAfXdp : DeviceKind::kAfPacket;
  }
  const auto info = read_netdev(plan.interface);
  if (!info) {
    return tl::make_unexpected(core::Error{port + info.error().message});
  }
  if (plan.kind == DeviceKind::kAfPacket) {
    plan.devices = {af_packet_vdev(plan.interface, plan.queues, numbers, plan.settings.mtu)};
    numbers += plan.queues;
    return plan;
  }
  if (plan.settings.mtu > kAfXdpMaxMtu) {
    return tl::make_unexpected(core::Error{port + "af_xdp carries an MTU of " +
                                           std::to_string(kAfXdpMaxMtu) + " at most"});
  }
  if (info->max_rx_queues < workers) {
    return tl::make_unexpected(too_few_queues(plan.settings.name, workers, info->max_rx_queues));
  }
  // Every receive queue of the interface: frames of one without a socket go to the kernel.
  plan.queues = std::max(workers, info->rx_queues);
  plan.devices = af_xdp_vdevs(plan.interface, plan.queues, numbers);
  numbers += plan.queues;
  return plan;
}

core::Result<void> name_port(const PortPlan& plan, core::Result<void> done) {
  if (done) {
    return done;
  }
  return tl::make_unexpected(
      core::Error{"port " + plan.settings.name + ": " + done.error().message});
}

}  // namespace

core::Result<PortPlan> plan_port(const PortSettings& settings, std::uint32_t workers,
                                 std::uint32_t& numbers) {
  PortPlan plan;
  plan.settings = settings;
  plan.kind = settings.kind;
  plan.queues = settings.queues == 0 ? workers : settings.queues;
  if (plan.queues < workers) {
    return tl::make_unexpected(too_few_queues(settings.name, workers, plan.queues));
  }
  switch (settings.kind) {
    case DeviceKind::kPci:
      if (!std::filesystem::exists("/sys/bus/pci/devices/" + settings.target)) {
        return tl::make_unexpected(core::Error{"port " + settings.name + ": no PCI device has the address " +
                                               settings.target});
      }
      plan.devices = {settings.target};
      return plan;
    case DeviceKind::kVdev:
      return plan_vdev(std::move(plan));
    case DeviceKind::kAfXdp:
    case DeviceKind::kAfPacket:
    case DeviceKind::kAuto:
      break;
  }
  return plan_interface(std::move(plan), workers, numbers);
}

core::Result<void> prepare_port(const PortPlan& plan) {
  if (plan.interface.empty()) {
    return {};
  }
  const auto info = read_netdev(plan.interface);
  if (!info) {
    return name_port(plan, tl::make_unexpected(info.error()));
  }
  if (plan.kind == DeviceKind::kAfXdp && info->rx_queues < plan.queues) {
    if (auto done = set_queues(plan.interface, plan.queues); !done) {
      return name_port(plan, done);
    }
  }
  if (info->mtu != plan.settings.mtu) {
    if (auto done = set_mtu(plan.interface, plan.settings.mtu); !done) {
      return name_port(plan, done);
    }
  }
  return info->up ? core::Result<void>{} : name_port(plan, set_up(plan.interface));
}

PortPlan fall_back_to_af_packet(PortPlan plan, std::uint32_t workers, std::uint32_t& numbers,
                                const std::string& reason) {
  plan.kind = DeviceKind::kAfPacket;
  plan.fallback_reason = reason;
  plan.queues = plan.settings.queues == 0 ? workers : plan.settings.queues;
  plan.devices = {af_packet_vdev(plan.interface, plan.queues, numbers, plan.settings.mtu)};
  numbers += plan.queues;
  return plan;
}

}  // namespace sluice::dpdk
