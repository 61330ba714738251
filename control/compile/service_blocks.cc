// Puts the rule families together for one Service: normalise (sections 2, 3), merge its slices (4),
// then one block per port and family: S-9..S-11, weights, selection (6, 7), refusals (9).
#include "control/compile/service_blocks.h"

#include <algorithm>
#include <utility>

#include "control/compile/empty.h"
#include "control/compile/health_ports.h"
#include "control/compile/masquerade.h"
#include "control/compile/modes.h"
#include "control/compile/select.h"
#include "control/compile/service_ports.h"
#include "control/compile/slices.h"
#include "dataplane/core/sched/pick_plan.h"

namespace sluice::compile {
namespace {

core::Family other_family(core::Family family) {
  return family == core::Family::kIpv4 ? core::Family::kIpv6 : core::Family::kIpv4;
}

class ServiceCompiler {
 public:
  ServiceCompiler(const model::Service& service, const NodeContext& node, IdRegistry* ids,
                  ServiceTrace* trace)
      : service_(service), node_(node), ids_(ids), trace_(trace) {}

  ServiceResult run(const std::vector<const model::EndpointSlice*>& slices) {
    compile(slices);
    return std::move(result_);
  }

 private:
  void compile(const std::vector<const model::EndpointSlice*>& slices) {
    Reporter report("service " + service_.name.text(), result_.lines);
    normal_ = normalise(service_, node_, report);
    report_other_slices(slices);
    for (const NormalFamily& family : normal_.families) {
      MergedPorts merged = merge_slices(slices, family.family, node_, result_.lines);
      if (normal_.extensions.mode == core::ForwardingMode::kIpip) {
        std::vector<ReportLine> told_elsewhere;
        borrow_endpoints(merged, merge_slices(slices, other_family(family.family), node_,
                                              told_elsewhere));
      }
      if (normal_.health_check_node_port != 0) {
        result_.health_ports.push_back({service_.name, family.family,
                                        normal_.health_check_node_port,
                                        count_local_endpoints(merged)});
      }
      for (const NormalPort& port : normal_.ports) {
        add_block(family, port, merged[{port.name, port.protocol}], report);
      }
    }
  }

  // SL-1: a slice of neither family never reaches merge_slices(), its faults are reported here.
  void report_other_slices(const std::vector<const model::EndpointSlice*>& slices) {
    for (const model::EndpointSlice* slice : slices) {
      if (slice->address_type != "IPv4" && slice->address_type != "IPv6") {
        Reporter report("endpointslice " + slice->name.text(), result_.lines);
        check_slice(*slice, report);
      }
    }
  }

  void add_block(const NormalFamily& family, const NormalPort& port,
                 std::vector<MergedEndpoint>& merged, Reporter& report) {
    PlacedBlock placed{{service_.name, port.name, port.protocol, family.family}, {}, {}};
    if (ids_ != nullptr && !place(placed, port, report)) {
      return;
    }
    describe(family, port, placed.block);
    place_endpoints(placed.slot, merged, placed.block, report);
    const bool traced = trace_ != nullptr && trace_->wanted == placed.key;
    if (traced) {
      trace_->merged = std::move(merged);
      select_endpoints(trace_->merged, node_, placed.block, trace_->selection);
    } else {
      select_endpoints(merged, node_, placed.block);
    }
    warn_of_small_table(placed.block, port, report);
    set_empty_verdicts(node_.profile, placed.block);
    limit_by_mode(port, placed.block, report);
    if (traced) {
      trace_->block = placed.block;
      trace_->found = true;
    }
    result_.blocks.push_back(std::move(placed));
  }

  bool place(PlacedBlock& placed, const NormalPort& port, Reporter& report) {
    const auto slot = ids_->acquire_slot(placed.key);
    if (!slot) {
      result_.short_of_ids = true;
      report.invalid(indexed("spec.ports", port.index),
                     "refused: all " + std::to_string(ids_->limits().service_ports) +
                         " service ports of the configuration are in use");
      return false;
    }
    placed.slot = *slot;
    return true;
  }

  static void warn_of_small_table(const core::ServicePort& b, const NormalPort& port,
                                  Reporter& report) {
    const std::size_t candidates = std::max(b.cluster.size(), b.local.size());
    const std::size_t size = core::maglev_size_of(b);
    if (core::picks_by_hash(b.scheduler) && candidates > size) {
      report.warning(indexed("spec.ports", port.index),
                     std::to_string(candidates) + " endpoints and a table of " +
                         std::to_string(size) + " slots: " + std::to_string(candidates - size) +
                         " get no flows (sluice.dev/maglev-table-size)");
    }
  }

  void describe(const NormalFamily& family, const NormalPort& port, core::ServicePort& b) const {
    b.name = printed_name(service_.name, port.name);
    b.family = family.family;
    b.protocol = port.protocol;
    b.port = port.port;
    b.node_port = port.node_port;
    b.health_check_node_port = normal_.health_check_node_port;
    b.internal_policy = normal_.internal_policy;
    b.external_policy = normal_.external_policy;
    b.externally_accessible = port.node_port != 0 || family.externally_accessible;  // S-9
    const bool internal_local = b.internal_policy == core::TrafficPolicy::kLocal;
    const bool external_local = b.external_policy == core::TrafficPolicy::kLocal;
    b.uses_cluster = !internal_local || b.externally_accessible;                   // S-10
    b.uses_local = internal_local || (external_local && b.externally_accessible);  // S-11
    b.affinity_seconds = normal_.affinity_seconds;
    b.scheduler = normal_.extensions.scheduler;
    b.scheduler_flags = normal_.extensions.scheduler_flags;
    b.maglev_size = normal_.extensions.maglev_size;
    b.mode = normal_.extensions.mode;
    b.masquerade_external = masquerades_external(b.external_policy, b.mode);
    b.created_unix_seconds = normal_.created;
    b.allowed_sources = family.allowed_sources;
    b.cluster_ip = family.cluster_ip;
    b.external_ips = family.external_ips;
    b.load_balancer_vips = family.load_balancer_vips;
  }

  /// Fills b.endpoints and takes out of `merged` what gets no id, so that both stay parallel.
  void place_endpoints(core::ServiceSlot slot, std::vector<MergedEndpoint>& merged,
                       core::ServicePort& b, Reporter& report) {
    b.endpoints.reserve(merged.size());
    if (ids_ == nullptr) {
      for (const MergedEndpoint& m : merged) {
        b.endpoints.push_back(endpoint_of(m, core::EndpointId::kNone));
      }
      return;
    }
    std::vector<EndpointAddress> wanted;
    wanted.reserve(merged.size());
    for (const MergedEndpoint& m : merged) {
      wanted.push_back({m.address, m.port});
    }
    const std::vector<core::EndpointId> ids = ids_->acquire_endpoints(slot, wanted);
    std::vector<MergedEndpoint> kept;
    kept.reserve(merged.size());
    for (std::size_t i = 0; i < merged.size(); ++i) {
      if (ids[i] == core::EndpointId::kNone) {
        result_.short_of_ids = true;
        report.invalid("endpoints", merged[i].identity() + " of " + b.name + " refused: all " +
                                        std::to_string(ids_->limits().endpoints) +
                                        " endpoints of the configuration are in use");
      } else {
        b.endpoints.push_back(endpoint_of(merged[i], ids[i]));
        kept.push_back(std::move(merged[i]));
      }
    }
    merged = std::move(kept);
  }

  [[nodiscard]] core::Endpoint endpoint_of(const MergedEndpoint& m, core::EndpointId id) const {
    core::Endpoint e;
    e.address = m.address;
    e.port = m.port;
    e.weight = weight_of(normal_.extensions, m.address, m.port, m.source->weight);
    e.id = id;
    e.local = m.local;
    e.ready = m.conditions.ready;
    e.serving = m.conditions.serving;
    e.terminating = m.conditions.terminating;
    return e;
  }

  const model::Service& service_;
  const NodeContext& node_;
  IdRegistry* ids_;
  ServiceTrace* trace_;
  NormalService normal_;
  ServiceResult result_;
};

}  // namespace

ServiceResult compile_service(const model::Service& service,
                              const std::vector<const model::EndpointSlice*>& slices,
                              const NodeContext& node, IdRegistry* ids, ServiceTrace* trace) {
  return ServiceCompiler(service, node, ids, trace).run(slices);
}

bool give_ids(ServiceResult& result, IdRegistry& ids) {
  std::vector<EndpointAddress> wanted;
  for (PlacedBlock& placed : result.blocks) {
    const auto slot = ids.acquire_slot(placed.key);
    if (!slot) {
      return false;
    }
    placed.slot = *slot;
    wanted.clear();
    for (const core::Endpoint& e : placed.block.endpoints) {
      wanted.push_back({e.address, e.port});
    }
    const std::vector<core::EndpointId> given = ids.acquire_endpoints(*slot, wanted);
    for (std::size_t i = 0; i < given.size(); ++i) {
      placed.block.endpoints[i].id = given[i];
    }
    if (std::find(given.begin(), given.end(), core::EndpointId::kNone) != given.end()) {
      return false;
    }
  }
  return true;
}

}  // namespace sluice::compile
