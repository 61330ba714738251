// Endpoint selection: rules EP-1..EP-8, EP-10 (section 6).
#include "control/compile/select.h"

#include <algorithm>

#include "control/compile/topology.h"

namespace sluice::compile {
namespace {

using Indexes = std::vector<core::EndpointIndex>;

class Selection {
 public:
  Selection(const std::vector<MergedEndpoint>& merged, const NodeContext& node,
            core::ServicePort& block)
      : merged_(merged), node_(node), block_(block) {}

  void run() {
    if (block_.uses_cluster) {
      select_cluster();
    }
    if (block_.uses_local) {
      select_local();
    }
    select_reachable();
    block_.has_internal = block_.has_any && serves(block_.internal_policy);
    block_.has_external = block_.has_any && serves(block_.external_policy);
  }

 private:
  template <class Predicate>
  [[nodiscard]] Indexes where(Predicate&& wanted) const {
    Indexes out;
    for (std::size_t i = 0; i < merged_.size(); ++i) {
      if (block_.endpoints[i].weight != 0 && wanted(merged_[i])) {
        out.push_back(static_cast<core::EndpointIndex>(i));
      }
    }
    return out;
  }

  // EP-2.
  void select_cluster() {
    mode_ = topology_mode(merged_, node_);
    block_.cluster = where(
        [&](const MergedEndpoint& e) { return e.conditions.ready && available(e, mode_, node_); });
    if (block_.cluster.empty()) {
      block_.cluster = where([](const MergedEndpoint& e) { return e.conditions.fallback(); });
    }
    block_.has_any = !block_.cluster.empty();
  }

  // EP-4, EP-6: the local list ignores topology and falls back by itself.
  void select_local() {
    if (!block_.uses_cluster) {
      block_.has_any = !where([](const MergedEndpoint& e) {
                          return e.conditions.ready || e.conditions.fallback();
                        }).empty();
    }
    block_.local = where([](const MergedEndpoint& e) { return e.local && e.conditions.ready; });
    if (block_.local.empty()) {
      block_.local =
          where([](const MergedEndpoint& e) { return e.local && e.conditions.fallback(); });
      block_.local_is_terminating_fallback = !block_.local.empty();
    }
  }

  // EP-3, EP-5.
  void select_reachable() {
    if (!block_.uses_local) {
      block_.all_reachable = block_.cluster;
    } else if (!block_.uses_cluster) {
      block_.all_reachable = block_.local;
    } else {
      block_.all_reachable.clear();
      std::set_union(block_.cluster.begin(), block_.cluster.end(), block_.local.begin(),
                     block_.local.end(), std::back_inserter(block_.all_reachable));
    }
  }

  // EP-7.
  [[nodiscard]] bool serves(core::TrafficPolicy policy) const {
    return policy == core::TrafficPolicy::kCluster || !block_.local.empty();
  }

  const std::vector<MergedEndpoint>& merged_;
  const NodeContext& node_;
  core::ServicePort& block_;
  TopologyMode mode_ = TopologyMode::kNone;
};

}  // namespace

void select_endpoints(const std::vector<MergedEndpoint>& merged, const NodeContext& node,
                      core::ServicePort& block) {
  Selection(merged, node, block).run();
}

}  // namespace sluice::compile
