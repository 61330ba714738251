#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "dataplane/core/fwd/forwarding_table.h"

namespace sluice::test {

/// One service port as a dataplane test wants it.
struct TestService {
  std::string cluster_ip = "10.96.0.1";
  std::string vip = "";  ///< load-balancer VIP; "": none
  std::uint16_t port = 80;
  std::uint16_t node_port = 0;
  core::Protocol protocol = core::Protocol::kTcp;
  std::vector<std::string> endpoints = {};    ///< "10.244.1.21:8080", "[fd00::1]:8080"
  std::vector<std::string> terminating = {};  ///< of them: serving, not ready
  std::vector<std::string> not_serving = {};  ///< of them: neither ready nor serving
  std::vector<std::string> local = {};        ///< of them: on this node
  std::vector<std::string> sources = {};      ///< allowed, of the VIP
  std::map<std::string, std::uint16_t> weights = {};  ///< by endpoint; others have 1
  core::SchedulerKind scheduler = core::SchedulerKind::kRr;
  std::uint8_t scheduler_flags = 0;
  std::uint32_t affinity_seconds = 0;
  bool masquerade_external = false;  ///< eTP Cluster by the book; false: `mode`
  core::ForwardingMode mode = core::ForwardingMode::kNat;
};

/// Keeps Services by name and makes successive tables of them, with slots and endpoint ids that
/// stay. `node` may be changed between tables.
class TableMaker {
 public:
  TableMaker();
  core::NodePart node;
  std::map<std::string, TestService> services;
  /// The VIPs are announced.
  bool announce_vips = false;

  [[nodiscard]] core::TablePtr make();
  [[nodiscard]] core::EndpointId id(const std::string& service, const std::string& endpoint) const;
  [[nodiscard]] core::ServiceSlot slot(const std::string& service) const;

 private:
  core::ServicePort block(const std::string& name, const TestService& s);
  core::TablePtr last_;
  std::map<std::string, core::ServiceSlot> slots_;
  std::uint32_t next_slot_ = 0;
  std::map<std::string, core::EndpointId> ids_;
  std::map<std::string, std::vector<core::FrontendKey>> frontends_;
};

}  // namespace sluice::test
