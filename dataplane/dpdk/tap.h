#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "dataplane/core/net/address.h"
#include "dataplane/core/sink.h"
#include "dataplane/dpdk/host_rings.h"
#include "dataplane/dpdk/unique_fd.h"

struct rte_mempool;
struct rte_mbuf;

namespace sluice::dpdk {

/// The host side of a port: a tap with the port's MAC and MTU. It carries the port's addresses and
/// routes; the kernel resolves neighbours and answers for the node over it. It goes away with this
/// object, and with the process whatever way that ends.
/// Thread: main; the descriptor is read and written by the tap thread.
class Tap {
 public:
  /// @param name  "slc-PORT", below IFNAMSIZ.
  /// Errors: no /dev/net/tun, no privilege, another process has it.
  [[nodiscard]] static core::Result<Tap> create(const std::string& name, std::uint16_t mtu);
  /// Gives it the port's MAC address, before it is brought up.
  core::Result<void> set_mac(const core::MacAddress& mac) const;
  /// Puts `fresh`, made in place of a tap that somebody deleted, behind the descriptor of this one:
  /// whoever reads and writes it need not be told. Thread: any.
  core::Result<void> replace_by(Tap fresh) const;
  [[nodiscard]] int fd() const noexcept { return fd_.get(); }
  [[nodiscard]] const std::string& name() const noexcept { return name_; }

 private:
  Tap(std::string name, UniqueFd fd) : name_(std::move(name)), fd_(std::move(fd)) {}
  std::string name_;
  UniqueFd fd_;
};

/// Name of the tap of a port.
[[nodiscard]] std::string tap_name(const std::string& port);

// Theory of operation
//
// One thread serves all taps, no worker ever makes a system call for them. It empties the workers'
// rings into the taps and the taps into the workers' rings, up to 64 frames each in turn. Which
// worker gets a frame of the host is a cheap hash of its addresses: any worker will do (the owner
// procedure runs), the same one for one flow keeps its order. Busy it does not wait; else it waits
// for the taps with a time-out that grows from 50 us to 1 ms, which is what a frame towards the
// host may wait after a pause. A tap that somebody deleted is ready for ever, with an error: it
// must not end a wait.

/// Moves frames between taps and workers. Thread: step() by one thread: its own after start(), or a
/// test's.
class TapThread {
 public:
  /// @param taps  by port index; borrowed. @param rings, pool  borrowed.
  TapThread(std::vector<const Tap*> taps, HostRings& rings, rte_mempool* pool);
  ~TapThread();  ///< stops
  TapThread(const TapThread&) = delete;
  TapThread& operator=(const TapThread&) = delete;

  void start();
  /// Ends the thread after it has emptied the rings towards the host.
  void stop();

  /// One round. @return frames moved.
  std::size_t step() noexcept;
  /// Waits for a frame of the host. @param idle_rounds  rounds without a frame so far.
  void wait(unsigned idle_rounds) noexcept;

 private:
  void run();
  std::size_t write_port(std::size_t port, std::size_t worker) noexcept;
  std::size_t read_port(std::size_t port) noexcept;
  bool read_frame(std::size_t port) noexcept;

  std::vector<const Tap*> taps_;
  HostRings& rings_;
  rte_mempool* pool_;
  rte_mbuf* spare_ = nullptr;  ///< taken for a read that found nothing
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

}  // namespace sluice::dpdk
