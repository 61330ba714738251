#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "control/model/model.h"
#include "dataplane/core/net/address.h"
#include "dataplane/core/sink.h"

namespace sluice::compile {

// Allocation of Service addresses and node ports (rules AL-1..AL-6). A node never allocates (AL-6):
// this is the control plane's part, here for simulators and for feeds without an API server.
//
// Theory of operation: a range has a small static band at its start, meant for numbers that people
// write down, and a dynamic band behind it. Whoever asks for any number gets one of the dynamic
// band, from a random start upwards with wrap-around, and one of the static band only when the
// dynamic one is full. An explicit request may take any usable number.

/// Uniform in [0, bound); bound >= 1. Injected, so that tests choose.
using RandomBelow = std::function<std::uint64_t(std::uint64_t bound)>;

/// Both ends included.
struct AddressBand {
  core::IpAddress first;
  core::IpAddress last;
  bool operator==(const AddressBand&) const = default;
};

/// One range of cluster IPs.
class ClusterIpRange {
 public:
  /// AL-2. Errors: an IPv6 prefix shorter than /64.
  [[nodiscard]] static core::Result<ClusterIpRange> create(const core::Cidr& cidr);

  [[nodiscard]] const core::Cidr& cidr() const { return cidr_; }
  [[nodiscard]] std::uint64_t offset() const {
    return offset_;
  }                                                              ///< size of the static band (AL-3)
  [[nodiscard]] std::optional<AddressBand> static_band() const;  ///< nullopt: empty
  [[nodiscard]] std::optional<AddressBand> dynamic_band() const;
  /// A usable address: neither network nor, for IPv4, broadcast.
  [[nodiscard]] bool contains(const core::IpAddress& address) const;
  /// AL-3. @param used addresses that are taken; @return nullopt: the range is full.
  [[nodiscard]] std::optional<core::IpAddress> find_free(const std::set<core::IpAddress>& used,
                                                         const RandomBelow& random) const;

 private:
  explicit ClusterIpRange(const core::Cidr& cidr);
  [[nodiscard]] core::IpAddress at(std::uint64_t host) const;
  [[nodiscard]] std::optional<std::uint64_t> host_of(const core::IpAddress& address) const;
  [[nodiscard]] std::optional<core::IpAddress> search(std::uint64_t first, std::uint64_t last,
                                                      const std::set<core::IpAddress>& used,
                                                      const RandomBelow& random) const;
  core::Cidr cidr_;
  std::uint64_t last_ = 0;  ///< host part of the last usable address; the first is 1
  std::uint64_t offset_ = 0;
};

/// A ServiceCIDR with what AL-4 looks at.
struct ServiceCidrState {
  model::ServiceCidr object;
  bool ready = true;
  bool deleting = false;
};

/// The IPAddress object that records an allocation (AL-1).
struct IpAddressObject {
  std::string name;  ///< canonical address: its uniqueness is the allocation
  std::map<std::string, std::string> labels;
  struct Parent {
    std::string group;  ///< "": core
    std::string resource;
    std::string ns;
    std::string name;
    bool operator==(const Parent&) const = default;
  };
  Parent parent;
  bool operator==(const IpAddressObject&) const = default;
};
[[nodiscard]] IpAddressObject ip_address_object(const core::IpAddress& address,
                                                const model::ObjectName& service);

/// Cluster IPs of a whole cluster. Thread: one.
class ClusterIpAllocator {
 public:
  explicit ClusterIpAllocator(RandomBelow random) : random_(std::move(random)) {}

  /// Replaces the set of ServiceCIDRs. @return one line per CIDR that is refused (AL-2).
  std::vector<std::string> set_cidrs(std::vector<ServiceCidrState> cidrs);
  /// Any free address of a family. Errors: no CIDR of it, or all are full.
  core::Result<core::IpAddress> allocate(core::Family family, const model::ObjectName& service);
  /// An explicit request. Errors: outside of every CIDR that hands out, or taken.
  core::Result<void> claim(const core::IpAddress& address, const model::ObjectName& service);
  void release(const core::IpAddress& address);
  /// AL-4: an allocated address lies in this ServiceCIDR and in no other one that hands out.
  [[nodiscard]] bool in_use(const std::string& cidr_name) const;
  [[nodiscard]] std::vector<IpAddressObject> objects() const;  ///< sorted by address

 private:
  struct Range {
    std::string name;
    bool hands_out = true;
    ClusterIpRange range;
  };
  RandomBelow random_;
  std::vector<Range> ranges_;
  std::map<core::IpAddress, model::ObjectName> owners_;
  std::set<core::IpAddress> used_;
};

/// Both ends included; 1..65535, first <= last.
struct PortRange {
  std::uint16_t first = 30000;
  std::uint16_t last = 32767;
  /// AL-5: size of the static band.
  [[nodiscard]] std::uint32_t offset() const;
  [[nodiscard]] std::uint32_t size() const { return static_cast<std::uint32_t>(last - first) + 1; }
};
/// "30000-32767"; nullopt: not a range.
[[nodiscard]] std::optional<PortRange> parse_port_range(const std::string& text);

/// Node ports of a whole cluster. Thread: one.
class NodePortAllocator {
 public:
  NodePortAllocator(PortRange range, RandomBelow random)
      : range_(range), random_(std::move(random)) {}
  /// Errors: the range is full.
  core::Result<std::uint16_t> allocate(core::Protocol protocol, const model::ObjectName& service);
  /// An explicit request. One Service may take the same number once per protocol.
  /// Errors: outside of the range, or taken.
  core::Result<void> claim(std::uint16_t port, core::Protocol protocol,
                           const model::ObjectName& service);
  void release(std::uint16_t port, core::Protocol protocol);

 private:
  struct Use {
    model::ObjectName service;
    std::set<core::Protocol> protocols;
  };
  [[nodiscard]] std::optional<std::uint16_t> search(std::uint32_t first, std::uint32_t count) const;
  PortRange range_;
  RandomBelow random_;
  std::map<std::uint16_t, Use> used_;
};

}  // namespace sluice::compile
