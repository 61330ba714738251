#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "dataplane/core/conn/entry.h"
#include "dataplane/core/sink.h"
#include "dataplane/pipeline/exhaustion.h"

namespace sluice::pipeline {

/// What the control side may see of the workers. Implemented by dpdk::WorkerGroup and by the
/// stepped group of the tests; a kernel mode has none. Thread: any control thread. No call ever
/// blocks a worker: counters are single-writer atomics, dumps are copied by the worker itself a
/// bounded number per poll.

struct CounterValue {
  std::string_view name;  ///< "<stage>_<what>", see counters.h
  std::string_view help;
  std::vector<std::uint64_t> per_worker;
};

struct ConnectionRow {
  std::uint32_t worker = 0;
  core::FlowTuple flow;  ///< as the client sent it
  core::IpAddress backend;
  std::uint16_t backend_port = 0;
  core::IpAddress snat;  ///< == flow.src in nat
  std::uint16_t snat_port = 0;
  core::ConnState state = core::ConnState::kFree;
  core::ForwardingMode mode = core::ForwardingMode::kNat;
  core::ServiceSlot service = core::ServiceSlot::kNone;
  core::EndpointId endpoint = core::EndpointId::kNone;
  std::uint64_t age_ms = 0;
  std::uint64_t idle_ms = 0;
};

struct ConnectionFilter {
  std::optional<core::IpAddress> client;
  std::optional<core::IpAddress> vip;
  std::optional<std::uint16_t> vip_port;
  std::optional<core::IpAddress> backend;
  std::optional<core::Protocol> protocol;
  std::uint64_t limit = 0;  ///< 0: none
};

struct EndpointUse {
  std::uint64_t active = 0;  ///< connections now
  std::uint64_t total = 0;   ///< connections since start
};

struct WorkerStatus {
  std::uint32_t worker = 0;
  std::uint32_t lcore = 0;
  bool running = false;
  std::uint64_t polls = 0;
  std::uint64_t connections4 = 0;
  std::uint64_t connections6 = 0;
  std::uint64_t connection_capacity = 0;  ///< per family
  std::uint64_t generation = 0;           ///< table in use
};

struct PortStatus {
  std::string name;    ///< as configured
  std::string device;  ///< PCI address or vdev
  std::string driver;
  std::string tap;  ///< "slc-NAME"
  std::string mac;
  std::uint32_t queues = 0;
  std::uint32_t mtu = 0;
  bool link_up = false;
  std::string steering;  ///< asked and granted, one line (F94)
  std::uint64_t rx_packets = 0, tx_packets = 0, rx_missed = 0, rx_nombuf = 0, errors = 0;
};

class WorkerView {
 public:
  virtual ~WorkerView() = default;
  [[nodiscard]] virtual std::vector<WorkerStatus> workers() const = 0;
  [[nodiscard]] virtual std::vector<PortStatus> ports() const = 0;
  [[nodiscard]] virtual std::vector<CounterValue> counters() const = 0;
  /// Why the node does not serve in full although every worker runs; one line. @return "": it does.
  [[nodiscard]] virtual std::string degraded() const { return ""; }
  /// Sum over workers for one endpoint.
  [[nodiscard]] virtual EndpointUse endpoint_use(core::EndpointId id) const = 0;
  /// Flows refused for want of a source port, by Service and address.
  [[nodiscard]] virtual std::vector<SourceExhaustion> source_exhaustion() const { return {}; }
  /// The worker a request of this client address and port belongs to. @return nullopt: unknown.
  [[nodiscard]] virtual std::optional<std::uint32_t> owner_of_client(
      const core::IpAddress& address, std::uint16_t port) const {
    (void)address, (void)port;
    return std::nullopt;
  }
  /// True when packets for `address` do not leave by a port but go to the host.
  [[nodiscard]] virtual bool host_delivers(const core::IpAddress& address) const {
    (void)address;
    return false;
  }
  /// True for cluster IPs, VIPs and announced addresses: no packet comes from them.
  [[nodiscard]] virtual bool is_service_address(const core::IpAddress& address) const {
    (void)address;
    return false;
  }
  /// Calls `row` for every connection that lives through the dump, never twice; `row` returns false
  /// to stop. Paged: a slow receiver holds no worker and no memory beyond a page (F93).
  virtual core::Result<void> dump_connections(
      const ConnectionFilter& filter, const std::function<bool(const ConnectionRow&)>& row) = 0;
};

}  // namespace sluice::pipeline
