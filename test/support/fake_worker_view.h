#pragma once

#include <algorithm>
#include <map>
#include <mutex>
#include <vector>

#include "dataplane/pipeline/worker_view.h"

namespace sluice::test {

/// A view whose content the test writes. Set everything before it is shared, but for the members
/// with a setter.
class FakeWorkerView final : public pipeline::WorkerView {
 public:
  std::vector<pipeline::PortStatus> port_rows;
  std::vector<pipeline::CounterValue> counter_rows;
  std::vector<pipeline::ConnectionRow> connection_rows;
  std::vector<core::IpAddress> delivered_by_host;
  std::vector<core::IpAddress> service_addresses;
  /// When set, makes row i of so many in place of connection_rows.
  std::uint64_t made_rows = 0;
  /// Called before each row.
  std::function<void(std::uint64_t)> before_row;

  void set_workers(std::vector<pipeline::WorkerStatus> workers) {
    const std::lock_guard lock(mutex_);
    workers_ = std::move(workers);
  }
  void set_degraded(std::string why) {
    const std::lock_guard lock(mutex_);
    degraded_ = std::move(why);
  }
  void set_use(core::EndpointId id, pipeline::EndpointUse use) {
    const std::lock_guard lock(mutex_);
    use_[id] = use;
  }
  void set_all_active(bool active) {
    const std::lock_guard lock(mutex_);
    all_active_ = active;
  }

  [[nodiscard]] std::vector<pipeline::WorkerStatus> workers() const override {
    const std::lock_guard lock(mutex_);
    return workers_;
  }
  [[nodiscard]] std::vector<pipeline::PortStatus> ports() const override { return port_rows; }
  [[nodiscard]] std::vector<pipeline::CounterValue> counters() const override {
    return counter_rows;
  }
  [[nodiscard]] std::string degraded() const override {
    const std::lock_guard lock(mutex_);
    return degraded_;
  }
  [[nodiscard]] pipeline::EndpointUse endpoint_use(core::EndpointId id) const override {
    const std::lock_guard lock(mutex_);
    const auto at = use_.find(id);
    return at != use_.end() ? at->second : pipeline::EndpointUse{all_active_ ? 1u : 0u, 0};
  }
  [[nodiscard]] std::optional<std::uint32_t> owner_of_client(const core::IpAddress&,
                                                             std::uint16_t port) const override {
    return port % 2u;
  }
  [[nodiscard]] bool host_delivers(const core::IpAddress& address) const override {
    return std::find(delivered_by_host.begin(), delivered_by_host.end(), address) !=
           delivered_by_host.end();
  }
  [[nodiscard]] bool is_service_address(const core::IpAddress& address) const override {
    return std::find(service_addresses.begin(), service_addresses.end(), address) !=
           service_addresses.end();
  }
  core::Result<void> dump_connections(
      const pipeline::ConnectionFilter& filter,
      const std::function<bool(const pipeline::ConnectionRow&)>& row) override {
    const auto count = made_rows > 0 ? made_rows : connection_rows.size();
    for (std::uint64_t i = 0; i < count; ++i) {
      if (before_row) {
        before_row(i);
      }
      const auto& one = made_rows > 0 ? pipeline::ConnectionRow{} : connection_rows[i];
      if (filter.client && one.flow.src != *filter.client) {
        continue;
      }
      if (!row(one)) {
        break;
      }
    }
    return {};
  }

 private:
  mutable std::mutex mutex_;
  std::vector<pipeline::WorkerStatus> workers_;
  std::map<core::EndpointId, pipeline::EndpointUse> use_;
  bool all_active_ = false;
  std::string degraded_;
};

}  // namespace sluice::test
