#include "dataplane/dpdk/port.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include <rte_ethdev.h>

#include "dataplane/dpdk/rss.h"

namespace sluice::dpdk {
namespace {

core::Error failure(const std::string& port, const std::string& what, int rc) {
  return {"port " + port + ": " + what + ": " + std::strerror(rc < 0 ? -rc : rc)};
}

std::vector<std::uint8_t> key_for(const PortSettings& settings,
                                  std::span<const std::uint8_t> common) {
  return settings.rss_key.empty() ? std::vector<std::uint8_t>(common.begin(), common.end())
                                  : settings.rss_key;
}

core::Result<void> check_limits(const PortPlan& plan, const rte_eth_dev_info& info,
                                std::uint16_t queues) {
  const std::string port = "port " + plan.settings.name + ": ";
  const std::uint16_t most = std::min(info.max_rx_queues, info.max_tx_queues);
  if (most < queues) {
    return tl::make_unexpected(core::Error{port + std::to_string(queues) +
                                           " queues asked, the device has " +
                                           std::to_string(most)});
  }
  if (info.max_mtu != 0 && plan.settings.mtu > info.max_mtu) {
    return tl::make_unexpected(
        core::Error{port + "MTU " + std::to_string(plan.settings.mtu) +
                    " asked, the device carries " + std::to_string(info.max_mtu) + " at most"});
  }
  return {};
}

/// The MTU the driver is told. net_af_packet names a largest frame of 1518 bytes although only its
/// ring frame limits it; an interface's MTU is set on the interface itself.
std::uint16_t driver_mtu(const PortPlan& plan, const rte_eth_dev_info& info) {
  constexpr std::uint32_t kOverhead = RTE_ETHER_HDR_LEN + RTE_ETHER_CRC_LEN;
  const std::uint32_t mtu = plan.settings.mtu;
  const bool limited = !plan.interface.empty() && mtu + kOverhead > info.max_rx_pktlen;
  return static_cast<std::uint16_t>(limited ? info.max_rx_pktlen - kOverhead : mtu);
}

core::Result<void> set_up_queues(const PortPlan& plan, std::uint16_t id, std::uint16_t queues,
                                 rte_mempool* pool) {
  const std::string& name = plan.settings.name;
  std::uint16_t rx = plan.settings.rx_descriptors;
  std::uint16_t tx = plan.settings.tx_descriptors;
  if (const int rc = rte_eth_dev_adjust_nb_rx_tx_desc(id, &rx, &tx); rc != 0) {
    return tl::make_unexpected(failure(name, "adjusting descriptors", rc));
  }
  const int node = rte_eth_dev_socket_id(id);
  const auto socket = static_cast<unsigned>(node < 0 ? 0 : node);
  for (std::uint16_t q = 0; q < queues; ++q) {
    const std::string which = " queue " + std::to_string(q);
    if (const int rc = rte_eth_rx_queue_setup(id, q, rx, socket, nullptr, pool); rc != 0) {
      return tl::make_unexpected(failure(name, "setting up receive" + which, rc));
    }
    if (const int rc = rte_eth_tx_queue_setup(id, q, tx, socket, nullptr); rc != 0) {
      return tl::make_unexpected(failure(name, "setting up transmit" + which, rc));
    }
  }
  return {};
}

std::string steering_of(const PortPlan& plan, const RssOutcome& rss) {
  switch (plan.kind) {
    case DeviceKind::kAfXdp:
      return "asked none: the sender's transmit queue chooses; other workers' packets are handed "
             "over";
    case DeviceKind::kAfPacket:
      return "asked none: the kernel's fan-out hash chooses; other workers' packets are handed over";
    default:
      return describe_rss(rss);
  }
}

}  // namespace

Port::Port(PortPlan plan, const Environment& environment)
    : plan_(std::move(plan)), workers_(environment.workers) {}

Port::~Port() { close(); }

core::Result<std::unique_ptr<Port>> Port::open(const PortPlan& plan,
                                               const Environment& environment) {
  std::unique_ptr<Port> port(new Port(plan, environment));
  const std::uint32_t before = environment.pool->in_use();
  for (const std::string& device : plan.devices) {
    if (auto done = port->open_device(device, environment); !done) {
      return tl::make_unexpected(done.error());
    }
  }
  if (port->queues_.size() < environment.workers) {
    return tl::make_unexpected(core::Error{
        "port " + plan.settings.name + ": " + std::to_string(environment.workers) +
        " workers need as many queues, it has " + std::to_string(port->queues_.size())});
  }
  if (port->driver_ == "net_af_xdp") {
    port->kept_mbufs_ = environment.pool->in_use() - before;
  }
  return port;
}

core::Result<void> Port::open_device(const std::string& device, const Environment& environment) {
  const auto ids = environment.eal->add_device(device);
  if (!ids) {
    return tl::make_unexpected(
        core::Error{"port " + plan_.settings.name + ": " + ids.error().message});
  }
  const auto queues = static_cast<std::uint16_t>(
      plan_.devices.size() > 1 ? 1 : std::max<std::uint32_t>(plan_.queues, 1));
  for (const std::uint16_t id : *ids) {
    devices_.push_back(id);
    if (auto done = start_device(id, queues, environment); !done) {
      const std::string reason = environment.eal->log().take_last_error();
      return tl::make_unexpected(
          core::Error{done.error().message + (reason.empty() ? "" : " (" + reason + ")")});
    }
  }
  return {};
}

core::Result<void> Port::start_device(std::uint16_t id, std::uint16_t queues,
                                      const Environment& environment) {
  const std::string& name = plan_.settings.name;
  rte_eth_dev_info info = {};
  if (const int rc = rte_eth_dev_info_get(id, &info); rc != 0) {
    return tl::make_unexpected(failure(name, "reading device information", rc));
  }
  if (auto fits = check_limits(plan_, info, queues); !fits) {
    return fits;
  }
  driver_ = info.driver_name == nullptr ? "" : info.driver_name;
  auto key = key_for(plan_.settings, environment.rss_key);
  rte_eth_conf conf = {};
  conf.rxmode.mtu = driver_mtu(plan_, info);
  RssOutcome rss = ask_rss(info, queues, key, conf);
  if (const int rc = rte_eth_dev_configure(id, queues, queues, &conf); rc != 0) {
    return tl::make_unexpected(
        failure(name, "configuring " + std::to_string(queues) + " queues", rc));
  }
  if (auto done = set_up_queues(plan_, id, queues, environment.pool->get()); !done) {
    return done;
  }
  if (const int rc = rte_eth_dev_start(id); rc != 0) {
    return tl::make_unexpected(failure(name, "starting", rc));
  }
  settle_rss(id, info, key, rss);
  steering_ = steering_of(plan_, rss);
  hashes_replies_ = plan_.settings.rss_key.empty() && plan_.devices.size() == 1 &&
                    rss_hashes_replies(rss);
  return finish_device(id, queues);
}

core::Result<void> Port::finish_device(std::uint16_t id, std::uint16_t queues) {
  // Solicitations go to multicast groups. Drivers without that switch take everything; frames for
  // another MAC are sorted out by the worker.
  if (rte_eth_allmulticast_enable(id) != 0 && rte_eth_promiscuous_get(id) == 0 &&
      rte_eth_promiscuous_enable(id) == 0) {
    promiscuous_.push_back(id);
  }
  rte_ether_addr address = {};
  if (const int rc = rte_eth_macaddr_get(id, &address); rc != 0) {
    return tl::make_unexpected(failure(plan_.settings.name, "reading the MAC address", rc));
  }
  mac_ = core::MacAddress::load(address.addr_bytes);
  for (std::uint16_t q = 0; q < queues; ++q) {
    queues_.push_back({id, q});
  }
  return {};
}

std::vector<QueueRef> Port::queues_of(std::uint32_t worker) const {
  std::vector<QueueRef> mine;
  for (std::size_t q = worker; q < queues_.size(); q += workers_) {
    mine.push_back(queues_[q]);
  }
  return mine;
}

QueueRef Port::tx_queue_of(std::uint32_t worker) const noexcept { return queues_[worker]; }

pipeline::PortStatus Port::status() const {
  pipeline::PortStatus status;
  status.name = plan_.settings.name;
  for (const std::string& device : plan_.devices) {
    status.device += (status.device.empty() ? "" : " ") + device.substr(0, device.find(','));
  }
  if (!plan_.interface.empty()) {
    status.device += " on " + plan_.interface;
  }
  status.driver = driver_;
  status.mac = core::to_string(mac_);
  status.queues = static_cast<std::uint32_t>(queues_.size());
  status.mtu = plan_.settings.mtu;
  status.steering = steering_;
  status.link_up = !devices_.empty();
  for (const std::uint16_t id : devices_) {
    rte_eth_link link = {};
    status.link_up = status.link_up && rte_eth_link_get_nowait(id, &link) == 0 &&
                     link.link_status == RTE_ETH_LINK_UP;
    rte_eth_stats stats = {};
    if (rte_eth_stats_get(id, &stats) == 0) {
      status.rx_packets += stats.ipackets;
      status.tx_packets += stats.opackets;
      status.rx_missed += stats.imissed;
      status.rx_nombuf += stats.rx_nombuf;
      status.errors += stats.ierrors + stats.oerrors;
    }
  }
  return status;
}

void Port::reap() {
  for (const QueueRef& queue : queues_) {
    if (driver_ == "net_af_xdp") {
      // An empty burst makes the driver read its completion ring.
      rte_eth_tx_burst(queue.device, queue.queue, nullptr, 0);
    } else {
      (void)rte_eth_tx_done_cleanup(queue.device, queue.queue, 0);
    }
  }
}

void Port::close() {
  // The interface would keep the flag: the driver does not put it back.
  for (const std::uint16_t id : std::exchange(promiscuous_, {})) {
    (void)rte_eth_promiscuous_disable(id);
  }
  for (const std::uint16_t id : std::exchange(devices_, {})) {
    rte_eth_dev_stop(id);
    rte_eth_dev_close(id);
  }
  queues_.clear();
}

}  // namespace sluice::dpdk
