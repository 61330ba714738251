#include "control/publish/table_maker.h"

#include <algorithm>
#include <tuple>
#include <type_traits>

#include "control/publish/all_cores.h"
#include "control/publish/assembly_line.h"

namespace sluice::publish {
namespace {

// Halving 10,000 objects takes 14 steps of two tries; this finds a handful of bad ones. What is
// left when the tries are used up keeps its former value and is tried again later.
constexpr unsigned kMaxTries = 100;

class RealCompiler final : public TableCompiler {
 public:
  RealCompiler(compile::Profile profile, compile::IdRegistry& ids)
      : compiler_(profile, ids, nullptr, on_all_cores, on_a_line) {}
  core::Result<compile::Compiled> full(const model::ClusterState& state,
                                       const compile::NodeConfig& config,
                                       const compile::HostState& host) override {
    return compiler_.full(state, config, host);
  }
  core::Result<compile::Compiled> update(const model::ClusterState& state,
                                         const model::ChangeSet& changes,
                                         const compile::NodeConfig& config,
                                         const compile::HostState& host) override {
    return compiler_.update(state, changes, config, host);
  }
  [[nodiscard]] bool retry_due() const override { return compiler_.retry_due(); }

 private:
  compile::Compiler compiler_;
};

template <class Name>
void merge(std::vector<Name>& into, const std::vector<Name>& more) {
  if (into.empty()) {
    into = more;  // sorted and unique already
    return;
  }
  into.insert(into.end(), more.begin(), more.end());
  std::sort(into.begin(), into.end());
  into.erase(std::unique(into.begin(), into.end()), into.end());
}

/// Notes the value of `name` unless an earlier one is noted.
template <class Map, class Key, class Undo>
void remember(const Map& map, const Key& name, Undo& undo) {
  if (undo.contains(name)) {
    return;
  }
  const auto at = map.find(name);
  undo.emplace(name, at == map.end() ? std::nullopt : std::optional(at->second));
}

/// Takes the former values of `names` out of `former`, unless earlier ones are noted.
template <class Map, class Undo>
void remember_values(Map& former, const std::vector<model::ObjectName>& names, Undo& undo) {
  for (const auto& name : names) {
    const auto at = former.find(name);
    auto value = at == former.end() ? std::nullopt : std::optional(std::move(at->second));
    undo.try_emplace(name, std::move(value));
  }
}

template <class Map, class Undo>
void restore(const Undo& undo, Map& map) {
  for (const auto& [name, object] : undo) {
    if (object) {
      map.insert_or_assign(name, *object);
    } else {
      map.erase(name);
    }
  }
}

template <class Map, class Key>
void copy_object(const Key& name, const Map& from, Map& to) {
  if (const auto at = from.find(name); at != from.end()) {
    to.insert_or_assign(name, at->second);
  } else {
    to.erase(name);
  }
}

/// Makes the objects of `group` in `to` what they are in `from`.
template <class Group>
void copy_group(const Group& group, const model::ClusterState& from, model::ClusterState& to) {
  if (!group.service) {
    to.nodes = from.nodes;
    to.service_cidrs = from.service_cidrs;
    return;
  }
  copy_object(*group.service, from.services, to.services);
  for (const auto& slice : group.slices) {
    copy_object(slice, from.slices, to.slices);
  }
}

template <class Group>
std::string text_of(const Group& group) {
  return group.service ? "service " + group.service->text() : "nodes and servicecidrs";
}

}  // namespace

std::unique_ptr<TableCompiler> make_table_compiler(compile::Profile profile,
                                                   compile::IdRegistry& ids) {
  return std::make_unique<RealCompiler>(profile, ids);
}

template <class... Things>
void TableMaker::throw_away(Things&&... things) {
  using Litter = std::tuple<std::shared_ptr<const void>, std::decay_t<Things>...>;
  litter_ = std::make_shared<const Litter>(std::move(litter_), std::forward<Things>(things)...);
}

void TableMaker::remember_former() {
  if (!former_) {
    return;
  }
  // What changed before the replacement is noted already.
  remember_values(former_->services, changes_->services, undo_.services);
  remember_values(former_->slices, changes_->slices, undo_.slices);
  if (changes_->nodes && !undo_.nodes) {
    undo_.nodes = former_->nodes;
  }
  if (changes_->service_cidrs && !undo_.service_cidrs) {
    undo_.service_cidrs = former_->service_cidrs;
  }
  former_.reset();
}

void TableMaker::remember_before(const model::Delta& delta) {
  for (const auto& service : delta.services) {
    remember(state_.services, service.name, undo_.services);
  }
  for (const auto& name : delta.deleted_services) {
    remember(state_.services, name, undo_.services);
  }
  for (const auto& slice : delta.slices) {
    remember(state_.slices, slice.name, undo_.slices);
  }
  for (const auto& name : delta.deleted_slices) {
    remember(state_.slices, name, undo_.slices);
  }
  if (!undo_.nodes && !(delta.nodes.empty() && delta.deleted_nodes.empty())) {
    undo_.nodes = state_.nodes;
  }
  if (!undo_.service_cidrs &&
      !(delta.service_cidrs.empty() && delta.deleted_service_cidrs.empty())) {
    undo_.service_cidrs = state_.service_cidrs;
  }
}

SharedChanges TableMaker::note(model::ChangeSet changes) {
  dirty_ = dirty_ || !changes.empty();
  auto shared = std::make_shared<const model::ChangeSet>(std::move(changes));
  if (changes_->empty()) {
    changes_ = shared;
    return shared;
  }
  auto all = std::make_shared<model::ChangeSet>(*changes_);
  merge(all->services, shared->services);
  merge(all->slices, shared->slices);
  merge(all->slice_owners, shared->slice_owners);
  merge(all->moved_slices, shared->moved_slices);
  all->nodes = all->nodes || shared->nodes;
  all->service_cidrs = all->service_cidrs || shared->service_cidrs;
  changes_ = std::move(all);
  return shared;
}

SharedChanges TableMaker::replace(model::ClusterState next) {
  remember_former();
  auto changes = model::exchange(state_, next, on_all_cores);
  if (changes.empty()) {
    throw_away(std::move(next));
  } else {
    former_.emplace(std::move(next));
  }
  return note(std::move(changes));
}

SharedChanges TableMaker::apply(const model::Delta& delta) {
  remember_former();
  remember_before(delta);
  return note(model::apply(state_, delta));
}

bool TableMaker::set_host(compile::HostState host) {
  if (host == host_) {
    return false;
  }
  host_ = std::move(host);
  dirty_ = true;
  return true;
}

bool TableMaker::pending() const {
  return dirty_ || compiler_->retry_due();
}

core::TablePtr TableMaker::make() {
  core::TablePtr table = shadow_ ? nullptr : try_compile(state_, changes_.get());
  if (table == nullptr) {
    remember_former();
    table = isolate();
  }
  if (table != nullptr) {
    throw_away(std::exchange(changes_, std::make_shared<const model::ChangeSet>()),
               std::exchange(undo_, {}), std::move(former_));
    former_.reset();
    dirty_ = false;
  }
  return table;
}

core::TablePtr TableMaker::try_compile(const model::ClusterState& state,
                                       const model::ChangeSet* changes) {
  try {
    auto compiled = changes != nullptr ? compiler_->update(state, *changes, config_, host_)
                                       : compiler_->full(state, config_, host_);
    if (compiled && compiled->table != nullptr) {
      report_ = std::move(compiled->report);
      health_ports_ = std::move(compiled->health_ports);
      last_reason_.clear();
      return compiled->table;
    }
    last_reason_ = compiled ? "compile made no table" : compiled.error().message;
  } catch (const std::exception& error) {
    last_reason_ = error.what();
  }
  ++failures_;
  return nullptr;
}

model::ClusterState TableMaker::last_good() const {
  model::ClusterState good = state_;
  restore(undo_.services, good.services);
  restore(undo_.slices, good.slices);
  if (undo_.nodes) {
    good.nodes = *undo_.nodes;
  }
  if (undo_.service_cidrs) {
    good.service_cidrs = *undo_.service_cidrs;
  }
  return good;
}

std::vector<TableMaker::Group> TableMaker::pending_groups() const {
  std::map<model::ObjectName, Group> groups;
  for (const auto& name : changes_->services) {
    groups[name].service = name;
  }
  for (const auto& name : changes_->slices) {
    const auto now = state_.slices.find(name);
    auto owner = now == state_.slices.end() ? std::nullopt : model::owner_of(now->second);
    if (const auto before = undo_.slices.find(name);
        !owner && before != undo_.slices.end() && before->second) {
      owner = model::owner_of(*before->second);
    }
    auto& group = groups[owner.value_or(name)];
    group.service = owner.value_or(name);
    group.slices.push_back(name);
  }
  std::vector<Group> list;
  if (changes_->nodes || changes_->service_cidrs) {
    list.push_back({});
  }
  for (auto& [name, group] : groups) {
    if (const auto at = failed_.find(text_of(group)); at != failed_.end()) {
      merge(group.slices, at->second.first.slices);
    }
    list.push_back(std::move(group));
  }
  return list;
}

core::TablePtr TableMaker::isolate() {
  tries_left_ = kMaxTries;
  const bool had_shadow = shadow_.has_value();
  if (!had_shadow) {
    shadow_ = last_good();
  }
  // When even the former state does not compile, no object is to blame; nor is it when nothing
  // changed but the host.
  core::TablePtr table = try_compile(*shadow_, nullptr);
  if (table == nullptr) {
    if (!had_shadow) {
      shadow_.reset();
    }
    return nullptr;
  }
  const auto groups = pending_groups();
  if (auto newer = add_groups(groups, 0, groups.size()); newer != nullptr) {
    table = std::move(newer);
  }
  end_shadow_if_well();
  return table;
}

/// Takes groups [from, to) from the state into the shadow as far as it compiles.
/// @return the newest table made, null when none of them came in.
core::TablePtr TableMaker::add_groups(const std::vector<Group>& groups, std::size_t from,
                                      std::size_t to) {
  if (from == to) {
    return nullptr;
  }
  model::ClusterState saved;
  for (std::size_t i = from; i < to; ++i) {
    copy_group(groups[i], *shadow_, saved);
    copy_group(groups[i], state_, *shadow_);
  }
  tries_left_ -= tries_left_ > 0 ? 1 : 0;
  if (auto table = try_compile(*shadow_, nullptr); table != nullptr) {
    for (std::size_t i = from; i < to; ++i) {
      failed_.erase(text_of(groups[i]));
    }
    return table;
  }
  for (std::size_t i = from; i < to; ++i) {
    copy_group(groups[i], saved, *shadow_);
  }
  if (to - from == 1 || tries_left_ == 0) {
    for (std::size_t i = from; i < to; ++i) {
      failed_.insert_or_assign(text_of(groups[i]), std::pair(groups[i], last_reason_));
    }
    return nullptr;
  }
  const std::size_t middle = from + (to - from) / 2;
  auto first = add_groups(groups, from, middle);
  auto second = add_groups(groups, middle, to);
  return second != nullptr ? second : first;
}

core::TablePtr TableMaker::retry_failed() {
  if (failed_.empty() || !shadow_) {
    return nullptr;
  }
  std::vector<Group> groups;
  for (const auto& [name, entry] : failed_) {
    groups.push_back(entry.first);
  }
  tries_left_ = kMaxTries;
  auto table = add_groups(groups, 0, groups.size());
  end_shadow_if_well();
  return table;
}

void TableMaker::end_shadow_if_well() {
  if (failed_.empty()) {
    shadow_.reset();
  } else {
    last_reason_.clear();  // it belongs to an object
  }
}

std::vector<FailedObject> TableMaker::failed() const {
  std::vector<FailedObject> list;
  for (const auto& [name, entry] : failed_) {
    list.push_back({name, entry.second});
  }
  return list;
}

}  // namespace sluice::publish
