#include "control/compile/compiler.h"

#include <algorithm>
#include <set>
#include <unordered_map>
#include <utility>
#include <vector>

#include "control/compile/counted_addresses.h"
#include "control/compile/frontends.h"
#include "control/compile/service_jobs.h"
#include "control/compile/slice_index.h"
#include "dataplane/core/fwd/invariants.h"
#include "dataplane/core/fwd/table_builder.h"

namespace sluice::compile {
namespace {

struct Entry {
  std::vector<Installed> blocks;
  std::vector<HealthPort> health_ports;
  std::vector<ReportLine> lines;
};

/// Finds the lines of an object.
struct ByObject {
  bool operator()(const ReportLine& a, const std::string& b) const { return a.object < b; }
  bool operator()(const std::string& a, const ReportLine& b) const { return a < b.object; }
};

bool same_claims(const Installed& a, const Installed& b) {
  return std::equal(a.claims.begin(), a.claims.end(), b.claims.begin(), b.claims.end(),
                    [](const auto& x, const auto& y) {
                      return x.first == y.first && x.second.kind == y.second.kind &&
                             x.second.dispatches == y.second.dispatches &&
                             x.second.created == y.second.created && x.second.port == y.second.port;
                    });
}

}  // namespace

class Compiler::Impl {
 public:
  Impl(Profile profile, IdRegistry& ids, core::TablePtr previous, core::ParallelFor parallel,
       core::BatchLine line)
      : profile_(profile),
        ids_(ids),
        parallel_(std::move(parallel)),
        line_(std::move(line)),
        previous_(previous != nullptr ? std::move(previous)
                                      : std::make_shared<const core::ForwardingTable>()) {}

  core::Result<Compiled> full(const model::ClusterState& state, const NodeConfig& config,
                              const HostState& host) {
    clear();
    take_inputs(state, config, host);
    slices_.rebuild(state);
    core::TableBuilder builder(previous_);
    entries_.reserve(state.services.size());
    contest_.expect(2 * state.services.size());  // most have a cluster IP, many one more
    cluster_ips_.expect(state.services.size());
    Names names;
    names.reserve(state.services.size());
    for (const auto& [name, service] : state.services) {
      names.push_back(&name);
    }
    install_all(state, names, builder);
    remove_unknown(builder);
    return finish(state, builder, true);
  }

  core::Result<Compiled> update(const model::ClusterState& state, const model::ChangeSet& changes,
                                const NodeConfig& config, const HostState& host) {
    if (!valid_ || (resolve_node(config, own_node(state, config), profile_) != context_)) {
      return full(state, config, host);
    }
    const bool node_part =
        changes.nodes || changes.service_cidrs || config != config_ || host != host_;
    take_inputs(state, config, host);
    slices_.update(state, changes.moved_slices);
    core::TableBuilder builder(previous_);
    install_all(state, names_of(changes), builder);
    return finish(state, builder, node_part);
  }

  [[nodiscard]] bool retry_due() const {
    return !short_of_ids_.empty() && ids_.releases() != releases_seen_;
  }

 private:
  static const model::Node* own_node(const model::ClusterState& state, const NodeConfig& config) {
    const auto at = state.nodes.find(config.node_name);
    return at == state.nodes.end() ? nullptr : &at->second;
  }

  void clear() {
    valid_ = false;
    health_changed_ = lines_changed_ = true;
    entries_.clear();
    contest_.clear();
    cluster_ips_.clear();
    announced_.clear();
    with_lines_.clear();
    with_health_.clear();
    short_of_ids_.clear();
  }

  void take_inputs(const model::ClusterState& state, const NodeConfig& config,
                   const HostState& host) {
    context_ = resolve_node(config, own_node(state, config), profile_);
    config_ = config;
    host_ = host;
  }

  [[nodiscard]] std::uint64_t next_generation() const { return previous_->generation() + 1; }

  using Names = std::vector<const model::ObjectName*>;

  /// The Services to compute, sorted; they live as long as `changes`, or are those of
  /// short_of_ids_.
  [[nodiscard]] Names names_of(const model::ChangeSet& changes) const {
    const auto less = [](const auto* a, const auto* b) { return *a < *b; };
    const auto same = [](const auto* a, const auto* b) { return *a == *b; };
    Names names;
    const auto add = [&](const auto& list) {
      const auto middle = static_cast<std::ptrdiff_t>(names.size());
      for (const model::ObjectName& name : list) {
        names.push_back(&name);
      }
      std::inplace_merge(names.begin(), names.begin() + middle, names.end(), less);
    };
    add(changes.services);
    add(changes.slice_owners);
    if (retry_due()) {
      add(short_of_ids_);
    }
    names.erase(std::unique(names.begin(), names.end(), same), names.end());
    return names;
  }

  /// Computes Services again and puts the results in place of the old ones.
  void install_all(const model::ClusterState& state, const Names& names,
                   core::TableBuilder& builder) {
    compute(names, {state, slices_, context_, *previous_}, ids_, line_,
            [&](ServiceJob& job) { install(job, builder); });
  }

  void install(ServiceJob& job, core::TableBuilder& builder) {
    if (job.service == nullptr && !entries_.contains(*job.name)) {
      return;  // O-8: slices of a Service that does not exist
    }
    const auto at = entries_.try_emplace(*job.name).first;
    const model::ObjectName& name = at->first;
    Entry& entry = at->second;
    ServiceResult& result = job.result;
    remove_missing(entry, job, builder);
    std::vector<Installed> installed;
    installed.reserve(job.blocks.size());
    for (ReadyBlock& block : job.blocks) {
      installed.push_back(place(block, name, entry, builder));
    }
    entry.blocks = std::move(installed);
    note(with_health_, name, !result.health_ports.empty());
    note(with_lines_, name, !result.lines.empty());
    health_changed_ = health_changed_ || entry.health_ports != result.health_ports;
    entry.health_ports = std::move(result.health_ports);
    lines_changed_ = lines_changed_ || entry.lines != result.lines;
    entry.lines = std::move(result.lines);
    note(short_of_ids_, name, result.short_of_ids);
    if (job.service == nullptr) {
      entries_.erase(at);
    }
  }

  static void note(std::set<model::ObjectName>& set, const model::ObjectName& name, bool in) {
    if (in) {
      set.insert(name);
    } else {
      set.erase(name);
    }
  }

  static Installed* find(std::vector<Installed>& blocks, core::ServiceSlot slot) {
    const auto at = std::find_if(blocks.begin(), blocks.end(),
                                 [&](const Installed& i) { return i.slot == slot; });
    return at == blocks.end() ? nullptr : &*at;
  }

  void remove_missing(Entry& entry, const ServiceJob& job, core::TableBuilder& builder) {
    for (const Installed& old : entry.blocks) {
      const bool stays =
          std::any_of(job.blocks.begin(), job.blocks.end(),
                      [&](const ReadyBlock& b) { return b.installed.slot == old.slot; });
      if (!stays) {
        withdraw(old);
        remove_slot(old.slot, builder);
      }
    }
  }

  void remove_slot(core::ServiceSlot slot, core::TableBuilder& builder) {
    builder.remove_service(slot);
    if (const core::ServicePort* block = previous_->service(slot); block != nullptr) {
      for (const core::Endpoint& e : block->endpoints) {
        ids_.retire_endpoint(e.id, next_generation());
      }
    }
    ids_.retire_slot(slot, next_generation());
  }

  /// Takes claims and address counts of a block back.
  void withdraw(const Installed& old) {
    for (const auto& [key, claim] : old.claims) {
      contest_.remove(key, claim.slot, claim.kind);
    }
    cluster_ips_.remove(old.cluster_ip);
    for (const core::IpAddress& a : old.announced) {
      announced_.remove(a);
    }
  }

  Installed place(ReadyBlock& block, const model::ObjectName& name, Entry& entry,
                  core::TableBuilder& builder) {
    for (const core::EndpointId id : block.departed) {
      ids_.retire_endpoint(id, next_generation());
    }
    Installed now = std::move(block.installed);
    for (auto& [key, claim] : now.claims) {
      claim.service = &name;
    }
    const Installed* old = find(entry.blocks, now.slot);
    const bool same = old != nullptr && same_claims(*old, now) &&
                      old->cluster_ip == now.cluster_ip && old->announced == now.announced;
    if (!same) {
      if (old != nullptr) {
        withdraw(*old);
      }
      for (const auto& [key, claim] : now.claims) {
        contest_.add(key, claim);
      }
      cluster_ips_.add(now.cluster_ip);
      for (const core::IpAddress& a : now.announced) {
        announced_.add(a);
      }
    }
    builder.set_service(now.slot, std::move(block.prepared));
    return now;
  }

  /// After a full pass: what the previous table had and no Service made.
  void remove_unknown(core::TableBuilder& builder) {
    std::vector<bool> made(previous_->slot_limit());
    for (const auto& [name, entry] : entries_) {
      for (const Installed& i : entry.blocks) {
        if (const auto slot = static_cast<std::size_t>(i.slot); slot < made.size()) {
          made[slot] = true;
        }
      }
    }
    for (std::uint32_t i = 0; i < previous_->slot_limit(); ++i) {
      const auto slot = static_cast<core::ServiceSlot>(i);
      if (previous_->service(slot) != nullptr && !made[i]) {
        remove_slot(slot, builder);
      }
    }
    previous_->for_each_frontend([&](const core::FrontendKey& key, const core::Frontend&) {
      if (!contest_.claimed(key)) {
        builder.remove_frontend(key);
      }
    });
  }

  core::Result<Compiled> finish(const model::ClusterState& state, core::TableBuilder& builder,
                                bool node_part) {
    releases_seen_ = ids_.releases();
    lines_changed_ = contest_.settle(builder) || lines_changed_;
    const bool cluster_ips = cluster_ips_.take_changed();
    const bool announced = announced_.take_changed();
    if (node_part || cluster_ips || announced) {
      set_node(state, builder);
    }
    auto table = builder.freeze(parallel_);
    valid_ = table.has_value();
    if (!valid_) {
      return tl::make_unexpected(table.error());
    }
    previous_ = *table;
    return assemble();
  }

  void set_node(const model::ClusterState& state, core::TableBuilder& builder) {
    const auto before = std::exchange(node_lines_, {});
    {
      Reporter report("node " + context_.node_name, node_lines_);
      builder.set_node(
          build_node_part(config_, context_, state, host_, {cluster_ips_, announced_}, report));
    }
    report_service_cidrs(state);
    lines_changed_ = lines_changed_ || node_lines_ != before;
  }

  void report_service_cidrs(const model::ClusterState& state) {
    for (const auto& [name, object] : state.service_cidrs) {
      Reporter report("servicecidr " + name, node_lines_);
      for (std::size_t i = 0; i < object.cidrs.size(); ++i) {
        if (!core::parse_cidr(object.cidrs[i])) {
          report.invalid(indexed("spec.cidrs", i), "'" + object.cidrs[i] + "' is not a CIDR");
        }
      }
    }
  }

  [[nodiscard]] Compiled assemble() {
    if (health_changed_) {
      gather_health_ports();
    }
    if (lines_changed_) {
      gather_lines();
    }
    health_changed_ = lines_changed_ = false;
    return {previous_, health_ports_, report_};
  }

  void gather_health_ports() {
    std::vector<HealthPort> all;
    for (const model::ObjectName& name : with_health_) {
      const auto& ports = entries_.at(name).health_ports;
      all.insert(all.end(), ports.begin(), ports.end());
    }
    health_ports_ = SharedList(std::move(all));
  }

  void gather_lines() {
    std::vector<ReportLine> lines = node_lines_;
    for (const model::ObjectName& name : with_lines_) {
      const auto& mine = entries_.at(name).lines;
      lines.insert(lines.end(), mine.begin(), mine.end());
    }
    contest_.append_report(lines);
    std::stable_sort(lines.begin(), lines.end(),
                     [](const auto& a, const auto& b) { return a.object < b.object; });
    report_.lines = SharedList(std::move(lines));
  }

  Profile profile_;
  IdRegistry& ids_;
  core::ParallelFor parallel_;
  core::BatchLine line_;
  core::TablePtr previous_;
  bool valid_ = false;
  NodeConfig config_;
  HostState host_;
  NodeContext context_;
  SliceIndex slices_;
  std::unordered_map<model::ObjectName, Entry, NameHash> entries_;  ///< claims point to the names
  FrontendContest contest_;
  CountedAddresses cluster_ips_;
  CountedAddresses announced_;
  std::vector<ReportLine> node_lines_;
  std::set<model::ObjectName> with_lines_;
  std::set<model::ObjectName> with_health_;
  std::set<model::ObjectName> short_of_ids_;
  std::uint64_t releases_seen_ = 0;
  // What the last calls put together, and whether it has changed since.
  SharedList<HealthPort> health_ports_;
  Report report_;
  bool health_changed_ = false;
  bool lines_changed_ = false;
};

std::span<const ReportLine> Report::of(const std::string& object) const {
  const auto [first, last] = std::equal_range(lines.begin(), lines.end(), object, ByObject{});
  return {first, last};
}

Compiler::Compiler(Profile profile, IdRegistry& ids, core::TablePtr previous,
                   core::ParallelFor parallel, core::BatchLine line)
    : impl_(std::make_unique<Impl>(profile, ids, std::move(previous), std::move(parallel),
                                   std::move(line))) {}
Compiler::~Compiler() = default;
Compiler::Compiler(Compiler&&) noexcept = default;

core::Result<Compiled> Compiler::full(const model::ClusterState& state, const NodeConfig& config,
                                      const HostState& host) {
  return impl_->full(state, config, host);
}

core::Result<Compiled> Compiler::update(const model::ClusterState& state,
                                        const model::ChangeSet& changes, const NodeConfig& config,
                                        const HostState& host) {
  return impl_->update(state, changes, config, host);
}

bool Compiler::retry_due() const {
  return impl_->retry_due();
}

core::Result<Compiled> compile_full(const model::ClusterState& state, const NodeConfig& config,
                                    const HostState& host, Profile profile, IdRegistry& ids,
                                    core::TablePtr previous) {
  return Compiler(profile, ids, std::move(previous)).full(state, config, host);
}

}  // namespace sluice::compile
