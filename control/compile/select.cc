// Endpoint selection: rules EP-1..EP-8, EP-10 (section 6).
#include "control/compile/select.h"

#include <algorithm>

#include "control/compile/topology.h"

namespace sluice::compile {
namespace {

using Indexes = std::vector<core::EndpointIndex>;

enum class List : std::uint8_t { kCluster, kLocal };

/// Hears the selection and does nothing: leaves no code.
struct NoRecord {
  void topology(const TopologyChoice&) const {}
  void judged(List, std::size_t, Admission) const {}
};

/// Writes it down. The fallback pass says "in" or nothing new.
class Recorder {
 public:
  Recorder(SelectionRecord& record, std::size_t endpoints) : record_(record), size_(endpoints) {}
  void topology(const TopologyChoice& choice) { record_.topology = choice; }
  void judged(List list, std::size_t i, Admission a) {
    std::vector<Admission>& all = list == List::kCluster ? record_.cluster : record_.local;
    if (all.size() <= i) {
      all.reserve(size_);
      all.push_back(a);
    } else if (admitted(a)) {
      all[i] = a;
    }
  }

 private:
  SelectionRecord& record_;
  std::size_t size_;
};

/// C-2..C-4 for a list that has ready endpoints.
Admission judge_ready(const MergedEndpoint& e) {
  if (e.conditions.ready) {
    return Admission::kReady;
  }
  return e.conditions.fallback() ? Admission::kTerminating : Admission::kNotReady;
}

/// C-3 for a list that has none.
Admission judge_fallback(const MergedEndpoint& e) {
  return e.conditions.fallback() ? Admission::kFallback : Admission::kNotReady;
}

template <class Record>
class Selection {
 public:
  Selection(const std::vector<MergedEndpoint>& merged, const NodeContext& node,
            core::ServicePort& block, Record record)
      : merged_(merged), node_(node), block_(block), record_(record) {}

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
  /// Candidates by the judgement of each endpoint.
  template <class Judge>
  [[nodiscard]] Indexes where(List list, Judge&& judge) {
    Indexes out;
    for (std::size_t i = 0; i < merged_.size(); ++i) {
      const Admission a =
          block_.endpoints[i].weight == 0 ? Admission::kNoWeight : judge(merged_[i]);
      record_.judged(list, i, a);
      if (admitted(a)) {
        out.push_back(static_cast<core::EndpointIndex>(i));
      }
    }
    return out;
  }

  // EP-2.
  void select_cluster() {
    const TopologyChoice topology = choose_topology(merged_, node_);
    record_.topology(topology);
    block_.cluster = where(List::kCluster, [&](const MergedEndpoint& e) {
      if (e.conditions.ready && !available(e, topology.mode, node_)) {
        return topology.mode == TopologyMode::kSameNode ? Admission::kOtherNode
                                                        : Admission::kOtherZone;
      }
      return judge_ready(e);
    });
    if (block_.cluster.empty()) {
      block_.cluster = where(List::kCluster, judge_fallback);
    }
    block_.has_any = !block_.cluster.empty();
  }

  // EP-4, EP-6: the local list ignores topology and falls back by itself.
  void select_local() {
    if (!block_.uses_cluster) {
      block_.has_any = any_usable();
    }
    block_.local = where(List::kLocal, [](const MergedEndpoint& e) {
      return e.local ? judge_ready(e) : Admission::kNotLocal;
    });
    if (block_.local.empty()) {
      block_.local = where(List::kLocal, [](const MergedEndpoint& e) {
        return e.local ? judge_fallback(e) : Admission::kNotLocal;
      });
      block_.local_is_terminating_fallback = !block_.local.empty();
    }
  }

  [[nodiscard]] bool any_usable() const {
    for (std::size_t i = 0; i < merged_.size(); ++i) {
      const Conditions& c = merged_[i].conditions;
      if (block_.endpoints[i].weight != 0 && (c.ready || c.fallback())) {
        return true;
      }
    }
    return false;
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
  Record record_;
};

}  // namespace

void select_endpoints(const std::vector<MergedEndpoint>& merged, const NodeContext& node,
                      core::ServicePort& block) {
  Selection<NoRecord>(merged, node, block, {}).run();
}

void select_endpoints(const std::vector<MergedEndpoint>& merged, const NodeContext& node,
                      core::ServicePort& block, SelectionRecord& record) {
  Selection<Recorder>(merged, node, block, {record, merged.size()}).run();
}

}  // namespace sluice::compile
