#include "control/publish/change_report.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <string>

namespace sluice::publish {
namespace {

/// Names of the objects of a change, as reports write them.
std::set<std::string> names_of(const model::ChangeSet& changes) {
  std::set<std::string> names;
  for (const auto& service : changes.services) {
    names.insert("service " + service.text());
  }
  for (const auto& owner : changes.slice_owners) {
    names.insert("service " + owner.text());
  }
  for (const auto& slice : changes.slices) {
    names.insert("endpointslice " + slice.text());
  }
  return names;
}

}  // namespace

model::Delta unknown_of(const model::Delta& delta, const model::ClusterState& state) {
  model::Delta unknown;
  const auto keep = [](const auto& names, const auto& map, auto& out) {
    std::copy_if(names.begin(), names.end(), std::back_inserter(out),
                 [&](const auto& name) { return !map.contains(name); });
  };
  keep(delta.deleted_services, state.services, unknown.deleted_services);
  keep(delta.deleted_slices, state.slices, unknown.deleted_slices);
  keep(delta.deleted_nodes, state.nodes, unknown.deleted_nodes);
  keep(delta.deleted_service_cidrs, state.service_cidrs, unknown.deleted_service_cidrs);
  return unknown;
}

void add_report(const model::ChangeSet& changes, const TableMaker& maker,
                std::vector<compile::ReportLine>& report) {
  using Kind = compile::ReportLine::Kind;
  const auto failed = maker.failed();
  if (!maker.report().lines.empty() || !failed.empty()) {
    const auto names = names_of(changes);
    for (const auto& name : names) {
      const auto lines = maker.report().of(name);
      report.insert(report.end(), lines.begin(), lines.end());
    }
    for (const auto& object : failed) {
      if (names.contains(object.object)) {
        report.push_back({Kind::kSkipped, object.object, "",
                          "error of the node, the former state stays: " + object.reason});
      }
    }
  }
  if (!maker.last_reason().empty()) {
    report.push_back({Kind::kSkipped, "", "", "not in effect: " + maker.last_reason()});
  }
}

}  // namespace sluice::publish
