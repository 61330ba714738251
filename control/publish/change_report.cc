#include "control/publish/change_report.h"

namespace sluice::publish {

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

void add_report(const std::set<std::string>& names, const TableMaker& maker,
                std::vector<compile::ReportLine>& report) {
  using Kind = compile::ReportLine::Kind;
  for (const auto& line : maker.report().lines) {
    if (names.contains(line.object)) {
      report.push_back(line);
    }
  }
  for (const auto& failed : maker.failed()) {
    if (names.contains(failed.object)) {
      report.push_back({Kind::kSkipped, failed.object, "",
                        "error of the node, the former state stays: " + failed.reason});
    }
  }
  if (!maker.last_reason().empty()) {
    report.push_back({Kind::kSkipped, "", "", "not in effect: " + maker.last_reason()});
  }
}

}  // namespace sluice::publish
