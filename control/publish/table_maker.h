#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "control/compile/compile.h"
#include "control/compile/compiler.h"
#include "control/compile/id_registry.h"
#include "control/model/model.h"

namespace sluice::publish {

// Theory of operation
//
// TableMaker owns the cluster state and turns changes into tables. The state always is what was
// received. Normally the table is compiled from it. When compile fails, by an exception or an
// error, on account of some object, that object must not hold up the others (F61): the maker then
// compiles from a second state, `shadow`, in which the failing objects keep their former value. It
// finds them by halving the set of changed objects; each try is a full compile, which is slow and
// does not matter, since it takes an error of ours to get here. An object is a Service with its
// EndpointSlices, since compile() judges them together.

/// What TableMaker needs of compile::Compiler; the tests put an odd one in its place.
class TableCompiler {
 public:
  virtual ~TableCompiler() = default;
  virtual core::Result<compile::Compiled> full(const model::ClusterState& state,
                                               const compile::NodeConfig& config,
                                               const compile::HostState& host) = 0;
  virtual core::Result<compile::Compiled> update(const model::ClusterState& state,
                                                 const model::ChangeSet& changes,
                                                 const compile::NodeConfig& config,
                                                 const compile::HostState& host) = 0;
  [[nodiscard]] virtual bool retry_due() const = 0;
};
/// compile::Compiler as it is. @param ids outlives it.
std::unique_ptr<TableCompiler> make_table_compiler(compile::Profile profile,
                                                   compile::IdRegistry& ids);

/// An object whose handling failed by an error of ours; its former state stays in force.
struct FailedObject {
  std::string object;  ///< "service ns/name", "nodes"
  std::string reason;
};

/// Health-check node ports of one compile; shared with those who open them.
using HealthPorts = compile::SharedList<compile::HealthPort>;

/// Of a large change this is much, so who needs it shares it.
using SharedChanges = std::shared_ptr<const model::ChangeSet>;

/// State, compile and what to do when it fails. Thread: one.
class TableMaker {
 public:
  TableMaker(std::unique_ptr<TableCompiler> compiler, compile::NodeConfig config)
      : compiler_(std::move(compiler)), config_(std::move(config)) {}

  /// Change the state; @return what really differs, never null. make() then takes it up.
  SharedChanges replace(model::ClusterState next);
  SharedChanges apply(const model::Delta& delta);
  /// @return false: nothing differs.
  bool set_host(compile::HostState host);
  /// The version the first change counts from; only before it.
  void seed_version(std::uint64_t version) { state_.version = version; }

  [[nodiscard]] const model::ClusterState& state() const { return state_; }
  /// Something changed since the last make(), or refused objects may fit now.
  [[nodiscard]] bool pending() const;
  /// Compiles what is pending. @return the table, null when nothing could be compiled; then all
  /// stays pending.
  core::TablePtr make();
  /// What the last make() needs no longer, a replaced state say: it takes a while to free.
  [[nodiscard]] std::shared_ptr<const void> take_litter() { return std::exchange(litter_, {}); }
  /// Tries the failed objects again. @return a new table, or null when none got well.
  core::TablePtr retry_failed();

  [[nodiscard]] const compile::Report& report() const { return report_; }
  /// Of the newest table.
  [[nodiscard]] const HealthPorts& health_ports() const { return health_ports_; }
  [[nodiscard]] std::vector<FailedObject> failed() const;
  /// Why the last compile failed as a whole; "" when it did not.
  [[nodiscard]] const std::string& last_reason() const { return last_reason_; }
  [[nodiscard]] std::uint64_t failures() const { return failures_; }

 private:
  /// Objects that compile() judges together.
  struct Group {
    std::optional<model::ObjectName> service;  ///< absent: nodes and ServiceCIDRs
    std::vector<model::ObjectName> slices;
  };
  /// Former values of objects that changed since the last success; nullopt: did not exist.
  struct Undo {
    std::map<model::ObjectName, std::optional<model::Service>> services;
    std::map<model::ObjectName, std::optional<model::EndpointSlice>> slices;
    std::optional<std::map<std::string, model::Node>> nodes;
    std::optional<std::map<std::string, model::ServiceCidr>> service_cidrs;
  };

  void remember_former();
  void remember_before(const model::Delta& delta);
  SharedChanges note(model::ChangeSet changes);
  template <class... Things>
  void throw_away(Things&&... things);
  [[nodiscard]] model::ClusterState last_good() const;
  [[nodiscard]] std::vector<Group> pending_groups() const;
  core::TablePtr isolate();
  core::TablePtr add_groups(const std::vector<Group>& groups, std::size_t from, std::size_t to);
  core::TablePtr try_compile(const model::ClusterState& state, const model::ChangeSet* changes);
  void end_shadow_if_well();

  std::unique_ptr<TableCompiler> compiler_;
  compile::NodeConfig config_;
  compile::HostState host_;
  model::ClusterState state_;
  std::optional<model::ClusterState> shadow_;
  SharedChanges changes_ = std::make_shared<const model::ChangeSet>();  ///< not null
  Undo undo_;
  /// A replaced state that nothing was taken out of yet; `changes_` names what differed. As good as
  /// an Undo, but costs nothing when the compile goes well.
  std::optional<model::ClusterState> former_;
  std::shared_ptr<const void> litter_;
  bool dirty_ = false;
  compile::Report report_;
  HealthPorts health_ports_;
  std::map<std::string, std::pair<Group, std::string>> failed_;  ///< by name; with the reason
  std::string last_reason_;
  unsigned tries_left_ = 0;
  std::uint64_t failures_ = 0;
};

}  // namespace sluice::publish
