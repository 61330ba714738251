#include "control/server/node_service.h"

#include <algorithm>
#include <vector>

#include "control/server/connection_row.h"
#include "control/server/names.h"
#include "dataplane/core/fwd/text.h"
#include "dataplane/core/sched/pick_plan.h"

namespace sluice::server {
namespace {

constexpr int kPageRows = 256;

/// "ns/name" of a block's printed name "ns/name:port".
std::string_view service_of(std::string_view printed) {
  return printed.substr(0, printed.find(':'));
}

model::ObjectName object_name(std::string_view service) {
  const auto slash = service.find('/');
  return {std::string(service.substr(0, slash)),
          std::string(slash == service.npos ? std::string_view{} : service.substr(slash + 1))};
}

/// Blocks of the wanted Services, by printed name, protocol, family.
std::vector<const core::ServicePort*> blocks_of(const core::ForwardingTable& table,
                                                const std::string& ns, const std::string& name) {
  std::vector<const core::ServicePort*> blocks;
  for (std::uint32_t i = 0; i < table.slot_limit(); ++i) {
    const auto* block = table.service(static_cast<core::ServiceSlot>(i));
    if (block == nullptr) {
      continue;
    }
    const auto object = object_name(service_of(block->name));
    if ((ns.empty() || ns == object.ns) && (name.empty() || name == object.name)) {
      blocks.push_back(block);
    }
  }
  std::sort(blocks.begin(), blocks.end(), [](const auto* a, const auto* b) {
    return std::tie(a->name, a->protocol, a->family) < std::tie(b->name, b->protocol, b->family);
  });
  return blocks;
}

void add_frontend(core::FrontendKind kind, const std::string& address, std::uint16_t port,
                  v1::ServiceRow& row) {
  auto& frontend = *row.add_frontends();
  frontend.set_kind(std::string(kind_text(kind)));
  frontend.set_address(address);
  frontend.set_port(port);
}

/// Flows refused for want of a source port: a row for each Service and address.
void add_exhaustion(const std::vector<pipeline::SourceExhaustion>& all,
                    const core::ForwardingTable& table, v1::GetCountersResponse& response) {
  for (const pipeline::SourceExhaustion& one : all) {
    const core::ServicePort* service = table.service(one.service);
    if (service != nullptr && pipeline::tag_of(*service) != one.service_tag) {
      continue;  // of one that had the slot before
    }
    auto& to = *response.add_counters();
    to.set_name("conn_snat_exhausted{service=" +
                (service == nullptr ? "?" : service->name) + ",address=" +
                core::to_string(one.address) + "}");
    to.set_help("flows refused: this address had no source port to any endpoint");
    to.set_total(one.flows);
  }
}

void fill_sink(const publish::SinkStatus& from, v1::SinkStatus& to) {
  to.set_name(from.name);
  to.set_alive(from.alive);
  to.set_wanted_version(from.wanted_version);
  to.set_applied_version(from.applied_version);
  to.set_wanted_generation(from.wanted_generation);
  to.set_applied_generation(from.applied_generation);
  to.set_applies(from.applies);
  to.set_failures(from.failures);
  to.set_last_error(from.last_error);
  for (const auto& one : from.unsupported) {
    to.add_unsupported(one.service_port + ": " + one.what);
  }
}

std::string_view source_text(publish::Status::Source source) {
  constexpr std::string_view kNames[] = {"none", "restored", "received"};
  return kNames[static_cast<std::size_t>(source)];
}

void fill_snapshot(const publish::Status& from, v1::SnapshotStatus& to) {
  to.set_source(std::string(source_text(from.source)));
  to.set_version(from.version);
  to.set_generation(from.generation);
  to.set_services(from.services);
  to.set_endpoint_slices(from.endpoint_slices);
  to.set_nodes(from.nodes);
  to.set_service_cidrs(from.service_cidrs);
  to.set_changes(from.changes);
  to.set_no_effective_change(from.no_effective_change);
  to.set_refused(from.refused);
  to.set_compile_failures(from.compile_failures);
}

void fill_port(const pipeline::PortStatus& from, v1::PortStatus& to) {
  to.set_name(from.name);
  to.set_device(from.device);
  to.set_driver(from.driver);
  to.set_tap(from.tap);
  to.set_mac(from.mac);
  to.set_queues(from.queues);
  to.set_mtu(from.mtu);
  to.set_link_up(from.link_up);
  to.set_steering(from.steering);
  to.set_rx_packets(from.rx_packets);
  to.set_tx_packets(from.tx_packets);
  to.set_rx_missed(from.rx_missed);
  to.set_rx_nombuf(from.rx_nombuf);
  to.set_errors(from.errors);
}

/// @return the first filter that cannot be read, "" when all can.
std::string read_filter(const v1::ListConnectionsRequest& request,
                        pipeline::ConnectionFilter& filter) {
  const auto address = [](const std::string& text, std::optional<core::IpAddress>& out) {
    out = text.empty() ? std::nullopt : core::parse_address(text);
    return text.empty() || out.has_value();
  };
  if (!address(request.client(), filter.client)) {
    return "client: \"" + request.client() + "\" is no IP address";
  }
  if (!address(request.vip(), filter.vip)) {
    return "vip: \"" + request.vip() + "\" is no IP address";
  }
  if (!address(request.backend(), filter.backend)) {
    return "backend: \"" + request.backend() + "\" is no IP address";
  }
  if (request.vip_port() > 65535) {
    return "vip_port: " + std::to_string(request.vip_port()) + " is not in 1 to 65535";
  }
  if (request.vip_port() != 0) {
    filter.vip_port = static_cast<std::uint16_t>(request.vip_port());
  }
  for (const auto protocol : {core::Protocol::kTcp, core::Protocol::kUdp, core::Protocol::kSctp}) {
    if (request.protocol() == core::protocol_name(protocol)) {
      filter.protocol = protocol;
    }
  }
  if (!request.protocol().empty() && !filter.protocol) {
    return "protocol: \"" + request.protocol() + "\" is not one of tcp, udp, sctp";
  }
  filter.limit = request.limit();
  return "";
}

}  // namespace

pipeline::EndpointUse NodeService::use_of(const core::Endpoint& endpoint) const {
  return view_ == nullptr ? pipeline::EndpointUse{} : view_->endpoint_use(endpoint.id);
}

void NodeService::fill_workers(v1::GetStatusResponse& response) const {
  if (view_ == nullptr) {
    return;
  }
  for (const auto& from : view_->workers()) {
    auto& to = *response.add_workers();
    to.set_worker(from.worker);
    to.set_lcore(from.lcore);
    to.set_running(from.running);
    to.set_polls(from.polls);
    to.set_connections4(from.connections4);
    to.set_connections6(from.connections6);
    to.set_connection_capacity(from.connection_capacity);
    to.set_generation(from.generation);
  }
  for (const auto& port : view_->ports()) {
    fill_port(port, *response.add_ports());
  }
}

grpc::Status NodeService::GetStatus(grpc::ServerContext* /*context*/,
                                    const v1::GetStatusRequest* /*request*/,
                                    v1::GetStatusResponse* response) {
  const auto status = publisher_.status();
  const auto health = publisher_.health();
  response->set_version(options_.version);
  response->set_uptime_ms(
      static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::milliseconds>(
                                     std::chrono::steady_clock::now() - started_)
                                     .count()));
  response->set_healthy(health.ok);
  response->set_health_reason(health.reason);
  if (const auto table = publisher_.table(); table != nullptr) {
    response->set_node_name(table->node().node_name);
  }
  fill_snapshot(status, *response->mutable_snapshot());
  for (const auto& sink : status.sinks) {
    fill_sink(sink, *response->add_sinks());
  }
  fill_workers(*response);
  for (const auto& failed : status.failed) {
    auto& to = *response->add_failed();
    to.set_object(failed.object);
    to.set_message(failed.reason);
  }
  if (!status.compile_error.empty()) {
    response->add_failed()->set_message("newest state not in effect: " + status.compile_error);
  }
  for (const auto& line : status.report) {
    auto& to = *response->add_report();
    to.set_object(line.object);
    to.set_field(line.field);
    to.set_message(line.reason);
  }
  return grpc::Status::OK;
}

void NodeService::fill_service(const core::ServicePort& block, v1::ServiceRow& row) const {
  using Kind = core::FrontendKind;
  row.set_name(block.name);
  row.set_family(std::string(family_text(block.family)));
  row.set_protocol(std::string(core::protocol_name(block.protocol)));
  if (!block.cluster_ip.is_unspecified()) {
    add_frontend(Kind::kClusterIp, core::to_string(block.cluster_ip), block.port, row);
  }
  for (const auto& address : block.external_ips) {
    add_frontend(Kind::kExternalIp, core::to_string(address), block.port, row);
  }
  for (const auto& address : block.load_balancer_vips) {
    add_frontend(Kind::kLoadBalancerVip, core::to_string(address), block.port, row);
  }
  if (block.node_port != 0) {
    add_frontend(Kind::kNodePort, "", block.node_port, row);
  }
  row.set_scheduler(std::string(core::name_of(block.scheduler)));
  for (const std::string_view flag : core::flag_names(block.scheduler, block.scheduler_flags)) {
    row.add_scheduler_flags(std::string(flag));
  }
  if (core::picks_by_hash(block.scheduler)) {
    row.set_maglev_table_size(core::maglev_size_of(block));
  }
  row.set_mode(std::string(mode_text(block.mode)));
  std::uint32_t ready = 0;
  pipeline::EndpointUse sum;
  for (const auto& endpoint : block.endpoints) {
    ready += endpoint.ready && !endpoint.terminating ? 1 : 0;
    const auto use = use_of(endpoint);
    sum.active += use.active;
    sum.total += use.total;
  }
  row.set_endpoints_ready(ready);
  row.set_endpoints_total(static_cast<std::uint32_t>(block.endpoints.size()));
  row.set_active_connections(sum.active);
  row.set_total_connections(sum.total);
  row.set_internal_when_empty(std::string(empty_text(block.internal_when_empty)));
  row.set_external_when_empty(std::string(empty_text(block.external_when_empty)));
}

grpc::Status NodeService::ListServices(grpc::ServerContext* context,
                                       const v1::ListServicesRequest* request,
                                       grpc::ServerWriter<v1::ListServicesResponse>* writer) {
  const auto table = publisher_.table();
  if (table == nullptr) {
    return grpc::Status::OK;
  }
  const auto state = publisher_.state();
  StreamGuard::Watched call(guard_, *context);
  v1::ListServicesResponse page;
  const auto flush = [&] {
    const bool went = page.services().empty() || call.step([&] { return writer->Write(page); });
    page.Clear();
    return went;
  };
  for (const auto* block : blocks_of(*table, request->namespace_(), request->name())) {
    auto& row = *page.add_services();
    fill_service(*block, row);
    if (state != nullptr) {
      const auto at = state->services.find(object_name(service_of(block->name)));
      const bool typed = at != state->services.end() && !at->second.type.empty();
      row.set_type(typed ? at->second.type : "ClusterIP");
    }
    if (page.services_size() >= kPageRows && !flush()) {
      return grpc::Status::OK;
    }
  }
  flush();
  return grpc::Status::OK;
}

grpc::Status NodeService::ListBackends(grpc::ServerContext* context,
                                       const v1::ListBackendsRequest* request,
                                       grpc::ServerWriter<v1::ListBackendsResponse>* writer) {
  const auto table = publisher_.table();
  if (table == nullptr) {
    return grpc::Status::OK;
  }
  StreamGuard::Watched call(guard_, *context);
  v1::ListBackendsResponse page;
  const auto flush = [&] {
    const bool went = page.backends().empty() || call.step([&] { return writer->Write(page); });
    page.Clear();
    return went;
  };
  for (const auto* block : blocks_of(*table, request->namespace_(), request->name())) {
    for (const auto& endpoint : block->endpoints) {
      auto& row = *page.add_backends();
      const auto use = use_of(endpoint);
      row.set_service(block->name);
      row.set_protocol(std::string(core::protocol_name(block->protocol)));
      row.set_address(core::to_string(endpoint.address));
      row.set_port(endpoint.port);
      row.set_weight(endpoint.weight);
      row.set_state(std::string(endpoint_state_text(endpoint)));
      row.set_local(endpoint.local);
      row.set_active_connections(use.active);
      row.set_total_connections(use.total);
      if (page.backends_size() >= kPageRows && !flush()) {
        return grpc::Status::OK;
      }
    }
  }
  flush();
  return grpc::Status::OK;
}

grpc::Status NodeService::ListConnections(grpc::ServerContext* context,
                                          const v1::ListConnectionsRequest* request,
                                          grpc::ServerWriter<v1::ListConnectionsResponse>* writer) {
  pipeline::ConnectionFilter filter;
  if (const auto wrong = read_filter(*request, filter); !wrong.empty()) {
    return {grpc::StatusCode::INVALID_ARGUMENT, wrong};
  }
  if (view_ == nullptr) {
    return {grpc::StatusCode::UNIMPLEMENTED,
            "this node has no workers: connections are the kernel's, see conntrack or ipvsadm"};
  }
  const DumpSlot slot(dumps_, options_.max_dumps);
  if (!slot.got()) {
    return {grpc::StatusCode::RESOURCE_EXHAUSTED,
            std::to_string(options_.max_dumps) + " dumps are running already, the limit"};
  }
  const auto table = publisher_.table();
  StreamGuard::Watched call(guard_, *context);
  v1::ListConnectionsResponse page;
  const auto flush = [&] {
    const bool went = page.connections().empty() || call.step([&] { return writer->Write(page); });
    page.Clear();
    return went;
  };
  std::uint64_t rows = 0;
  const auto dumped = view_->dump_connections(filter, [&](const pipeline::ConnectionRow& row) {
    fill_connection(row, table.get(), *page.add_connections());
    ++rows;
    const bool more = filter.limit == 0 || rows < filter.limit;
    return (page.connections_size() < kPageRows || flush()) &&
           more;  // a cancelled call fails its write
  });
  flush();
  return dumped ? grpc::Status::OK
                : grpc::Status(grpc::StatusCode::INTERNAL, dumped.error().message);
}

grpc::Status NodeService::GetCounters(grpc::ServerContext* /*context*/,
                                      const v1::GetCountersRequest* request,
                                      v1::GetCountersResponse* response) {
  if (view_ == nullptr) {
    return grpc::Status::OK;
  }
  for (const auto& counter : view_->counters()) {
    std::uint64_t total = 0;
    for (const auto value : counter.per_worker) {
      total += value;
    }
    if (total == 0 && !request->all()) {
      continue;
    }
    auto& to = *response->add_counters();
    to.set_name(std::string(counter.name));
    to.set_help(std::string(counter.help));
    to.set_total(total);
    to.mutable_per_worker()->Assign(counter.per_worker.begin(), counter.per_worker.end());
  }
  if (const auto table = publisher_.table(); table != nullptr) {
    add_exhaustion(view_->source_exhaustion(), *table, *response);
  }
  return grpc::Status::OK;
}

}  // namespace sluice::server
