#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "dataplane/dpdk/eal.h"
#include "dataplane/dpdk/worker_group.h"
#include "test/support/packet_builder.h"

struct rte_mempool;
struct rte_ring;

namespace sluice::dpdk::test {

/// Runs `body` in a child process: the EAL starts once in a process's life, and each test wants its
/// own. Failures of the body are printed there and fail the test here.
void in_child(const std::function<void()>& body);

/// An ethdev over rings, with a test at the far end: frames go into the receive queue it chooses,
/// what the workers send is taken out per queue.
class RingPort {
 public:
  /// @param name  the device becomes "net_ring_NAME".
  RingPort(const std::string& name, std::uint16_t queues);
  ~RingPort();
  RingPort(const RingPort&) = delete;
  RingPort& operator=(const RingPort&) = delete;

  [[nodiscard]] std::string device() const { return "net_ring_" + name_; }
  /// Puts a frame into receive queue `queue`. @param segments  into how many mbufs it is cut.
  void inject(std::uint16_t queue, const sluice::test::Bytes& frame, rte_mempool* pool,
              std::size_t segments = 1);
  /// Everything that was sent, over all queues.
  [[nodiscard]] std::vector<sluice::test::Bytes> take_sent();
  /// Leaves room for so few frames in each transmit queue.
  void fill_transmit_queues(rte_mempool* pool, std::size_t room);

 private:
  std::string name_;
  std::vector<rte_ring*> receive_;
  std::vector<rte_ring*> transmit_;
};

/// An EAL, ring ports and a group of workers over them that a test steps.
struct RingGroup {
  explicit RingGroup(std::uint32_t workers, std::size_t ports = 1, bool inverted = false);
  ~RingGroup();
  /// Steps all workers in turn until none has work.
  void settle();
  [[nodiscard]] std::uint64_t counter(std::string_view name) const;

  std::vector<std::unique_ptr<RingPort>> wires;
  std::unique_ptr<WorkerGroup> group;
  rte_mempool* pool = nullptr;
};

}  // namespace sluice::dpdk::test
