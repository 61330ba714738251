#pragma once

#include <cstdint>
#include <deque>
#include <unordered_map>
#include <vector>

#include "dataplane/pipeline/connection_counts.h"
#include "dataplane/pipeline/worker_tables.h"

namespace sluice::pipeline {

/// Makes the views the workers read: puts table, routes and ports together, keeps the steering book
/// and frees what no worker reads any more. Used by dpdk::WorkerGroup and the stepped group of the
/// tests. Thread: the publisher's only (callers serialise).
///
/// Cost of apply(): what changed, plus one pointer compare for each service slot. Frontends and
/// backends that left stay in the book until every worker has read a later view and no connection
/// of their endpoints is left.
class ViewPublisher {
 public:
  /// @param counts  borrowed; outlives the publisher.
  ViewPublisher(std::size_t workers, const ConnectionCounts& counts);

  /// Publishes a table (never null). The first one opens the workers.
  void apply(core::TablePtr table);
  void set_routes(RouteTable routes);
  /// Makes every entry look for its next hops anew. @return sequence of the view that says so.
  std::uint64_t renew_epoch();
  /// Ports by index; what is missing is not present.
  void set_ports(std::vector<PortInfo> ports);
  /// Ports that host processes use on the addresses of source translation.
  void set_reserved_ports(std::vector<std::uint16_t> ports);

  /// To be called now and then (10 ms to 1 s): frees views and drops drained backends from the
  /// book. @return views still held, the current one included.
  std::size_t collect();

  [[nodiscard]] TablesCell& cell() noexcept { return cell_; }
  /// nullptr before the first apply().
  [[nodiscard]] const core::TablePtr& table() const noexcept { return next_.table; }
  /// Packets for `address` go to the host: it has the address, or it alone knows the way.
  [[nodiscard]] bool host_delivers(const core::IpAddress& address) const noexcept {
    return next_.table != nullptr && route_of(next_, address) == nullptr;
  }
  /// What the newest view's book says.
  [[nodiscard]] bool is_service_address(const core::IpAddress& address) const noexcept {
    return next_.book->is_service_address(address);
  }
  [[nodiscard]] std::uint64_t sequence() const noexcept { return next_.sequence; }
  /// Departed frontends and backends the book still holds.
  [[nodiscard]] std::size_t draining() const noexcept { return draining_count_; }

 private:
  /// Something that left the table while connections may still use it.
  struct Draining {
    core::ServiceSlot slot = core::ServiceSlot::kNone;
    std::vector<L4Address> backends;
    std::vector<L4Address> frontends;
    std::vector<core::EndpointId> endpoints;
    std::uint64_t left_at = 0;  ///< sequence of the first view without it
  };
  void concern_all();
  void take_over_services(const core::ForwardingTable& next);
  void take_new_addresses();
  void replace_block(core::ServiceSlot slot, const core::ServicePort* before,
                     const core::ServicePort* after, const core::ForwardingTable& next);
  void note_not_serving(core::ServiceSlot slot, const core::ServicePort& block);
  void note_departed_frontends(const core::ServicePort& before, const core::ServicePort* after,
                               const core::ForwardingTable& next, Draining& left);
  void add_backends_of(const core::ServicePort* before, const core::ServicePort& after);
  void take_over_node_addresses(const core::ForwardingTable& next);
  void drain_node_port(core::ServiceSlot slot, const core::ServicePort& block,
                       const std::vector<core::IpAddress>& addresses);
  void start_draining(Draining left);
  /// Ids of the block's endpoints and of those that left it and still drain.
  [[nodiscard]] std::vector<core::EndpointId> endpoints_ever(core::ServiceSlot slot,
                                                             const core::ServicePort& block) const;
  void update_announced(const core::ForwardingTable& next);
  void reserve_ports_of(const core::ServicePort& block, bool add);
  void reserve_port(std::uint16_t port, bool add);
  void update_excluded();
  void update_source_pool(const core::ForwardingTable& next);
  /// Looks at what drains of at most so many slots. @return whether something is gone.
  bool drop_drained(std::size_t slots);
  void forget(const Draining& gone);
  void freeze_book();
  void publish();

  std::size_t workers_;
  const ConnectionCounts& counts_;
  TablesCell cell_;
  WorkerTables next_;
  /// Of UDP, by the table that is being taken over: gone, another one of that address, or no longer
  /// serving.
  std::vector<std::pair<core::ServiceSlot, core::EndpointId>> left_;
  // In the same table, not yet in the sets below.
  std::vector<L4Address> new_backends_;
  std::vector<L4Address> new_own_;
  L4AddressSetBuilder backends_;
  L4AddressSetBuilder departed_;
  L4AddressSetBuilder own_;  ///< addresses of Services
  std::unordered_map<core::ServiceSlot, std::vector<Draining>> draining_;
  std::deque<core::ServiceSlot> draining_slots_;  ///< those of the map, who was looked at last last
  std::size_t draining_count_ = 0;
  std::vector<std::uint16_t> reserved_;
  std::vector<std::uint32_t> port_users_ = std::vector<std::uint32_t>(65536);
  bool ports_changed_ = false;
  std::uint16_t pool_first_ = 0;
  std::uint16_t pool_last_ = 0;
};

}  // namespace sluice::pipeline
