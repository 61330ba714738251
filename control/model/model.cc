#include "control/model/model.h"

#include <algorithm>
#include <utility>

namespace sluice::model {
namespace {

constexpr const char* kServiceNameLabel = "kubernetes.io/service-name";

void sort_unique(std::vector<ObjectName>& names) {
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
}

/// Collects what really changed; add_* take the object before and after (nullptr: absent).
class Collector {
 public:
  void service(const ObjectName& name) { set_.services.push_back(name); }
  void slice(const EndpointSlice* before, const EndpointSlice* after) {
    set_.slices.push_back((before != nullptr ? before : after)->name);
    for (const EndpointSlice* s : {before, after}) {
      if (const auto owner = s != nullptr ? owner_of(*s) : std::nullopt; owner) {
        set_.slice_owners.push_back(*owner);
      }
    }
  }
  void node() { set_.nodes = true; }
  void service_cidr() { set_.service_cidrs = true; }

  ChangeSet finish(ClusterState& state) {
    sort_unique(set_.services);
    sort_unique(set_.slices);
    sort_unique(set_.slice_owners);
    if (!set_.empty()) {
      ++state.version;
    }
    return std::move(set_);
  }

 private:
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

/// What differs of one object: before and after; nullptr: absent.
template <class Object>
using Difference = std::pair<const Object*, const Object*>;
template <class Object>
using Differences = std::vector<Difference<Object>>;

/// A part of two sorted maps that holds the same range of names.
template <class Map>
struct Stretch {
  using Iterator = typename Map::const_iterator;
  Iterator before, before_end;
  Iterator after, after_end;
};

/// Walks two sorted maps side by side.
template <class Map>
Differences<typename Map::mapped_type> compare(Stretch<Map> s) {
  Differences<typename Map::mapped_type> out;
  while (s.before != s.before_end || s.after != s.after_end) {
    if (s.after == s.after_end || (s.before != s.before_end && s.before->first < s.after->first)) {
      out.emplace_back(&(s.before++)->second, nullptr);
    } else if (s.before == s.before_end || s.after->first < s.before->first) {
      out.emplace_back(nullptr, &(s.after++)->second);
    } else {
      if (!(s.before->second == s.after->second)) {
        out.emplace_back(&s.before->second, &s.after->second);
      }
      ++s.before;
      ++s.after;
    }
  }
  return out;
}

/// Two maps in about equal stretches, in the order of the names.
template <class Map>
std::vector<Stretch<Map>> stretches(const Map& before, const Map& after) {
  constexpr std::size_t kLength = 1024;
  std::vector<Stretch<Map>> out;
  Stretch<Map> rest{before.begin(), before.end(), after.begin(), after.end()};
  for (std::size_t left = before.size(); left > kLength; left -= kLength) {
    const auto b = std::next(rest.before, static_cast<std::ptrdiff_t>(kLength));
    const auto a = after.lower_bound(b->first);
    out.push_back({rest.before, b, rest.after, a});
    rest.before = b;
    rest.after = a;
  }
  out.push_back(rest);
  return out;
}

/// Calls `changed(before, after)` for each difference, in the order of the names.
template <class Map, class Changed>
void compare(const Map& before, const Map& after, const core::ParallelFor& parallel,
             Changed&& changed) {
  const auto parts = stretches(before, after);
  std::vector<Differences<typename Map::mapped_type>> found(parts.size());
  const auto one = [&](std::size_t i) { found[i] = compare(parts[i]); };
  parts.size() == 1 ? one(0) : parallel(parts.size(), one);
  for (const auto& part : found) {
    for (const auto& [b, a] : part) {
      changed(b, a);
    }
  }
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
  const auto service = [&](const Service* before, const Service* after) {
    changes.service((before != nullptr ? before : after)->name);
  };
  const auto slice = [&](const EndpointSlice* before, const EndpointSlice* after) {
    changes.slice(before, after);
  };
  const auto node = [&](const Node*, const Node*) { changes.node(); };
  const auto cidr = [&](const ServiceCidr*, const ServiceCidr*) { changes.service_cidr(); };
  for (const ObjectName& name : delta.deleted_services) {
    erase(state.services, name, service);
  }
  for (const ObjectName& name : delta.deleted_slices) {
    erase(state.slices, name, slice);
  }
  for (const std::string& name : delta.deleted_nodes) {
    erase(state.nodes, name, node);
  }
  for (const std::string& name : delta.deleted_service_cidrs) {
    erase(state.service_cidrs, name, cidr);
  }
  for (const Service& s : delta.services) {
    upsert(state.services, s.name, s, service);
  }
  for (const EndpointSlice& s : delta.slices) {
    upsert(state.slices, s.name, s, slice);
  }
  for (const Node& n : delta.nodes) {
    upsert(state.nodes, n.name, n, node);
  }
  for (const ServiceCidr& c : delta.service_cidrs) {
    upsert(state.service_cidrs, c.name, c, cidr);
  }
  return changes.finish(state);
}

ChangeSet exchange(ClusterState& state, ClusterState& next, const core::ParallelFor& parallel) {
  Collector changes;
  compare(state.services, next.services, parallel, [&](const Service* b, const Service* a) {
    changes.service((b != nullptr ? b : a)->name);
  });
  compare(state.slices, next.slices, parallel,
          [&](const EndpointSlice* b, const EndpointSlice* a) { changes.slice(b, a); });
  compare(state.nodes, next.nodes, parallel,
          [&](const Node*, const Node*) { changes.node(); });
  compare(state.service_cidrs, next.service_cidrs, parallel,
          [&](const ServiceCidr*, const ServiceCidr*) { changes.service_cidr(); });
  std::swap(state, next);
  std::swap(state.version, next.version);
  return changes.finish(state);
}

}  // namespace sluice::model
