// services, backends, conns, counters, status: what the node does.
#include <algorithm>

#include "control/cli/commands.h"

namespace sluice::cli {
namespace {

std::string number(std::uint64_t value) {
  return std::to_string(value);
}

std::string endpoint_text(const std::string& address, std::uint32_t port) {
  const bool v6 = address.find(':') != address.npos;
  return (v6 ? "[" + address + "]" : address) + ":" + std::to_string(port);
}

/// Reads a stream of pages: each row as JSON at once, or handed to `add` and printed at the end.
/// @param when_empty  says why there was no row: a failure or nullopt.
template <class Stream, class Page, class Rows, class Add, class WhenEmpty>
Exit list(Stream& stream, Page& page, Rows rows, Call& call, const Output& output, const char* name,
          Columns columns, Add add, WhenEmpty when_empty) {
  std::optional<JsonList> json;
  if (output.json) {
    json.emplace(output.out, name);
  }
  bool begun = false;
  bool any = false;
  while (stream.Read(&page)) {
    call.progress();
    begun = true;
    for (const auto& row : rows(page)) {
      any = true;
      json ? json->add(json_of(row, true)) : add(row, columns);
    }
  }
  std::optional<Failure> failure = call.failure(stream.Finish(), begun);
  if (!failure && !any) {
    failure = when_empty();
  }
  if (json) {
    failure ? json->end(*failure) : json->end();
    return failure ? failure->exit : Exit::kOk;
  }
  if (failure) {
    return output.fail(*failure);
  }
  columns.print(output.out);
  return Exit::kOk;
}

/// Nothing is listed for a name: there is no such Service, or it has nothing of this kind.
std::optional<Failure> why_empty(Client& client, const Output& output, const NameFilter& filter,
                                 const char* what) {
  auto failure = no_such_object(client, "Service", filter);
  if (!failure && !filter.name.empty()) {
    output.warn("service \"" + filter.name + "\" has no " + what);
  }
  return failure;
}

/// "wrr", "mh(mh-port)": as ipvsadm prints them.
std::string scheduler_text(const v1::ServiceRow& row) {
  std::string flags;
  for (const auto& flag : row.scheduler_flags()) {
    flags += (flags.empty() ? "(" : ",") + flag;
  }
  return row.scheduler() + (flags.empty() ? "" : flags + ")");
}

void add_service(const v1::ServiceRow& row, Columns& columns) {
  std::string frontends;
  for (const auto& frontend : row.frontends()) {
    const bool node_port = frontend.kind() == "NodePort";
    frontends += (frontends.empty() ? "" : ",") +
                 (node_port ? "node:" + std::to_string(frontend.port())
                            : endpoint_text(frontend.address(), frontend.port()));
  }
  columns.add({row.name(), row.type(), row.protocol(), frontends.empty() ? "<none>" : frontends,
               scheduler_text(row), row.mode(),
               number(row.endpoints_ready()) + "/" + number(row.endpoints_total()),
               number(row.active_connections()), number(row.total_connections())});
}

void add_backend(const v1::BackendRow& row, Columns& columns) {
  columns.add({row.service(), row.protocol(), endpoint_text(row.address(), row.port()), row.state(),
               number(row.weight()), row.local() ? "yes" : "no", number(row.active_connections()),
               number(row.total_connections())});
}

void add_connection(const v1::ConnectionRow& row, Columns& columns) {
  columns.add({row.protocol(), endpoint_text(row.client(), row.client_port()),
               endpoint_text(row.vip(), row.vip_port()),
               endpoint_text(row.backend(), row.backend_port()),
               endpoint_text(row.source(), row.source_port()), row.state(), row.mode(),
               row.service().empty() ? "<gone>" : row.service(), number(row.worker()),
               number(row.age_ms() / 1000) + "s", number(row.idle_ms() / 1000) + "s"});
}

void print_sinks(const v1::GetStatusResponse& status, std::ostream& out) {
  Columns columns({"SINK", "VERSION", "GENERATION", "APPLIES", "FAILURES", "LAST ERROR"});
  for (const auto& sink : status.sinks()) {
    const bool behind = sink.applied_version() < sink.wanted_version();
    columns.add({sink.name(),
                 number(sink.applied_version()) +
                     (behind ? " (wanted " + number(sink.wanted_version()) + ")" : ""),
                 number(sink.applied_generation()), number(sink.applies()), number(sink.failures()),
                 !sink.alive()               ? "dead: " + sink.last_error()
                 : sink.last_error().empty() ? "-"
                                             : sink.last_error()});
  }
  columns.print(out);
}

void print_workers(const v1::GetStatusResponse& status, std::ostream& out) {
  Columns columns({"WORKER", "LCORE", "RUNS", "GENERATION", "CONNS-IPV4", "CONNS-IPV6", "MAX"});
  for (const auto& worker : status.workers()) {
    columns.add({number(worker.worker()), number(worker.lcore()), worker.running() ? "yes" : "no",
                 number(worker.generation()), number(worker.connections4()),
                 number(worker.connections6()), number(worker.connection_capacity())});
  }
  if (status.workers_size() > 0) {
    out << "\n";
    columns.print(out);
  }
}

void print_ports(const v1::GetStatusResponse& status, std::ostream& out) {
  Columns columns({"PORT", "DEVICE", "DRIVER", "LINK", "QUEUES", "MTU", "RX", "TX", "MISSED",
                   "NO-MBUF", "ERRORS", "TAP", "STEERING"});
  for (const auto& port : status.ports()) {
    columns.add({port.name(), port.device(), port.driver(), port.link_up() ? "up" : "down",
                 number(port.queues()), number(port.mtu()), number(port.rx_packets()),
                 number(port.tx_packets()), number(port.rx_missed()), number(port.rx_nombuf()),
                 number(port.errors()), port.tap(), port.steering()});
  }
  if (status.ports_size() > 0) {
    out << "\n";
    columns.print(out);
  }
}

void print_problems(const v1::GetStatusResponse& status, std::ostream& out) {
  const auto line = [&](const char* word, const v1::ObjectError& error) {
    out << word << ": " << error.object() << (error.object().empty() ? "" : ": ")
        << (error.field().empty() ? "" : error.field() + ": ") << error.message() << "\n";
  };
  if (!status.failed().empty() || !status.report().empty()) {
    out << "\n";
  }
  for (const auto& error : status.failed()) {
    line("failed", error);
  }
  for (const auto& error : status.report()) {
    line("note", error);
  }
}

void print_status(const v1::GetStatusResponse& status, std::ostream& out) {
  const auto& snapshot = status.snapshot();
  out << "node        " << (status.node_name().empty() ? "-" : status.node_name()) << "\n"
      << "version     " << (status.version().empty() ? "-" : status.version()) << ", up "
      << status.uptime_ms() / 1000 << " s\n"
      << "health      " << (status.healthy() ? "ok" : "failed: " + status.health_reason()) << "\n"
      << "snapshot    ";
  if (snapshot.source() == "none") {
    out << "none yet\n";
  } else {
    out << snapshot.source() << ", version " << snapshot.version() << ", generation "
        << snapshot.generation() << "\n";
  }
  out << "objects     " << snapshot.services() << " services, " << snapshot.endpoint_slices()
      << " endpointslices, " << snapshot.nodes() << " nodes, " << snapshot.service_cidrs()
      << " servicecidrs\n"
      << "changes     " << snapshot.changes() << " taken, " << snapshot.no_effective_change()
      << " without effect, " << snapshot.refused() << " refused, " << snapshot.compile_failures()
      << " compile failures\n\n";
  print_sinks(status, out);
  print_workers(status, out);
  print_ports(status, out);
  print_problems(status, out);
}

void print_counters(const v1::GetCountersResponse& response, bool per_worker, std::ostream& out) {
  std::vector<std::string> heading = {"COUNTER", "TOTAL"};
  int workers = 0;
  for (const auto& counter : response.counters()) {
    workers = std::max(workers, counter.per_worker_size());
  }
  for (int i = 0; per_worker && i < workers; ++i) {
    heading.push_back("W" + std::to_string(i));
  }
  heading.emplace_back("MEANING");
  Columns columns(heading);
  for (const auto& counter : response.counters()) {
    std::vector<std::string> row = {counter.name(), number(counter.total())};
    for (int i = 0; per_worker && i < workers; ++i) {
      row.push_back(i < counter.per_worker_size() ? number(counter.per_worker(i)) : "-");
    }
    row.push_back(counter.help());
    columns.add(std::move(row));
  }
  columns.print(out);
}

}  // namespace

void split_name(NameFilter& filter) {
  if (const auto slash = filter.name.find('/'); slash != filter.name.npos) {
    filter.ns = filter.name.substr(0, slash);
    filter.name = filter.name.substr(slash + 1);
  }
}

namespace {

/// Lists what has a namespace and a name.
/// @param what  as JSON calls the list; `thing`: what a Service that exists may have none of.
template <class Request, class Page, class Start, class Rows, class Add>
Exit list_named(Client& client, const Output& output, NameFilter filter, const char* what,
                const char* thing, Start start, Rows rows, Columns columns, Add add) {
  split_name(filter);
  if (auto failure = client.unreachable()) {
    return output.fail(*failure);
  }
  Request request;
  request.set_namespace_(filter.ns);
  request.set_name(filter.name);
  Call call(client);
  auto stream = start(client.node(), &call.context(), request);
  Page page;
  return list(*stream, page, rows, call, output, what, std::move(columns), add,
              [&] { return why_empty(client, output, filter, thing); });
}

}  // namespace

Exit services(Client& client, const Output& output, NameFilter filter) {
  return list_named<v1::ListServicesRequest, v1::ListServicesResponse>(
      client, output, std::move(filter), "services", "port this node serves",
      [](auto& node, auto* context, const auto& request) {
        return node.ListServices(context, request);
      },
      [](const auto& p) -> const auto& { return p.services(); },
      Columns(
          {"SERVICE", "TYPE", "PROTO", "FRONTENDS", "SCHED", "MODE", "READY", "ACTIVE", "TOTAL"}),
      add_service);
}

Exit backends(Client& client, const Output& output, NameFilter filter) {
  return list_named<v1::ListBackendsRequest, v1::ListBackendsResponse>(
      client, output, std::move(filter), "backends", "endpoint here",
      [](auto& node, auto* context, const auto& request) {
        return node.ListBackends(context, request);
      },
      [](const auto& p) -> const auto& { return p.backends(); },
      Columns({"SERVICE", "PROTO", "BACKEND", "STATE", "WEIGHT", "LOCAL", "ACTIVE", "TOTAL"}),
      add_backend);
}

Exit connections(Client& client, const Output& output, const v1::ListConnectionsRequest& request) {
  if (auto failure = client.unreachable()) {
    return output.fail(*failure);
  }
  Call call(client);
  auto stream = client.node().ListConnections(&call.context(), request);
  v1::ListConnectionsResponse page;
  return list(
      *stream, page, [](const auto& p) -> const auto& { return p.connections(); }, call, output,
      "connections",
      Columns({"PROTO", "CLIENT", "VIP", "BACKEND", "SOURCE", "STATE", "MODE", "SERVICE", "WORKER",
               "AGE", "IDLE"}),
      add_connection, [] { return std::optional<Failure>(); });
}

Exit counters(Client& client, const Output& output, bool all, bool per_worker) {
  if (auto failure = client.unreachable()) {
    return output.fail(*failure);
  }
  Call call(client);
  v1::GetCountersRequest request;
  request.set_all(all);
  v1::GetCountersResponse response;
  if (auto failure = call.failure(client.node().GetCounters(&call.context(), request, &response))) {
    return output.fail(*failure);
  }
  output.json ? output.print(response) : print_counters(response, per_worker, output.out);
  return Exit::kOk;
}

Exit status(Client& client, const Output& output) {
  if (auto failure = client.unreachable()) {
    return output.fail(*failure);
  }
  Call call(client);
  v1::GetStatusResponse response;
  if (auto failure = call.failure(client.node().GetStatus(&call.context(), {}, &response))) {
    return output.fail(*failure);
  }
  output.json ? output.print(response) : print_status(response, output.out);
  return Exit::kOk;
}

}  // namespace sluice::cli
