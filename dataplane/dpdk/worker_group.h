#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "dataplane/core/sink.h"
#include "dataplane/dpdk/eal.h"
#include "dataplane/dpdk/host_rings.h"
#include "dataplane/dpdk/lcore_worker.h"
#include "dataplane/dpdk/pool.h"
#include "dataplane/dpdk/port.h"
#include "dataplane/dpdk/reply_steering.h"
#include "dataplane/dpdk/settings.h"
#include "dataplane/dpdk/tap.h"
#include "dataplane/pipeline/load_sharing.h"
#include "dataplane/pipeline/next_hop_places.h"
#include "dataplane/pipeline/owner.h"
#include "dataplane/pipeline/view_publisher.h"
#include "dataplane/pipeline/worker_view.h"

namespace sluice::dpdk {

/// Everything the group is made from.
struct GroupSettings {
  EalSettings eal;  ///< memory, vdevs, PCI addresses and cores are filled in by the group
  std::vector<PortSettings> ports;
  std::uint32_t workers = 1;
  std::vector<std::uint32_t> cores;          ///< empty: chosen
  std::vector<pipeline::IdleStrategy> idle;  ///< by worker; missing ones: kAuto
  std::uint32_t mbufs = 0;                   ///< 0: computed
  std::uint32_t services = 16384;
  std::uint32_t backends = 262144;
  std::uint32_t connections = 1'000'000;  ///< per worker and family
  std::uint16_t next_hops = 4096;
  std::uint32_t handover_ring = 1024;
  core::ConnTimeouts timeouts;
  pipeline::OwnerTwist owner_twist = pipeline::OwnerTwist::kNone;  ///< for tests
  bool taps = true;  ///< false: tests without a host side
  LogSink log;
  /// Keeps the kernel off a shared interface for as long as the answer lives; may be empty.
  std::function<core::Result<std::shared_ptr<void>>(const std::string& interface, bool drop_frames)>
      guard;
};

// Theory of operation
//
// create() goes from what changes nothing to what changes most: cores, ports and memory are planned
// first, taps are made (a tap is also the lock against a second daemon on the same port), shared
// interfaces are guarded, then the EAL starts, and pool, ports and workers are made. A failure at
// any step undoes the former ones.
//
// The group is the dataplane for the control side: a TableSink (tables in) and a WorkerView (status
// out). Tables, routes and port facts meet in the ViewPublisher, whose callers the group
// serialises. Neighbours go their own way: words in the NextHopDirectory, written by the mirror's
// thread only.
//
// stop(): the workers leave their loops, what they hold and what lies on rings is freed and
// counted, sends that the drivers still hold are waited for, and every mbuf must be back.

/// The workers, their ports, taps and shared state.
/// Thread: create(), start(), stop() by main; the rest says so.
class WorkerGroup final : public core::TableSink, public pipeline::WorkerView {
 public:
  [[nodiscard]] static core::Result<std::unique_ptr<WorkerGroup>> create(GroupSettings settings);
  /// For tests: takes a running EAL and devices that exist in it (vdev names), makes no lcores; the
  /// workers are stepped from one thread, so there may be more of them than cores.
  [[nodiscard]] static core::Result<std::unique_ptr<WorkerGroup>> create_stepped(
      GroupSettings settings, std::unique_ptr<Eal> eal);
  ~WorkerGroup() override;
  WorkerGroup(const WorkerGroup&) = delete;
  WorkerGroup& operator=(const WorkerGroup&) = delete;

  /// Launches tap thread and lcores.
  core::Result<void> start();
  /// Ends them and closes the ports. Idempotent. Errors: mbufs are missing ("leaked N mbufs").
  core::Result<void> stop();
  /// False once a worker's lcore has ended by itself. Thread: any.
  [[nodiscard]] bool healthy() const noexcept;

  /// Names of the taps by port index.
  [[nodiscard]] std::vector<std::string> tap_names() const;
  /// One line per part: what memory was taken, what each port is. For the log.
  [[nodiscard]] std::vector<std::string> description() const;

  // --- what the host side says. Thread: the mirror's (set_routes, set_addresses: any) -----------

  void set_routes(std::vector<pipeline::Route> routes);
  /// @param addresses  of each port's tap, by port index.
  void set_addresses(std::vector<std::vector<core::IpAddress>> addresses);
  /// Ports that sockets of the host use; source translation leaves them alone.
  void set_reserved_ports(std::vector<std::uint16_t> ports);
  /// Requests of the workers since the last call. To be called often: it also gives the places of
  /// forgotten neighbours to others.
  void take_requests(std::vector<pipeline::NeighbourRequest>& out);
  /// No worker has asked for it lately and it does not answer.
  void forget_neighbour(pipeline::PortIndex port, const core::IpAddress& address);
  /// Says what has become of a neighbour that a worker asked for.
  void set_neighbour(pipeline::PortIndex port, const core::IpAddress& address,
                     const core::MacAddress& mac, pipeline::NeighbourState state);

  /// Makes the tap of a port anew in place of one that somebody deleted; it is down and without
  /// addresses.
  core::Result<void> remake_tap(std::size_t port);
  /// What is wrong with a port's host side, one line for degraded(); "": nothing.
  void set_host_fault(std::size_t port, std::string fault);

  /// Called after each applied table, on the publisher's thread. To be set before the first apply.
  void on_table(std::function<void(const core::ForwardingTable&)> call) {
    on_table_ = std::move(call);
  }

  // --- core::TableSink -------------------------------------------------------------------------

  [[nodiscard]] core::Capabilities capabilities() const override;
  core::Result<core::ApplyReport> apply(const core::TablePtr& table) override;
  core::Result<void> cleanup() override { return {}; }

  // --- pipeline::WorkerView --------------------------------------------------------------------

  [[nodiscard]] std::vector<pipeline::WorkerStatus> workers() const override;
  [[nodiscard]] std::vector<pipeline::PortStatus> ports() const override;
  [[nodiscard]] std::vector<pipeline::CounterValue> counters() const override;
  [[nodiscard]] std::string degraded() const override;
  [[nodiscard]] pipeline::EndpointUse endpoint_use(core::EndpointId id) const override;
  [[nodiscard]] std::vector<pipeline::SourceExhaustion> source_exhaustion() const override {
    return counts_->exhaustion();
  }
  [[nodiscard]] std::optional<std::uint32_t> owner_of_client(const core::IpAddress& address,
                                                             std::uint16_t port) const override;
  [[nodiscard]] bool host_delivers(const core::IpAddress& address) const override;
  [[nodiscard]] bool is_service_address(const core::IpAddress& address) const override;
  core::Result<void> dump_connections(
      const pipeline::ConnectionFilter& filter,
      const std::function<bool(const pipeline::ConnectionRow&)>& row) override;

  // --- for tests -------------------------------------------------------------------------------

  /// Steps one worker; only while start() was not called.
  bool step_worker_for_test(std::uint32_t worker) { return members_[worker]->worker->poll_once(); }
  [[nodiscard]] const MbufPool& pool_for_test() const { return *pool_; }
  [[nodiscard]] const Port& port_for_test(std::size_t port) const { return *ports_[port]; }
  [[nodiscard]] pipeline::FrameBalance balance() const;

 private:
  struct Member {
    std::uint32_t index = 0;
    pipeline::IdleStrategy idle = pipeline::IdleStrategy::kAuto;
    pipeline::CounterBlock counters;
    pipeline::NeighbourRequestRing requests{256};
    pipeline::DumpMailbox dumps;
    std::mutex dump_mutex;  ///< one page at a time
    std::unique_ptr<LcoreWorker> worker;
    std::atomic<bool> running{false};
    WorkerGroup* group = nullptr;
  };

  explicit WorkerGroup(GroupSettings settings);
  core::Result<void> plan();
  core::Result<void> plan_ports();
  core::Result<MemoryChoice> plan_memory();
  core::Result<void> make_taps();
  core::Result<void> guard_interfaces();
  core::Result<void> open_ports();
  void choose_rss_key();
  core::Result<void> open_port(std::size_t index, std::span<const std::uint8_t> key);
  core::Result<void> make_workers();
  [[nodiscard]] std::vector<IoPort> io_ports(std::uint32_t worker) const;
  [[nodiscard]] std::vector<pipeline::PortInfo> port_infos() const;
  [[nodiscard]] std::uint32_t max_frame() const noexcept;
  static int lcore_main(void* member);
  void housekeeping();
  void wait_for_sends();
  core::Result<bool> copy_page(Member& member, core::Family family, std::uint32_t& cursor,
                               std::vector<pipeline::ConnectionRow>& rows);
  void log(Severity severity, const std::string& line) const;
  void tell_hops_are_full();

  GroupSettings settings_;
  std::vector<std::uint32_t> cores_;
  std::vector<PortPlan> plans_;
  std::uint32_t vdev_numbers_ = 0;
  std::uint32_t mbufs_ = 0;
  std::string memory_text_;
  std::vector<std::shared_ptr<void>> guards_;
  std::vector<Tap> taps_;
  std::unique_ptr<Eal> eal_;
  std::unique_ptr<MbufPool> pool_;
  std::unique_ptr<HostRings> host_rings_;
  std::vector<std::uint8_t> rss_key_;  ///< of ports without one of their own, and of the owner map
  std::unique_ptr<ReplySteering> steering_;  ///< nullptr: nothing to gain, or a configured key
  std::vector<std::unique_ptr<Port>> ports_;
  std::uint32_t mbufs_in_drivers_ = 0;  ///< after the ports were opened
  std::unique_ptr<pipeline::ConnectionCounts> counts_;
  std::unique_ptr<pipeline::ViewPublisher> publisher_;
  std::unique_ptr<pipeline::LoadSharing> loads_;
  std::unique_ptr<pipeline::HandoverRings> rings_;
  std::unique_ptr<pipeline::OwnerMap> owners_;
  std::unique_ptr<pipeline::NextHopDirectory> hops_;
  std::unique_ptr<pipeline::NextHopPlaces> places_;  ///< the mirror's thread
  std::vector<std::unique_ptr<Member>> members_;
  std::unique_ptr<TapThread> tap_thread_;
  mutable std::mutex publish_mutex_;  ///< callers of publisher_ and loads_
  std::vector<std::vector<core::IpAddress>> addresses_;
  mutable std::mutex faults_mutex_;
  std::vector<std::string> host_faults_;  ///< by port
  std::function<void(const core::ForwardingTable&)> on_table_;
  bool hops_full_told_ = false;
  bool started_ = false;
  bool stopped_ = false;
  std::atomic<bool> stop_{false};
  std::thread housekeeping_;
};

}  // namespace sluice::dpdk
