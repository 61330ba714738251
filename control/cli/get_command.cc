// get: the objects as the node received them.
#include <algorithm>
#include <cctype>

#include "control/cli/commands.h"

namespace sluice::cli {
namespace {

template <class List, class Text>
std::string joined(const List& list, Text text, const std::string& otherwise = "<none>") {
  std::string all;
  for (const auto& one : list) {
    all += (all.empty() ? "" : ",") + text(one);
  }
  return all.empty() ? otherwise : all;
}

const auto kAsIs = [](const std::string& text) { return text; };

std::string ports_text(const v1::ServiceSpec& spec) {
  return joined(spec.ports(), [](const v1::ServicePort& port) {
    return std::to_string(port.port()) +
           (port.node_port() == 0 ? "" : ":" + std::to_string(port.node_port())) + "/" +
           (port.protocol().empty() ? "TCP" : port.protocol());
  });
}

std::string external_text(const v1::Service& service) {
  std::vector<std::string> all(service.spec().external_ips().begin(),
                               service.spec().external_ips().end());
  for (const auto& ingress : service.status().load_balancer().ingress()) {
    all.push_back(ingress.ip().empty() ? ingress.hostname() : ingress.ip());
  }
  return joined(all, kAsIs);
}

void add(const v1::Service& service, Columns& columns) {
  const auto& spec = service.spec();
  const auto cluster =
      spec.cluster_ips().empty() ? spec.cluster_ip() : joined(spec.cluster_ips(), kAsIs);
  columns.add({service.metadata().namespace_(), service.metadata().name(),
               spec.type().empty() ? "ClusterIP" : spec.type(),
               cluster.empty() ? "<none>" : cluster, external_text(service), ports_text(spec)});
}

void add(const v1::EndpointSlice& slice, Columns& columns) {
  const auto ports = joined(
      slice.ports(),
      [](const v1::EndpointPort& port) {
        return port.has_port() ? std::to_string(port.port()) : std::string("*");
      },
      "<unset>");
  const auto addresses = joined(
      slice.endpoints(),
      [](const v1::Endpoint& endpoint) {
        return endpoint.addresses().empty() ? std::string() : endpoint.addresses(0);
      },
      "<unset>");
  columns.add({slice.metadata().namespace_(), slice.metadata().name(), slice.address_type(), ports,
               addresses});
}

void add(const v1::NodeObject& node, Columns& columns) {
  const auto& labels = node.metadata().labels();
  const auto zone = labels.find("topology.kubernetes.io/zone");
  columns.add({node.metadata().name(),
               joined(node.status().addresses(),
                      [](const v1::NodeAddress& address) { return address.address(); }),
               joined(node.spec().pod_cidrs(), kAsIs),
               zone == labels.end() ? "<none>" : zone->second});
}

void add(const v1::ServiceCIDR& cidr, Columns& columns) {
  columns.add({cidr.metadata().name(), joined(cidr.spec().cidrs(), kAsIs)});
}

Columns columns_for(const std::string& kind) {
  if (kind == "Service") {
    return Columns({"NAMESPACE", "NAME", "TYPE", "CLUSTER-IP", "EXTERNAL-IP", "PORT(S)"});
  }
  if (kind == "EndpointSlice") {
    return Columns({"NAMESPACE", "NAME", "ADDRESSTYPE", "PORTS", "ENDPOINTS"});
  }
  if (kind == "Node") {
    return Columns({"NAME", "ADDRESSES", "POD-CIDRS", "ZONE"});
  }
  return Columns({"NAME", "CIDRS"});
}

std::string api_version(const std::string& kind) {
  return kind == "EndpointSlice" ? "discovery.k8s.io/v1"
         : kind == "ServiceCIDR" ? "networking.k8s.io/v1"
                                 : "v1";
}

/// Calls `each` for every object of the answer.
template <class Each>
std::optional<Failure> for_each_object(Client& client, const std::string& kind,
                                       const NameFilter& filter, Each each) {
  v1::GetSnapshotRequest request;
  request.add_kinds(kind);
  request.set_namespace_(filter.ns);
  request.set_name(filter.name);
  Call call(client);
  auto stream = client.cluster().GetSnapshot(&call.context(), request);
  v1::GetSnapshotResponse part;
  bool begun = false;
  while (stream->Read(&part)) {
    call.progress();
    begun = true;
    const auto& objects = part.objects();
    std::for_each(objects.services().begin(), objects.services().end(), each);
    std::for_each(objects.endpoint_slices().begin(), objects.endpoint_slices().end(), each);
    std::for_each(objects.nodes().begin(), objects.nodes().end(), each);
    std::for_each(objects.service_cidrs().begin(), objects.service_cidrs().end(), each);
  }
  return call.failure(stream->Finish(), begun);
}

Failure not_found(std::string kind, const NameFilter& filter) {
  std::transform(kind.begin(), kind.end(), kind.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return {Exit::kRefused,
          "NOT_FOUND",
          "no such " + kind + " \"" + (filter.ns.empty() ? "" : filter.ns + "/") + filter.name + "\"",
          {}};
}

/// A Kubernetes List, which apply -f takes back.
Exit get_json(Client& client, const Output& output, const std::string& kind,
              const NameFilter& filter) {
  output.out << R"({"apiVersion":"v1","kind":"List","items":[)";
  const std::string head = R"({"apiVersion":")" + api_version(kind) + R"(","kind":")" + kind + "\"";
  bool first = true;
  auto failure = for_each_object(client, kind, filter, [&](const auto& object) {
    const auto body = json_of(object, false);
    output.out << (first ? "\n" : ",\n") << head << (body == "{}" ? "" : ",") << body.substr(1);
    first = false;
  });
  if (!failure && first && !filter.name.empty()) {
    failure = not_found(kind, filter);
  }
  output.out << "]" << (failure ? ",\"error\":" + json_of(*failure) : "") << "}\n";
  return failure ? failure->exit : Exit::kOk;
}

}  // namespace

std::optional<Failure> no_such_object(Client& client, const std::string& kind,
                                      const NameFilter& filter) {
  if (filter.name.empty()) {
    return std::nullopt;
  }
  bool any = false;
  auto failure = for_each_object(client, kind, filter, [&](const auto&) { any = true; });
  return failure || any ? failure : not_found(kind, filter);
}

Exit get(Client& client, const Output& output, const std::string& kind, NameFilter filter) {
  split_name(filter);
  if (auto failure = client.unreachable()) {
    return output.fail(*failure);
  }
  if (output.json) {
    return get_json(client, output, kind, filter);
  }
  auto columns = columns_for(kind);
  bool any = false;
  auto failure = for_each_object(client, kind, filter, [&](const auto& object) {
    add(object, columns);
    any = true;
  });
  if (!failure && !any && !filter.name.empty()) {
    failure = not_found(kind, filter);
  }
  if (failure) {
    return output.fail(*failure);
  }
  columns.print(output.out);
  return Exit::kOk;
}

}  // namespace sluice::cli
