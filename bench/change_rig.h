#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "dataplane/core/sink.h"
#include "dataplane/pipeline/packet.h"
#include "dataplane/pipeline/worker_view.h"

namespace sluice::bench {

/// What to send and what to wait for: SYNs to `vip`:80 until one leaves for `backend`.
struct Probe {
  core::IpAddress vip;      ///< IPv4
  core::IpAddress backend;  ///< IPv4
};

/// PacketIo that makes its own traffic: while a probe is set, every poll of the worker receives new
/// flows to its VIP, until the first frame leaves for its backend. Thread: set() and take() one,
/// the rest the worker's.
class ProbeIo {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr std::size_t kFlowsPerPoll = 16;  // of 10 endpoints a new one is hit by 5 in 6

  ProbeIo();
  /// @param flows  new ones in a poll, at most kFlowsPerPoll.
  void set(const Probe& probe, std::size_t flows = kFlowsPerPoll);
  /// When the first frame left for the backend; nullopt: not yet. Ends the probe when it did.
  std::optional<Clock::time_point> take();
  void end() { target_.store(0); }
  [[nodiscard]] std::uint64_t lost() const { return lost_.load(); }

  std::size_t receive(pipeline::Packet* out, std::size_t n) noexcept;
  std::size_t receive_from_host(pipeline::Packet*, std::size_t) noexcept { return 0; }
  void transmit(pipeline::PortIndex, const pipeline::Packet& packet) noexcept;
  std::size_t flush() noexcept { return 0; }
  bool to_host(const pipeline::Packet&) noexcept {
    lost_.fetch_add(1, std::memory_order_relaxed);
    return true;
  }
  void drop(const pipeline::Packet&) noexcept { lost_.fetch_add(1, std::memory_order_relaxed); }
  bool allocate(pipeline::PortIndex, pipeline::Packet&) noexcept { return false; }
  bool prepend(pipeline::Packet&, std::size_t) noexcept { return false; }
  bool resize(pipeline::Packet&, std::size_t) noexcept { return false; }

 private:
  static constexpr std::size_t kFrame = 54;
  static constexpr std::size_t kHeadroom = 64;
  using Buffer = std::array<std::uint8_t, 256>;
  std::array<std::uint8_t, kFrame> model_{};
  std::array<Buffer, kFlowsPerPoll> buffers_{};
  std::uint16_t next_port_ = 1024;
  std::atomic<std::uint64_t> target_{0};  ///< VIP and backend as they stand in a frame; 0: idle
  std::atomic<std::size_t> flows_{kFlowsPerPoll};
  std::atomic<std::int64_t> hit_ns_{0};
  std::atomic<std::uint64_t> lost_{0};
};

/// One worker in a thread of its own behind the product's own ViewPublisher, as a sink and a view
/// for the control side. Its only route leads to a gateway that is resolved. Thread: apply() and
/// the view's calls any.
class ChangeRig final : public core::TableSink, public pipeline::WorkerView {
 public:
  /// @param endpoints  ids in use at most. @param slots  service ports.
  ChangeRig(std::uint32_t slots, std::uint32_t endpoints);
  ~ChangeRig() override;

  ProbeIo& io();

  [[nodiscard]] core::Capabilities capabilities() const override { return {"workers", {}, {}}; }
  core::Result<core::ApplyReport> apply(const core::TablePtr& table) override;
  core::Result<void> cleanup() override { return {}; }

  [[nodiscard]] std::vector<pipeline::WorkerStatus> workers() const override;
  [[nodiscard]] std::vector<pipeline::PortStatus> ports() const override { return {}; }
  [[nodiscard]] std::vector<pipeline::CounterValue> counters() const override { return {}; }
  [[nodiscard]] pipeline::EndpointUse endpoint_use(core::EndpointId id) const override;
  core::Result<void> dump_connections(
      const pipeline::ConnectionFilter&,
      const std::function<bool(const pipeline::ConnectionRow&)>&) override {
    return {};
  }

 private:
  struct Parts;
  static void precede();
  void run();

  std::mutex mutex_;  ///< the view publisher has one caller at a time
  std::unique_ptr<Parts> parts_;
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

}  // namespace sluice::bench
