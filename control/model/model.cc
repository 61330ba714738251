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

/// Walks two sorted maps side by side.
template <class Map, class Changed>
void compare(const Map& before, const Map& after, Changed&& changed) {
  auto b = before.begin();
  auto a = after.begin();
  while (b != before.end() || a != after.end()) {
    if (a == after.end() || (b != before.end() && b->first < a->first)) {
      changed(&b->second, static_cast<const typename Map::mapped_type*>(nullptr));
      ++b;
    } else if (b == before.end() || a->first < b->first) {
      changed(static_cast<const typename Map::mapped_type*>(nullptr), &a->second);
      ++a;
    } else {
      if (!(b->second == a->second)) {
        changed(&b->second, &a->second);
      }
      ++b;
      ++a;
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

ChangeSet replace(ClusterState& state, ClusterState&& next) {
  return exchange(state, next);
}

ChangeSet exchange(ClusterState& state, ClusterState& next) {
  Collector changes;
  compare(state.services, next.services, [&](const Service* b, const Service* a) {
    changes.service((b != nullptr ? b : a)->name);
  });
  compare(state.slices, next.slices,
          [&](const EndpointSlice* b, const EndpointSlice* a) { changes.slice(b, a); });
  compare(state.nodes, next.nodes, [&](const Node*, const Node*) { changes.node(); });
  compare(state.service_cidrs, next.service_cidrs,
          [&](const ServiceCidr*, const ServiceCidr*) { changes.service_cidr(); });
  std::swap(state, next);
  std::swap(state.version, next.version);
  return changes.finish(state);
}

}  // namespace sluice::model
