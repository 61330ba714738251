#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "dataplane/core/conn/states.h"
#include "dataplane/core/sink.h"
#include "dataplane/pipeline/counters.h"
#include "dataplane/pipeline/load_sharing.h"
#include "dataplane/pipeline/next_hop_directory.h"
#include "dataplane/pipeline/owner.h"
#include "dataplane/pipeline/view_publisher.h"
#include "dataplane/pipeline/worker_links.h"
#include "dataplane/pipeline/worker_view.h"
#include "test/support/any_index.h"
#include "test/support/in_memory_io.h"

namespace sluice::pipeline {
class HandoverRings;
}

namespace sluice::test {

struct SteppedGroupConfig {
  std::size_t workers = 1;
  std::size_t ports = 1;
  std::uint32_t connections = 2048;
  std::size_t ring_size = 512;
  std::size_t frames = 1024;
  std::size_t endpoints = 4096;
  std::size_t next_hops = 1024;
  pipeline::OwnerTwist owner_twist = pipeline::OwnerTwist::kNone;
  bool resolve_neighbours = true;  ///< every neighbour that is asked for answers
  std::uint32_t new_flow_budget = pipeline::WorkerConfig{}.new_flow_budget;
  std::uint32_t overload_bursts = pipeline::WorkerConfig{}.overload_bursts;
  std::uint32_t flood_bursts = pipeline::WorkerConfig{}.flood_bursts;
  pipeline::MemoryPace pace;
  std::uint32_t affinity_pins = 1024;
  std::uint32_t half_open_divisor = 4;
  std::uint64_t seed = 1;  ///< of the random choices
  core::ConnTimeouts timeouts;
  /// Short: once a packet was handed over, the next one of its flow goes by what is remembered.
  std::uint32_t steering_window = 1;
  std::uint64_t hash_seed = 42;  ///< of the connection tables
  IndexMaker* indexes = nullptr;  ///< of the connection tables; nullptr: MapIndex
};

/// W workers over in-memory ports, stepped in turn from one thread: exact, no timing. Port p has
/// the MAC kOwnMac, the addresses 192.0.2.11+p and fd00:11::11+p and every destination on link.
/// It is a WorkerView and a TableSink, so that server tests can use it as the dataplane.
/// Thread: one.
class SteppedGroup final : public pipeline::WorkerView, public core::TableSink {
 public:
  explicit SteppedGroup(const SteppedGroupConfig& config = {});
  ~SteppedGroup() override;

  // --- frames ------------------------------------------------------------------------------

  /// Puts a frame into a worker's queue.
  void inject(std::size_t worker, const Bytes& frame, std::size_t port = 0,
              pipeline::Origin origin = pipeline::Origin::kWire);
  bool step(std::size_t worker);
  /// Steps all in turn until none has work.
  void settle();
  /// Injects at `worker`, settles, and returns what the ports sent.
  std::vector<SentFrame> exchange(std::size_t worker, const Bytes& frame, std::size_t port = 0);
  /// What all workers sent or gave to the host since the last call.
  std::vector<SentFrame> take_sent();
  std::vector<SentFrame> take_to_host();

  // --- control -----------------------------------------------------------------------------

  /// The workers learn of each other's connections every 2 ms, as in a real group.
  void advance_ms(std::uint64_t ms);
  /// Advances in steps with polls between, as real time would.
  void run_ms(std::uint64_t ms, std::uint64_t step_ms = 100);
  pipeline::ViewPublisher& publisher() { return *publisher_; }
  pipeline::NextHopDirectory& hops() { return *hops_; }
  const pipeline::OwnerMap& owners() const { return *owners_; }
  InMemoryIo& io(std::size_t worker);
  /// Worker::run() with yields; for tests with threads.
  void run(std::size_t worker, const std::atomic<bool>& stop);
  /// Worker::drain(): to be called for all of them when none runs.
  void drain(std::size_t worker);
  /// IPv4 connections one worker can have.
  [[nodiscard]] std::uint32_t capacity() const;
  FramePool& pool() { return pool_; }
  pipeline::ConnectionCounts& counts() { return *counts_; }
  std::vector<pipeline::PortInfo> default_ports() const;
  void set_resolve_neighbours(bool on) { config_.resolve_neighbours = on; }
  /// Takes the open neighbour requests.
  std::vector<pipeline::NeighbourRequest> take_requests();
  /// Answers them now.
  void resolve_requests();
  std::size_t workers_count() const { return config_.workers; }

  // --- what happened -----------------------------------------------------------------------

  /// Sum over workers.
  [[nodiscard]] std::uint64_t count(pipeline::Counter c) const;
  [[nodiscard]] std::uint64_t count(std::size_t worker, pipeline::Counter c) const;
  [[nodiscard]] pipeline::FrameBalance balance() const;
  /// Empty when the balance holds and every frame is accounted for; else what is wrong.
  [[nodiscard]] std::string balance_error() const;
  [[nodiscard]] std::size_t connections() const;

  // --- WorkerView --------------------------------------------------------------------------

  [[nodiscard]] std::vector<pipeline::WorkerStatus> workers() const override;
  [[nodiscard]] std::vector<pipeline::PortStatus> ports() const override;
  [[nodiscard]] std::vector<pipeline::CounterValue> counters() const override;
  [[nodiscard]] pipeline::EndpointUse endpoint_use(core::EndpointId id) const override;
  [[nodiscard]] std::vector<pipeline::SourceExhaustion> source_exhaustion() const override {
    return counts_->exhaustion();
  }
  [[nodiscard]] std::optional<std::uint32_t> owner_of_client(const core::IpAddress& address,
                                                             std::uint16_t port) const override {
    return static_cast<std::uint32_t>(owners_->of_client(address, core::Be16::from_host(port)));
  }
  [[nodiscard]] bool is_service_address(const core::IpAddress& address) const override {
    return publisher_->is_service_address(address);
  }
  [[nodiscard]] bool host_delivers(const core::IpAddress& address) const override {
    return publisher_->host_delivers(address);
  }
  core::Result<void> dump_connections(
      const pipeline::ConnectionFilter& filter,
      const std::function<bool(const pipeline::ConnectionRow&)>& row) override;

  /// All connections, while the workers run in threads of their own (dump_connections() steps
  /// them).
  void dump_threads(const std::function<bool(const pipeline::ConnectionRow&)>& row);

  // --- TableSink ---------------------------------------------------------------------------

  [[nodiscard]] core::Capabilities capabilities() const override;
  core::Result<core::ApplyReport> apply(const core::TablePtr& table) override;
  core::Result<void> cleanup() override { return {}; }

 private:
  struct Member;  ///< one worker and what is its own
  void add_member(std::size_t index);

  SteppedGroupConfig config_;
  std::uint64_t now_ns_ = 1'000'000'000'000;
  std::uint64_t shared_ns_ = now_ns_;
  FramePool pool_;
  std::unique_ptr<pipeline::ConnectionCounts> counts_;
  std::unique_ptr<pipeline::ViewPublisher> publisher_;
  std::unique_ptr<pipeline::LoadSharing> loads_;
  std::unique_ptr<pipeline::HandoverRings> rings_;
  std::unique_ptr<pipeline::OwnerMap> owners_;
  std::unique_ptr<pipeline::NextHopDirectory> hops_;
  std::vector<std::unique_ptr<Member>> members_;
};

}  // namespace sluice::test
