#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "control/model/model.h"
#include "dataplane/core/fwd/forwarding_table.h"

namespace sluice::compile {

// Theory of operation
//
// Slots and endpoint ids are dense numbers that workers use as array indexes, so they are few and
// must not be given to something new while a connection still counts under them. An id has three
// states: in use (some table names it), retired (the newest table does not, connections or a worker
// on an older table may), free. acquire_*() of a retired key gives its old id back. release_unused()
// is called by the publisher, who knows which generation every worker has reached and which
// endpoints still have connections. The limits come from the configuration; when they are reached
// acquire_*() answers nothing, the caller refuses that object alone and asks again later (F63).

/// M-3 and M-2: one engine per family.
struct ServicePortKey {
  model::ObjectName service;
  std::string port_name;
  core::Protocol protocol = core::Protocol::kTcp;
  core::Family family = core::Family::kIpv4;
  bool operator==(const ServicePortKey&) const = default;
  auto operator<=>(const ServicePortKey&) const = default;
};

struct EndpointAddress {
  core::IpAddress address;
  std::uint16_t port = 0;
  bool operator==(const EndpointAddress&) const = default;
  auto operator<=>(const EndpointAddress&) const = default;
};

/// Belongs to the publisher. Thread: the publisher's only.
class IdRegistry {
 public:
  struct Limits {
    std::uint32_t service_ports = 65536;  ///< slots; two per port of a dual-stack Service
    std::uint32_t endpoints = 1048576;    ///< endpoint ids
  };
  explicit IdRegistry(Limits limits) : limits_(limits) {}

  /// @return the key's slot, taken back from retirement or new; nullopt: the limit is reached.
  [[nodiscard]] std::optional<core::ServiceSlot> acquire_slot(const ServicePortKey& key);
  /// Ids of the endpoints of a slot, kNone where the limit is reached; `wanted` has no duplicates.
  [[nodiscard]] std::vector<core::EndpointId> acquire_endpoints(
      core::ServiceSlot slot, const std::vector<EndpointAddress>& wanted);
  /// The table of `generation` is the first that does not name it. Unknown ids are ignored.
  void retire_slot(core::ServiceSlot slot, std::uint64_t generation);
  void retire_endpoint(core::EndpointId id, std::uint64_t generation);

  /// Frees retired ids that nobody can use any more.
  /// @param oldest_generation smallest generation any worker may still read
  /// @param in_use true while the endpoint has connections on any worker
  /// @return number of ids freed. A slot is freed after the last of its endpoints.
  std::size_t release_unused(std::uint64_t oldest_generation,
                             const std::function<bool(core::EndpointId)>& in_use);

  [[nodiscard]] const Limits& limits() const { return limits_; }
  [[nodiscard]] std::size_t slots_in_use() const { return slot_of_.size(); }
  [[nodiscard]] std::size_t endpoints_in_use() const { return endpoints_in_use_; }
  [[nodiscard]] std::size_t retired() const {
    return retired_slots_.size() + retired_endpoints_.size();
  }
  /// Grows whenever something was freed: who was refused may try again.
  [[nodiscard]] std::uint64_t releases() const { return releases_; }

 private:
  struct Hash {
    std::size_t operator()(const ServicePortKey& key) const;
  };
  struct Member {
    EndpointAddress endpoint;
    core::EndpointId id = core::EndpointId::kNone;
  };
  struct Slot {
    ServicePortKey key;
    std::vector<Member> members;  ///< in use or retired; sorted by endpoint
    bool used = false;
  };
  [[nodiscard]] core::EndpointId new_endpoint(core::ServiceSlot slot);

  Limits limits_;
  std::unordered_map<ServicePortKey, core::ServiceSlot, Hash> slot_of_;
  std::vector<Slot> slots_;
  std::vector<core::ServiceSlot> owner_;           ///< by EndpointId; kNone: free
  std::size_t endpoints_in_use_ = 0;
  std::vector<core::ServiceSlot> free_slots_;      ///< used as stacks: ids stay dense
  std::vector<core::EndpointId> free_endpoints_;
  // Ordered: ids are free again in an order that no thread's speed decides.
  std::map<std::uint32_t, std::uint64_t> retired_slots_;      ///< -> generation
  std::map<std::uint32_t, std::uint64_t> retired_endpoints_;  ///< -> generation
  std::uint64_t releases_ = 0;
};

}  // namespace sluice::compile
