#pragma once

#include <vector>

#include "control/publish/table_maker.h"

namespace sluice::publish {

/// The deletes of `delta` that name nothing in `state`.
[[nodiscard]] model::Delta unknown_of(const model::Delta& delta, const model::ClusterState& state);

/// Appends what compile says about the objects of a change, those that failed by an error of ours,
/// and why nothing is in effect if that is so.
void add_report(const model::ChangeSet& changes, const TableMaker& maker,
                std::vector<compile::ReportLine>& report);

}  // namespace sluice::publish
