#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "control/compile/compile.h"
#include "control/model/model.h"
#include "control/publish/sink_runner.h"
#include "control/publish/table_maker.h"

namespace sluice::publish {

/// A change was taken into the cluster state.
struct Accepted {
  std::uint64_t version = 0;  ///< of the state after the change
  bool changed = false;       ///< false: no effective change (F64)
  /// What compile() says about the objects of this change: skipped parts, lost frontends.
  std::vector<compile::ReportLine> report;
  /// Deletes of objects that did not exist, in the deleted_* lists.
  model::Delta not_found;
};

/// A change was not taken; the state is as before.
struct Refused {
  enum class Why : std::uint8_t {
    kNoSnapshot,  ///< a delta before the first full snapshot (SY-1)
    kOtherBase,   ///< the delta or replace is against another version
    kStopped,     ///< the publisher is not running
    kFailed,      ///< an error of ours while the change was taken in; see message
  };
  Why why = Why::kStopped;
  std::uint64_t version = 0;  ///< current: the one to resume from
  std::string message;        ///< kFailed: what happened
};

struct Status {
  enum class Source : std::uint8_t { kNone, kRestored, kControlPlane };
  Source source = Source::kNone;
  std::uint64_t version = 0;     ///< received
  std::uint64_t generation = 0;  ///< of the newest table
  std::size_t services = 0, endpoint_slices = 0, nodes = 0, service_cidrs = 0;
  std::uint64_t changes = 0;  ///< that had an effect
  ChangeTotals changed_objects;
  std::uint64_t no_effective_change = 0;
  std::uint64_t refused = 0;
  std::uint64_t compile_failures = 0;
  std::string compile_error;  ///< why the newest state has no table; "" when it has
  std::vector<FailedObject> failed;
  std::size_t slots_in_use = 0, endpoint_ids_in_use = 0, ids_retired = 0;
  compile::SharedList<compile::ReportLine> report;
  std::vector<SinkStatus> sinks;
};

struct Health {
  bool ok = true;
  std::string reason;  ///< one line when !ok
  bool fatal = true;   ///< when !ok: only a new start helps
};

/// How far the sinks have come, for those who follow them.
struct Standing {
  Status::Source source = Status::Source::kNone;
  std::uint64_t version = 0;                ///< received
  core::TablePtr wanted;                    ///< the newest table
  Edition in_force;                         ///< of the sink that is farthest behind
  std::shared_ptr<const model::Node> node;  ///< this node's object; null: unknown
  /// The last apply of a sink failed: what is in force may not be what it was.
  bool failing = false;
  /// Something received is not in force everywhere.
  [[nodiscard]] bool behind() const {
    return failing || version != in_force.version || wanted != in_force.table;
  }
  bool operator==(const Standing&) const = default;
};

}  // namespace sluice::publish
