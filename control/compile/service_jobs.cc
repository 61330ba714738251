#include "control/compile/service_jobs.h"

#include <algorithm>

#include "dataplane/core/fwd/invariants.h"

namespace sluice::compile {
namespace {

// Below this the start of a thread costs more than it brings.
constexpr std::size_t kWorthThreads = 64;

Installed describe(const PlacedBlock& placed, const NodeContext& context) {
  Installed out;
  out.slot = placed.slot;
  out.cluster_ip = placed.block.cluster_ip;
  for (const auto& [key, kind] : core::claimed_frontends(placed.block)) {
    out.claims.emplace_back(key,
                            Claim{placed.slot, kind, placed.block.dispatches(kind),
                                  placed.block.created_unix_seconds, placed.block.port, nullptr});
  }
  for (const auto* list : {&placed.block.load_balancer_vips, &placed.block.external_ips}) {
    for (const core::IpAddress& a : *list) {
      if (std::any_of(context.announce.begin(), context.announce.end(),
                      [&](const core::Cidr& c) { return c.contains(a); })) {
        out.announced.push_back(a);
      }
    }
  }
  return out;
}

/// Endpoints of the block in force that the new one has not.
std::vector<core::EndpointId> departed_of(const core::ServicePort* before,
                                          const core::ServicePort& after) {
  std::vector<core::EndpointId> left;
  if (before == nullptr) {
    return left;
  }
  std::vector<core::EndpointId> stay;
  stay.reserve(after.endpoints.size());
  for (const core::Endpoint& e : after.endpoints) {
    stay.push_back(e.id);
  }
  std::sort(stay.begin(), stay.end());
  for (const core::Endpoint& e : before->endpoints) {
    if (!std::binary_search(stay.begin(), stay.end(), e.id)) {
      left.push_back(e.id);
    }
  }
  return left;
}

void compute_rules(ServiceJob& job, const JobInputs& in, IdRegistry* ids) {
  const auto service = in.state.services.find(*job.name);
  if (service != in.state.services.end()) {
    job.service = &service->second;
    job.result =
        compile_service(*job.service, in.slices.slices_of(in.state, *job.name), in.context, ids);
  }
}

void make_ready(ServiceJob& job, const JobInputs& in) {
  job.blocks.reserve(job.result.blocks.size());
  for (PlacedBlock& placed : job.result.blocks) {
    const core::ServicePort* present = in.previous.service(placed.slot);
    ReadyBlock ready;
    ready.departed = departed_of(present, placed.block);
    ready.installed = describe(placed, in.context);
    ready.prepared = core::TableBuilder::prepare(std::move(placed.block), present);
    job.blocks.push_back(std::move(ready));
  }
}

}  // namespace

void compute(std::vector<ServiceJob>& jobs, const JobInputs& inputs, IdRegistry& ids,
             const core::ParallelFor& parallel) {
  const auto for_each = [&](const auto& body) {
    const auto one = [&](std::size_t i) { body(jobs[i]); };
    jobs.size() < kWorthThreads ? core::one_after_another(jobs.size(), one)
                                : parallel(jobs.size(), one);
  };
  for_each([&](ServiceJob& job) { compute_rules(job, inputs, nullptr); });
  for (ServiceJob& job : jobs) {
    if (!give_ids(job.result, ids)) {
      compute_rules(job, inputs, &ids);
    }
  }
  for_each([&](ServiceJob& job) { make_ready(job, inputs); });
}

}  // namespace sluice::compile
