#include "control/compile/service_jobs.h"

#include <algorithm>
#include <array>

#include "control/compile/name_finder.h"
#include "dataplane/core/fwd/invariants.h"

namespace sluice::compile {
namespace {

// A thread is started for more than this; fewer are done before it runs.
constexpr std::size_t kBatch = 128;

Installed describe(const PlacedBlock& placed, const NodeContext& context) {
  Installed out;
  out.slot = placed.slot;
  out.cluster_ip = placed.block.cluster_ip;
  out.claims.reserve(2 + placed.block.external_ips.size() + placed.block.load_balancer_vips.size());
  core::for_each_claim(placed.block, [&](const core::FrontendKey& key, core::FrontendKind kind) {
    out.claims.emplace_back(key,
                            Claim{placed.slot, kind, placed.block.dispatches(kind),
                                  placed.block.created_unix_seconds, placed.block.port, nullptr});
  });
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

void compute_rules(ServiceJob& job, const JobInputs& in, ServiceFinder& services,
                   SliceFinder& slices, IdRegistry* ids) {
  job.service = services.find(*job.name);
  if (job.service != nullptr) {
    job.result = compile_service(*job.service, in.slices.slices_of(slices, *job.name), in.context,
                                 ids);
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

/// The stations, and what lies on the line between them.
class JobLine {
 public:
  JobLine(const std::vector<const model::ObjectName*>& names, const JobInputs& inputs,
          IdRegistry& ids, const std::function<void(ServiceJob&)>& install)
      : names_(names), in_(inputs), ids_(ids), install_(install) {}

  void run(const core::BatchLine& line) {
    line((names_.size() + kBatch - 1) / kBatch,
         {{[this](std::size_t batch) { compute_batch(batch); }, false},
          {[this](std::size_t batch) { give_ids_to(of(batch)); }, true},
          {[this](std::size_t batch) { make_all_ready(of(batch)); }, false},
          {[this](std::size_t batch) { install_all(of(batch)); }, true}});
  }

 private:
  using Jobs = std::vector<ServiceJob>;
  [[nodiscard]] Jobs& of(std::size_t batch) { return jobs_[batch % core::kBatchWindow]; }

  void compute_batch(std::size_t batch) {
    Jobs& jobs = of(batch);
    ServiceFinder services(in_.state.services);
    SliceFinder slices(in_.state.slices);
    const std::size_t from = batch * kBatch;
    const std::size_t end = std::min(names_.size(), from + kBatch);
    jobs.resize(end - from);
    for (std::size_t i = from; i < end; ++i) {
      jobs[i - from].name = names_[i];
      compute_rules(jobs[i - from], in_, services, slices, nullptr);
    }
  }
  void give_ids_to(Jobs& jobs) {
    for (ServiceJob& job : jobs) {
      if (!give_ids(job.result, ids_)) {
        ServiceFinder services(in_.state.services);
        SliceFinder slices(in_.state.slices);
        compute_rules(job, in_, services, slices, &ids_);
      }
    }
  }
  void make_all_ready(Jobs& jobs) {
    for (ServiceJob& job : jobs) {
      make_ready(job, in_);
    }
  }
  void install_all(Jobs& jobs) {
    for (ServiceJob& job : jobs) {
      install_(job);
    }
    jobs.clear();
  }

  const std::vector<const model::ObjectName*>& names_;
  const JobInputs& in_;
  IdRegistry& ids_;
  const std::function<void(ServiceJob&)>& install_;
  std::array<Jobs, core::kBatchWindow> jobs_;
};

}  // namespace

void compute(const std::vector<const model::ObjectName*>& names, const JobInputs& inputs,
             IdRegistry& ids, const core::BatchLine& line,
             const std::function<void(ServiceJob&)>& install) {
  if (!names.empty()) {
    JobLine(names, inputs, ids, install).run(line);
  }
}

}  // namespace sluice::compile
