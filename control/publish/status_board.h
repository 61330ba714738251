#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>

#include "control/compile/id_registry.h"
#include "control/publish/standing.h"
#include "control/publish/table_maker.h"

namespace sluice::publish {

/// What the control thread knows, for those who ask from other threads. Thread: the calls that
/// change it are the control thread's, but for ended(); the rest any.
class StatusBoard {
 public:
  void count_refused();
  void count_change(bool effective, const ChangeTotals& totals);
  /// After a round. @param table  null: the one before stays.
  /// @return whether it or the version is another one.
  bool show(Status::Source source, std::uint64_t version, const TableMaker& maker,
            const compile::IdRegistry& ids, const std::string& node_name, core::TablePtr table);
  /// The control thread ended by an error.
  void ended(std::string error);

  /// Without the sinks.
  [[nodiscard]] Status status() const;
  /// Without what is in force.
  [[nodiscard]] Standing standing() const;
  [[nodiscard]] core::TablePtr table() const;
  [[nodiscard]] std::uint64_t version() const;
  /// Why the control thread ended; "" while it runs.
  [[nodiscard]] std::string control_error() const;

 private:
  mutable std::mutex mutex_;
  Status status_;
  std::shared_ptr<const model::Node> node_;  ///< this node's
  core::TablePtr table_;
  std::string control_error_;
};

}  // namespace sluice::publish
