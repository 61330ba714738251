#include "bench/generator/device.h"

#include <cstring>
#include <utility>

#include <rte_dev.h>
#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_pci.h>

namespace sluice::bench {
namespace {

core::Error failure(const std::string& what, int rc) {
  return {"generator: " + what + ": " + std::strerror(rc < 0 ? -rc : rc)};
}

bool is_pci_address(const std::string& device) {
  rte_pci_addr address{};
  return rte_pci_addr_parse(device.c_str(), &address) == 0;
}

bool start_environment(const DeviceOptions& options) {
  std::vector<std::string> args = {"sluice-generator",
                                   "--no-telemetry",
                                   "--log-level=lib.*:error",
                                   "--lcores=0@" + std::to_string(options.core),
                                   "-m",
                                   std::to_string(options.memory_mib)};
  if (is_pci_address(options.vdev)) {
    args.insert(args.end(), {"-a", options.vdev});
  } else {
    args.emplace_back("--no-pci");
  }
  if (options.hugepages) {
    // Memory in one file can be handed to a peer: net_memif with zero-copy and virtio-user need it.
    args.insert(args.end(), {"--in-memory", "--single-file-segments"});
  } else {
    args.insert(args.end(), {"--no-huge", "--no-shconf"});
  }
  std::vector<char*> argv;
  for (std::string& a : args) {
    argv.push_back(a.data());
  }
  return rte_eal_init(static_cast<int>(argv.size()), argv.data()) >= 0;
}

rte_mempool* make_pool(const char* name, unsigned count, std::uint32_t frame) {
  const std::uint32_t room = std::max<std::uint32_t>(RTE_MBUF_DEFAULT_BUF_SIZE,
                                                     RTE_PKTMBUF_HEADROOM + frame + 64);
  return rte_pktmbuf_pool_create(name, count, 256, 0, static_cast<std::uint16_t>(room),
                                 SOCKET_ID_ANY);
}

void zero_buffer(rte_mempool*, void*, void* element, unsigned) {
  auto* frame = static_cast<rte_mbuf*>(element);
  std::memset(frame->buf_addr, 0, frame->buf_len);
}

}  // namespace

core::Result<std::unique_ptr<Device>> Device::open(const DeviceOptions& options) {
  if (!start_environment(options)) {
    return tl::make_unexpected(
        core::Error{std::string("generator: the EAL does not start: ") + rte_strerror(rte_errno)});
  }
  std::unique_ptr<Device> device(new Device);
  if (auto done = device->start(options); !done) {
    return tl::make_unexpected(done.error());
  }
  return device;
}

core::Result<void> Device::start(const DeviceOptions& options) {
  const unsigned count = 8u * options.descriptors - 1;
  receive_pool_ = make_pool("receive", count, options.frame);
  transmit_pool_ = make_pool("transmit", count, options.frame);
  if (receive_pool_ == nullptr || transmit_pool_ == nullptr) {
    return tl::make_unexpected(core::Error{"generator: too little memory for packets"});
  }
  rte_mempool_obj_iter(transmit_pool_, zero_buffer, nullptr);
  const bool there = is_pci_address(options.vdev);  // the EAL has probed it
  if (const int rc = there ? 0 : rte_dev_probe(options.vdev.c_str()); rc != 0) {
    return tl::make_unexpected(failure("device " + options.vdev, rc));
  }
  const std::string name = options.vdev.substr(0, options.vdev.find(','));
  if (const int rc = rte_eth_dev_get_port_by_name(name.c_str(), &id_); rc != 0) {
    return tl::make_unexpected(failure("device " + name, rc));
  }
  rte_eth_conf conf = {};
  if (const int rc = rte_eth_dev_configure(id_, 1, 1, &conf); rc != 0) {
    return tl::make_unexpected(failure("configuring " + name, rc));
  }
  std::uint16_t rx = options.descriptors;
  std::uint16_t tx = options.descriptors;
  int rc = rte_eth_dev_adjust_nb_rx_tx_desc(id_, &rx, &tx);
  rc = rc != 0 ? rc : rte_eth_rx_queue_setup(id_, 0, rx, 0, nullptr, receive_pool_);
  rc = rc != 0 ? rc : rte_eth_tx_queue_setup(id_, 0, tx, 0, nullptr);
  rc = rc != 0 ? rc : rte_eth_dev_start(id_);
  if (rc != 0) {
    return tl::make_unexpected(failure("starting " + name, rc));
  }
  started_ = true;
  (void)rte_eth_promiscuous_enable(id_);
  rte_ether_addr address = {};
  (void)rte_eth_macaddr_get(id_, &address);
  mac_ = core::MacAddress::load(address.addr_bytes);
  return {};
}

bool Device::link_up() const noexcept {
  rte_eth_link link = {};
  return rte_eth_link_get_nowait(id_, &link) == 0 && link.link_status == RTE_ETH_LINK_UP;
}

Device::~Device() {
  if (started_) {
    rte_eth_dev_stop(id_);
    rte_eth_dev_close(id_);
  }
  rte_mempool_free(receive_pool_);
  rte_mempool_free(transmit_pool_);
  rte_eal_cleanup();
}

}  // namespace sluice::bench
