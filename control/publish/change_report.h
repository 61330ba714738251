#pragma once

#include <set>
#include <string>
#include <vector>

#include "control/publish/table_maker.h"

namespace sluice::publish {

/// Names of the objects of a change, as reports write them.
[[nodiscard]] std::set<std::string> names_of(const model::ChangeSet& changes);

/// Appends what compile says about the objects in `names`, those that failed by an error of ours,
/// and why nothing is in effect if that is so.
void add_report(const std::set<std::string>& names, const TableMaker& maker,
                std::vector<compile::ReportLine>& report);

}  // namespace sluice::publish
