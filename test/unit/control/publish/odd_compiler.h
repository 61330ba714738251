#pragma once

#include <functional>
#include <memory>
#include <stdexcept>

#include "control/publish/table_maker.h"

namespace sluice::publish {

/// The real compiler, except that it throws for states the test calls odd.
class OddCompiler final : public TableCompiler {
 public:
  using IsOdd = std::function<bool(const model::ClusterState&)>;
  OddCompiler(compile::IdRegistry& ids, IsOdd is_odd)
      : real_(make_table_compiler(compile::Profile::kNftables, ids)), is_odd_(std::move(is_odd)) {}

  core::Result<compile::Compiled> full(const model::ClusterState& state,
                                       const compile::NodeConfig& config,
                                       const compile::HostState& host) override {
    ++calls;
    throw_if_odd(state);
    return real_->full(state, config, host);
  }
  core::Result<compile::Compiled> update(const model::ClusterState& state,
                                         const model::ChangeSet& changes,
                                         const compile::NodeConfig& config,
                                         const compile::HostState& host) override {
    ++calls;
    throw_if_odd(state);
    return real_->update(state, changes, config, host);
  }
  [[nodiscard]] bool retry_due() const override { return real_->retry_due(); }

  int calls = 0;

 private:
  void throw_if_odd(const model::ClusterState& state) const {
    if (is_odd_(state)) {
      throw std::runtime_error("odd object");
    }
  }
  std::unique_ptr<TableCompiler> real_;
  IsOdd is_odd_;
};

/// Odd: a Service of this name with this port.
inline OddCompiler::IsOdd service_with_port(const std::string& name, std::int64_t port) {
  return [=](const model::ClusterState& state) {
    const auto at = state.services.find({"default", name});
    return at != state.services.end() && !at->second.ports.empty() &&
           at->second.ports[0].port == port;
  };
}

}  // namespace sluice::publish
