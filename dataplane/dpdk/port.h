#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "dataplane/core/net/address.h"
#include "dataplane/core/sink.h"
#include "dataplane/dpdk/eal.h"
#include "dataplane/dpdk/pool.h"
#include "dataplane/dpdk/port_plan.h"
#include "dataplane/pipeline/worker_view.h"

namespace sluice::dpdk {

/// One port: one started ethdev, or one per queue (af_xdp). RAII: construction yields started
/// devices or an error that names the failing call.
/// Thread: main; status() any control thread.
class Port {
 public:
  struct Environment {
    Eal* eal = nullptr;
    MbufPool* pool = nullptr;
    std::uint32_t workers = 1;
    std::span<const std::uint8_t> rss_key;  ///< 40 bytes, used unless the port has its own
  };

  [[nodiscard]] static core::Result<std::unique_ptr<Port>> open(const PortPlan& plan,
                                                                const Environment& environment);
  ~Port();
  Port(const Port&) = delete;
  Port& operator=(const Port&) = delete;

  [[nodiscard]] const PortPlan& plan() const noexcept { return plan_; }
  [[nodiscard]] const core::MacAddress& mac() const noexcept { return mac_; }
  /// Queue pairs of worker w: every queue q with q mod workers == w.
  [[nodiscard]] std::vector<QueueRef> queues_of(std::uint32_t worker) const;
  /// The pair worker w transmits on.
  [[nodiscard]] QueueRef tx_queue_of(std::uint32_t worker) const noexcept;
  /// All pairs, in queue order.
  [[nodiscard]] const std::vector<QueueRef>& queues() const noexcept { return queues_; }

  /// Replies reach the queue that the low bits of the hash by the common key name, so that a source
  /// port can be chosen for it.
  [[nodiscard]] bool hashes_replies() const noexcept { return hashes_replies_; }

  /// Driver counters are read at each call.
  [[nodiscard]] pipeline::PortStatus status() const;

  /// Takes back mbufs whose sending is over. Thread: main, when no worker sends any more.
  void reap();
  /// mbufs the driver never gives back, not even when closed (net_af_xdp's fill ring).
  [[nodiscard]] std::uint32_t kept_mbufs() const noexcept { return kept_mbufs_; }

  /// Stops and closes the devices. No worker may use them any more. Idempotent.
  void close();

 private:
  Port(PortPlan plan, const Environment& environment);
  core::Result<void> open_device(const std::string& device, const Environment& environment);
  core::Result<void> start_device(std::uint16_t id, std::uint16_t queues,
                                  const Environment& environment);
  core::Result<void> finish_device(std::uint16_t id, std::uint16_t queues);

  PortPlan plan_;
  std::uint32_t workers_;
  std::vector<std::uint16_t> devices_;
  std::vector<std::uint16_t> promiscuous_;  ///< devices we made so
  std::vector<QueueRef> queues_;
  core::MacAddress mac_;
  std::string driver_;
  std::string steering_;
  std::uint32_t kept_mbufs_ = 0;
  bool hashes_replies_ = false;
};

}  // namespace sluice::dpdk
