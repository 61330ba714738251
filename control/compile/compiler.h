#pragma once

#include <memory>

#include "control/compile/compile.h"
#include "control/compile/id_registry.h"
#include "dataplane/core/fwd/parallel.h"

namespace sluice::compile {

/// Incremental compile. Keeps what it computed per Service; an update computes again only the
/// Services that the ChangeSet names (and those refused for want of ids, when some became free).
/// Guarantee: after any sequence of updates the table means what compile_full() of the same state
/// means (test/property/compile_property_test.cc).
///
/// Worked example: one EndpointSlice changes -> model::apply() names its owner -> update() merges
/// that Service's slices, selects, and hands one block per family and port to the TableBuilder,
/// which copies one page. Frontends are touched only if the Service began or ceased to have
/// something to send to.
///
/// Thread: the publisher's only.
class Compiler {
 public:
  /// @param ids outlives the compiler.
  /// @param previous table in force, nullptr: none.
  /// @param line, parallel  how to compute many Services at once and how to check a large table;
  /// the result does not depend on them.
  Compiler(Profile profile, IdRegistry& ids, core::TablePtr previous = nullptr,
           core::ParallelFor parallel = core::one_after_another,
           core::BatchLine line = core::batch_after_batch);
  ~Compiler();
  Compiler(Compiler&&) noexcept;
  Compiler& operator=(Compiler&&) = delete;

  /// Computes everything; first call, and after an error.
  [[nodiscard]] core::Result<Compiled> full(const model::ClusterState& state,
                                            const NodeConfig& config, const HostState& host);

  /// Computes what `changes` (of model::apply/replace since the last call) names, what a changed
  /// config, host or own Node makes necessary, and refused objects for which there is room now.
  /// Falls back to full() on the first call and after an error. Errors: as compile_full().
  [[nodiscard]] core::Result<Compiled> update(const model::ClusterState& state,
                                              const model::ChangeSet& changes,
                                              const NodeConfig& config, const HostState& host);

  /// True when an object was refused for want of ids and some have become free since: call update()
  /// with an empty ChangeSet.
  [[nodiscard]] bool retry_due() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace sluice::compile
