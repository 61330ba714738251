#include "control/server/object_pages.h"

#include <algorithm>
#include <iterator>

#include "control/compile/validate.h"

namespace sluice::server {
namespace {

constexpr std::size_t kPageBytes = 256u << 10;

/// Collects encoded objects and hands them on when a page is full.
class Pager {
 public:
  explicit Pager(const std::function<bool(const v1::Objects&)>& page) : page_(page) {}

  template <class Message, class List>
  bool add(Message message, List& list) {
    bytes_ += message.ByteSizeLong();
    *list.Add() = std::move(message);
    return bytes_ < kPageBytes || flush();
  }
  bool flush() {
    const bool go_on = bytes_ == 0 || page_(objects_);
    objects_.Clear();
    bytes_ = 0;
    return go_on;
  }
  v1::Objects& objects() { return objects_; }

 private:
  const std::function<bool(const v1::Objects&)>& page_;
  v1::Objects objects_;
  std::size_t bytes_ = 0;
};

bool wants(const ObjectFilter& filter, std::string_view kind, const std::string& ns,
           const std::string& name) {
  const bool kind_fits = filter.kinds.empty() || std::find(filter.kinds.begin(), filter.kinds.end(),
                                                           kind) != filter.kinds.end();
  return kind_fits && (filter.ns.empty() || filter.ns == ns) &&
         (filter.name.empty() || filter.name == name);
}

/// The rule book's own faults, for an object that the codec found well formed.
template <class Object>
bool valid(const Object& object, std::vector<codec::FieldError>& errors) {
  const auto faults = compile::validate(object);
  for (const auto& fault : faults) {
    errors.push_back({fault.object, fault.field, fault.reason});
  }
  return faults.empty();
}

/// Decodes each message of `list` and gives the good ones to `take`.
template <class List, class Take>
void decode_all(const List& list, std::vector<codec::FieldError>& errors, Take take) {
  for (const auto& message : list) {
    if (auto object = codec::decode(message, errors); object && valid(*object, errors)) {
      take(std::move(*object));
    }
  }
}

std::string text_of(std::string_view kind, const model::ObjectName& name) {
  return std::string(kind) + " " + name.text();
}

}  // namespace

void for_each_page(const model::ClusterState& state, const ObjectFilter& filter,
                   const std::function<bool(const v1::Objects&)>& page) {
  Pager pager(page);
  for (const auto& [name, object] : state.services) {
    if (wants(filter, "Service", name.ns, name.name) &&
        !pager.add(codec::encode(object), *pager.objects().mutable_services())) {
      return;
    }
  }
  for (const auto& [name, object] : state.slices) {
    if (wants(filter, "EndpointSlice", name.ns, name.name) &&
        !pager.add(codec::encode(object), *pager.objects().mutable_endpoint_slices())) {
      return;
    }
  }
  for (const auto& [name, object] : state.nodes) {
    if (wants(filter, "Node", "", name) &&
        !pager.add(codec::encode(object), *pager.objects().mutable_nodes())) {
      return;
    }
  }
  for (const auto& [name, object] : state.service_cidrs) {
    if (wants(filter, "ServiceCIDR", "", name) &&
        !pager.add(codec::encode(object), *pager.objects().mutable_service_cidrs())) {
      return;
    }
  }
  pager.flush();
}

void add_page(const v1::Objects& page, model::ClusterState& state,
              std::vector<codec::FieldError>& errors) {
  const auto twice = [&](std::string object) {
    errors.push_back({std::move(object), "", "appears twice"});
  };
  decode_all(page.services(), errors, [&](model::Service&& object) {
    const auto name = object.name;
    if (!state.services.try_emplace(name, std::move(object)).second) {
      twice(text_of("service", name));
    }
  });
  decode_all(page.endpoint_slices(), errors, [&](model::EndpointSlice&& object) {
    const auto name = object.name;
    if (!state.slices.try_emplace(name, std::move(object)).second) {
      twice(text_of("endpointslice", name));
    }
  });
  decode_all(page.nodes(), errors, [&](model::Node&& object) {
    const auto name = object.name;
    if (!state.nodes.try_emplace(name, std::move(object)).second) {
      twice("node " + name);
    }
  });
  decode_all(page.service_cidrs(), errors, [&](model::ServiceCidr&& object) {
    const auto name = object.name;
    if (!state.service_cidrs.try_emplace(name, std::move(object)).second) {
      twice("servicecidr " + name);
    }
  });
}

void merge_page(model::ClusterState&& page, std::vector<codec::FieldError>&& page_errors,
                model::ClusterState& state, std::vector<codec::FieldError>& errors) {
  errors.insert(errors.end(), std::make_move_iterator(page_errors.begin()),
                std::make_move_iterator(page_errors.end()));
  const auto take = [&](auto& from, auto& to, const auto& text) {
    to.merge(from);  // what is there already stays behind
    for (const auto& [name, object] : from) {
      errors.push_back({text(name), "", "appears twice"});
    }
  };
  take(page.services, state.services, [](const auto& name) { return text_of("service", name); });
  take(page.slices, state.slices, [](const auto& name) { return text_of("endpointslice", name); });
  take(page.nodes, state.nodes, [](const auto& name) { return "node " + name; });
  take(page.service_cidrs, state.service_cidrs,
       [](const auto& name) { return "servicecidr " + name; });
}

void add_page(const v1::Objects& page, model::Delta& delta,
              std::vector<codec::FieldError>& errors) {
  // Through a state, which finds doubles.
  model::ClusterState state;
  add_page(page, state, errors);
  const auto move_all = [](auto& from, auto& to) {
    for (auto& [name, object] : from) {
      to.push_back(std::move(object));
    }
  };
  move_all(state.services, delta.services);
  move_all(state.slices, delta.slices);
  move_all(state.nodes, delta.nodes);
  move_all(state.service_cidrs, delta.service_cidrs);
}

std::string add_delete(const v1::ObjectRef& ref, model::Delta& delta) {
  const bool namespaced = ref.kind() == "Service" || ref.kind() == "EndpointSlice";
  if (ref.name().empty()) {
    return "name is missing";
  }
  if (namespaced == ref.namespace_().empty()) {
    return namespaced ? "namespace is missing" : "objects of this kind live in no namespace";
  }
  if (ref.kind() == "Service") {
    delta.deleted_services.push_back({ref.namespace_(), ref.name()});
  } else if (ref.kind() == "EndpointSlice") {
    delta.deleted_slices.push_back({ref.namespace_(), ref.name()});
  } else if (ref.kind() == "Node") {
    delta.deleted_nodes.push_back(ref.name());
  } else if (ref.kind() == "ServiceCIDR") {
    delta.deleted_service_cidrs.push_back(ref.name());
  } else {
    return "kind \"" + ref.kind() + "\" is not one of Service, EndpointSlice, Node, ServiceCIDR";
  }
  return "";
}

}  // namespace sluice::server
