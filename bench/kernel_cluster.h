#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "control/compile/compiler.h"

namespace sluice::bench {

/// What a Service of a cluster has beside its cluster IP.
struct ClusterKind {
  const char* name;
  bool load_balancer;         ///< VIP and, while the range lasts, a node port
  std::size_t affinity_each;  ///< every so many Services has session affinity; 0: none
};
inline constexpr ClusterKind kClusterKinds[] = {
    {"cluster IPs", false, 0}, {"load balancers", true, 0}, {"10 % affinity", false, 10}};

// Where a cluster's addresses begin; Service and endpoint numbers are added.
inline constexpr std::uint32_t kClusterIps = 0x0a800000;  // 10.128.0.0
inline constexpr std::uint32_t kEndpoints = 0x0a400000;   // 10.64.0.0
inline constexpr std::uint16_t kServicePort = 80;

[[nodiscard]] std::string dotted(std::uint32_t base, std::size_t number);

/// A cluster of UDP Services, compiled as a daemon does. Errors end the program.
class KernelCluster {
 public:
  KernelCluster(std::size_t services, std::size_t endpoints, const ClusterKind& kind);

  [[nodiscard]] const core::TablePtr& table() const { return table_; }
  /// The Service gets one endpoint more, or loses it again.
  void change(std::size_t service, bool more);

 private:
  void take(const model::ChangeSet& changes);
  void add(std::size_t i, const ClusterKind& kind);
  static model::EndpointSlice slice(std::size_t i, std::size_t endpoints);

  std::size_t endpoints_;
  compile::NodeConfig config_;
  compile::HostState host_;
  compile::IdRegistry ids_;
  compile::Compiler compiler_;
  model::ClusterState state_;
  model::Delta delta_;
  core::TablePtr table_;
};

/// One line on stderr; exit status 1.
[[noreturn]] void end_program(const std::string& why);

}  // namespace sluice::bench
