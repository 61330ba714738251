#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "control/compile/compiler.h"
#include "test/conformance/case.h"
#include "test/conformance/host_side.h"

namespace sluice::conformance {

/// The control side of one case, for every subject: the cluster's objects, the compiler and the
/// sync loop. Thread: one. Time is the case's own.
class CaseCluster {
 public:
  /// A successful run of the sync loop has put this in force.
  using InForce = std::function<void(const compile::Compiled&)>;

  struct Options {
    compile::Profile profile = compile::Profile::kNftables;
    bool sockets = false;  ///< the case asks servers, see HostSide
  };
  /// @param c  outlives this
  CaseCluster(const Options& options, const Case& c, InForce in_force);

  /// The first sync, unless the case begins unsynced.
  void start();

  void perform(const Apply& step);
  void perform(const Delete& step);
  void perform(const Synced& step);
  void advance(double seconds) { host_side_.advance(seconds); }
  [[nodiscard]] std::optional<std::vector<std::string>> perform(const HostStep& step) {
    return host_side_.perform(step.kind, step.value);
  }

  [[nodiscard]] const NodeSetup& node() const { return node_; }
  /// The newest objects.
  [[nodiscard]] const model::ClusterState& state() const { return state_; }
  /// Empty before the first successful sync.
  [[nodiscard]] const compile::Compiled& in_force() const { return compiled_; }
  /// The table in force, compiled from scratch, when the host has one more address: a host process
  /// owns the address it sends from at that moment, listed or not.
  [[nodiscard]] core::TablePtr table_with_local(const core::IpAddress& address) const;
  /// The same in force, by an update as a daemon makes it. nullopt: the host's own addresses again.
  void own_also(const std::optional<core::IpAddress>& address);

  /// While `body` runs every Service has one more ready endpoint on another node, and all policies
  /// are Cluster: what the cluster may have been before the case.
  void in_the_past(const core::IpAddress& endpoint, std::uint16_t port,
                   const std::function<void()>& body);

  /// True when "ip:port" is an endpoint of the table in force.
  [[nodiscard]] bool has_endpoint(const std::string& endpoint) const;

  /// What went wrong outside probes: refused by the compiler, a violated invariant.
  [[nodiscard]] const std::vector<std::string>& failures() const { return failures_; }

 private:
  void set_node(const NodeSetup& setup, model::Delta& delta);
  void sync(const model::Delta& delta);
  const compile::Compiled& put_in_force();
  void put_in_force(const model::Delta& delta);

  const Case& case_;
  const compile::Profile profile_;
  InForce on_in_force_;
  compile::IdRegistry ids_;
  compile::Compiler compiler_;
  model::ClusterState state_;
  NodeSetup node_;
  compile::HostState host_;
  std::set<std::string> awaited_;  ///< lists that are not complete yet
  compile::Compiled wanted_;       ///< newest
  compile::Compiled compiled_;     ///< in force
  std::vector<std::string> failures_;
  HostSide host_side_;  ///< last: its thread ends first
};

}  // namespace sluice::conformance
