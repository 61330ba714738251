#include "control/model/model.h"

#include <algorithm>
#include <utility>

namespace sluice::model {
namespace {

constexpr const char* kServiceNameLabel = "kubernetes.io/service-name";

template <class T>
void sort_unique(std::vector<T>& list) {
  if (!std::is_sorted(list.begin(), list.end())) {
    std::sort(list.begin(), list.end());
  }
  list.erase(std::unique(list.begin(), list.end()), list.end());
}

/// Collects what really changed; each takes the object before and after (nullptr: absent).
class Collector {
 public:
  /// @param most  changes there may be, if there are any: room is made for as many.
  explicit Collector(std::size_t most = 0) : most_(most) {}

  void add(const Service* before, const Service* after) {
    make_room(set_.services);
    set_.services.push_back((before != nullptr ? before : after)->name);
  }
  void add(const EndpointSlice* before, const EndpointSlice* after) {
    make_room(set_.slices);
    make_room(set_.slice_owners);
    set_.slices.push_back((before != nullptr ? before : after)->name);
    auto was = before != nullptr ? owner_of(*before) : std::nullopt;
    auto is = after != nullptr ? owner_of(*after) : std::nullopt;
    const bool moves = was != is;
    if (was && moves) {
      set_.slice_owners.push_back(*was);
    }
    if (is) {
      set_.slice_owners.push_back(*is);
    }
    if (moves) {
      make_room(set_.moved_slices);
      set_.moved_slices.push_back({set_.slices.back(), std::move(was)});
    }
  }
  void add(const Node*, const Node*) { set_.nodes = true; }
  void add(const ServiceCidr*, const ServiceCidr*) { set_.service_cidrs = true; }
  /// What came behind it, in the order of the parts.
  void append(std::vector<Collector>& parts) {
    append(parts, &ChangeSet::services);
    append(parts, &ChangeSet::slices);
    append(parts, &ChangeSet::slice_owners);
    append(parts, &ChangeSet::moved_slices);
    for (const Collector& part : parts) {
      set_.nodes = set_.nodes || part.set_.nodes;
      set_.service_cidrs = set_.service_cidrs || part.set_.service_cidrs;
    }
  }

  ChangeSet finish(ClusterState& state) {
    sort_unique(set_.services);
    sort_unique(set_.slices);
    sort_unique(set_.slice_owners);
    sort_unique(set_.moved_slices);
    if (!set_.empty()) {
      ++state.version;
    }
    return std::move(set_);
  }

 private:
  template <class T>
  void make_room(std::vector<T>& list) const {
    if (list.empty()) {
      list.reserve(most_);
    }
  }
  template <class T>
  void append(std::vector<Collector>& parts, std::vector<T> ChangeSet::*list) {
    std::vector<T>& all = set_.*list;
    std::size_t size = all.size();
    for (const Collector& part : parts) {
      size += (part.set_.*list).size();
    }
    all.reserve(size);
    for (Collector& part : parts) {
      auto& more = part.set_.*list;
      all.insert(all.end(), std::make_move_iterator(more.begin()),
                 std::make_move_iterator(more.end()));
    }
  }

  std::size_t most_;
  ChangeSet set_;
};

/// Upserts one object; `changed(before, after)` is called iff the stored value differs.
template <class Map, class Key, class Object, class Changed>
void upsert(Map& map, const Key& key, const Object& object, Changed&& changed) {
  const auto at = map.find(key);
  if (at == map.end()) {
    changed(static_cast<const Object*>(nullptr), &map.emplace(key, object).first->second);
  } else if (!(at->second == object)) {
    const Object before = std::exchange(at->second, object);
    changed(&before, &at->second);
  }
}

template <class Map, class Key, class Changed>
void erase(Map& map, const Key& key, Changed&& changed) {
  const auto at = map.find(key);
  if (at != map.end()) {
    const auto before = std::move(at->second);
    map.erase(at);
    changed(&before, static_cast<const typename Map::mapped_type*>(nullptr));
  }
}

constexpr std::size_t kStretch = 1024;  // objects

/// A part of two sorted maps that holds the same range of names.
template <class Map>
struct Stretch {
  using Iterator = typename Map::const_iterator;
  Iterator before, before_end;
  Iterator after, after_end;
};

/// Walks two sorted maps side by side.
template <class Map>
Collector compare(Stretch<Map> s) {
  using Object = typename Map::mapped_type;
  constexpr const Object* kAbsent = nullptr;
  Collector out(kStretch);
  while (s.before != s.before_end || s.after != s.after_end) {
    if (s.after == s.after_end || (s.before != s.before_end && s.before->first < s.after->first)) {
      out.add(&(s.before++)->second, kAbsent);
    } else if (s.before == s.before_end || s.after->first < s.before->first) {
      out.add(kAbsent, &(s.after++)->second);
    } else {
      if (!(s.before->second == s.after->second)) {
        out.add(&s.before->second, &s.after->second);
      }
      ++s.before;
      ++s.after;
    }
  }
  return out;
}

/// Two maps in stretches, about equal ones of the larger map, in the order of the names.
template <class Map>
std::vector<Stretch<Map>> stretches(const Map& before, const Map& after) {
  const bool grows = before.size() < after.size();
  const Map& larger = grows ? after : before;
  const Map& other = grows ? before : after;
  std::vector<Stretch<Map>> out;
  Stretch<Map> rest{before.begin(), before.end(), after.begin(), after.end()};
  for (std::size_t left = larger.size(); left > kStretch; left -= kStretch) {
    auto& start = grows ? rest.after : rest.before;
    auto& start_of_other = grows ? rest.before : rest.after;
    const auto end = std::next(start, static_cast<std::ptrdiff_t>(kStretch));
    const auto end_of_other = other.lower_bound(end->first);
    out.push_back(grows ? Stretch<Map>{start_of_other, end_of_other, start, end}
                        : Stretch<Map>{start, end, start_of_other, end_of_other});
    start = end;
    start_of_other = end_of_other;
  }
  out.push_back(rest);
  return out;
}

/// Adds every difference to `changes`, in the order of the names.
template <class Map>
void compare(const Map& before, const Map& after, const core::ParallelFor& parallel,
             Collector& changes) {
  const auto parts = stretches(before, after);
  std::vector<Collector> found(parts.size());
  const auto one = [&](std::size_t i) { found[i] = compare(parts[i]); };
  parallel(parts.size(), one);
  changes.append(found);
}

}  // namespace

std::optional<ObjectName> owner_of(const EndpointSlice& slice) {
  const auto label = slice.labels.find(kServiceNameLabel);
  if (label == slice.labels.end() || label->second.empty() || slice.name.ns.empty() ||
      slice.name.name.empty()) {
    return std::nullopt;
  }
  return ObjectName{slice.name.ns, label->second};
}

ChangeSet apply(ClusterState& state, const Delta& delta) {
  Collector changes;
  const auto changed = [&](const auto* before, const auto* after) { changes.add(before, after); };
  for (const ObjectName& name : delta.deleted_services) {
    erase(state.services, name, changed);
  }
  for (const ObjectName& name : delta.deleted_slices) {
    erase(state.slices, name, changed);
  }
  for (const std::string& name : delta.deleted_nodes) {
    erase(state.nodes, name, changed);
  }
  for (const std::string& name : delta.deleted_service_cidrs) {
    erase(state.service_cidrs, name, changed);
  }
  for (const Service& s : delta.services) {
    upsert(state.services, s.name, s, changed);
  }
  for (const EndpointSlice& s : delta.slices) {
    upsert(state.slices, s.name, s, changed);
  }
  for (const Node& n : delta.nodes) {
    upsert(state.nodes, n.name, n, changed);
  }
  for (const ServiceCidr& c : delta.service_cidrs) {
    upsert(state.service_cidrs, c.name, c, changed);
  }
  return changes.finish(state);
}

ChangeSet exchange(ClusterState& state, ClusterState& next, const core::ParallelFor& parallel) {
  Collector changes;
  compare(state.services, next.services, parallel, changes);
  compare(state.slices, next.slices, parallel, changes);
  compare(state.nodes, next.nodes, parallel, changes);
  compare(state.service_cidrs, next.service_cidrs, parallel, changes);
  std::swap(state, next);
  std::swap(state.version, next.version);
  return changes.finish(state);
}

}  // namespace sluice::model
