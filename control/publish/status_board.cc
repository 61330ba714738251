#include "control/publish/status_board.h"

#include <utility>

namespace sluice::publish {
namespace {

void fill(Status& status, const TableMaker& maker, const compile::IdRegistry& ids) {
  const auto& state = maker.state();
  status.services = state.services.size();
  status.endpoint_slices = state.slices.size();
  status.nodes = state.nodes.size();
  status.service_cidrs = state.service_cidrs.size();
  status.compile_failures = maker.failures();
  status.compile_error = maker.last_reason();
  status.failed = maker.failed();
  status.report = maker.report().lines;
  status.slots_in_use = ids.slots_in_use();
  status.endpoint_ids_in_use = ids.endpoints_in_use();
  status.ids_retired = ids.retired();
}

}  // namespace

void StatusBoard::count_refused() {
  const std::lock_guard lock(mutex_);
  ++status_.refused;
}

void StatusBoard::count_change(bool effective, const ChangeTotals& totals) {
  const std::lock_guard lock(mutex_);
  status_.changed_objects = totals;
  effective ? ++status_.changes : ++status_.no_effective_change;
}

bool StatusBoard::show(Status::Source source, std::uint64_t version, const TableMaker& maker,
                       const compile::IdRegistry& ids, const std::string& node_name,
                       core::TablePtr table) {
  const std::lock_guard lock(mutex_);
  const bool moved = table != nullptr || status_.version != version;
  if (table != nullptr) {
    table_ = std::move(table);
  }
  status_.source = source;
  status_.version = version;
  status_.generation = table_ == nullptr ? 0 : table_->generation();
  fill(status_, maker, ids);
  const auto& nodes = maker.state().nodes;
  if (const auto own = nodes.find(node_name); own == nodes.end()) {
    node_ = nullptr;
  } else if (node_ == nullptr || *node_ != own->second) {
    node_ = std::make_shared<const model::Node>(own->second);
  }
  return moved;
}

void StatusBoard::ended(std::string error) {
  const std::lock_guard lock(mutex_);
  control_error_ = std::move(error);
}

Status StatusBoard::status() const {
  const std::lock_guard lock(mutex_);
  return status_;
}

Standing StatusBoard::standing() const {
  const std::lock_guard lock(mutex_);
  Standing standing;
  standing.source = status_.source;
  standing.version = status_.version;
  standing.wanted = table_;
  standing.node = node_;
  return standing;
}

core::TablePtr StatusBoard::table() const {
  const std::lock_guard lock(mutex_);
  return table_;
}

std::uint64_t StatusBoard::version() const {
  const std::lock_guard lock(mutex_);
  return status_.version;
}

std::string StatusBoard::control_error() const {
  const std::lock_guard lock(mutex_);
  return control_error_;
}

}  // namespace sluice::publish
