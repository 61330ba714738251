// The command line: options, subcommands, and which function runs them.
#include <grpc/support/log.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cctype>

#include "control/cli/commands.h"

namespace sluice::cli {
namespace {

constexpr const char* kExitCodes =
    "Exit codes: 0 done; 1 bad input or refused; 2 wrong command line; 3 no daemon or no "
    "permission; 4 no answer in time; 5 accepted but not in effect in time; 6 connection lost or "
    "internal error.";

/// Everything the command line can say.
struct Arguments {
  std::string server = "unix:/run/sluice/sluiced.sock";
  double timeout = 10;
  std::string format = "table";
  FileOptions files;
  double wait = 5;
  std::string kind;
  std::vector<std::string> names;
  NameFilter filter;
  v1::ListConnectionsRequest connections;
  std::string client, vip, backend, protocol;
  std::uint32_t port = 0;
  std::uint64_t limit = 0;
  bool all = false, per_worker = false;
  FlowWords flow;
};

std::chrono::milliseconds milliseconds(double seconds) {
  return std::chrono::milliseconds(static_cast<std::int64_t>(seconds * 1000));
}

void add_file_options(CLI::App& command, Arguments& arguments, bool file_required) {
  auto* file = command.add_option("-f,--filename", arguments.files.files,
                                  "YAML or JSON file; - is standard input; may be repeated");
  file->required(file_required);
  command.add_option("-n,--namespace", arguments.files.ns,
                     "Namespace of objects that name none (default: default)");
  command.add_flag("--skip-other-kinds", arguments.files.skip_other_kinds,
                   "Skip kinds a service proxy does not take, with a warning");
  command
      .add_option("--wait", arguments.wait,
                  "Seconds to wait for the change to be in effect; 0: do not wait (default 5)")
      ->check(CLI::Range(0.0, 60.0));
}

void add_filter(CLI::App& command, Arguments& arguments) {
  command.add_option("name", arguments.filter.name, "Name, or namespace/name");
  command.add_option("-n,--namespace", arguments.filter.ns, "Namespace (default: all)");
}

void add_explain(CLI::App& app, FlowWords& flow) {
  auto& explain =
      *app.add_subcommand("explain", "Say what happens to a flow and every step that led to it");
  explain.add_option("--from", flow.from, "Source: ADDRESS or ADDRESS:PORT")->required();
  explain.add_option("--to", flow.to, "Destination: ADDRESS:PORT")->required();
  explain.add_option("--proto,--protocol", flow.protocol, "tcp, udp or sctp (default tcp)");
  auto* interface =
      explain.add_option("--iface", flow.interface, "Interface it arrives by (default: any)");
  explain.add_flag("--from-host", flow.from_host, "Made by a process of the node itself")
      ->excludes(interface);
}

void add_commands(CLI::App& app, Arguments& arguments) {
  add_file_options(*app.add_subcommand("apply", "Create or update the objects of a file"),
                   arguments, true);
  add_file_options(*app.add_subcommand("replace", "Make a file's objects the whole state"),
                   arguments, true);
  auto& remove = *app.add_subcommand("delete", "Delete the objects of a file, or by name");
  add_file_options(remove, arguments, false);
  remove.add_option("kind", arguments.kind, "services, endpointslices, nodes, servicecidrs");
  remove.add_option("names", arguments.names, "Names, or namespace/name");
  auto& get = *app.add_subcommand("get", "Show objects as they were received");
  get.add_option("kind", arguments.kind, "services, endpointslices, nodes, servicecidrs")
      ->required();
  add_filter(get, arguments);
  add_filter(*app.add_subcommand("services",
                                 "Show service ports: frontends, scheduler, mode, "
                                 "endpoints, connections"),
             arguments);
  add_filter(*app.add_subcommand("backends", "Show endpoints: state, weight, connections"),
             arguments);
  auto& conns = *app.add_subcommand("conns", "Show connections");
  conns.add_option("--client", arguments.client, "Only of this client address");
  conns.add_option("--vip", arguments.vip, "Only to this service address");
  conns.add_option("--port", arguments.port, "Only to this service port")
      ->check(CLI::Range(1, 65535));
  conns.add_option("--backend", arguments.backend, "Only to this endpoint address");
  conns.add_option("--protocol", arguments.protocol, "tcp, udp or sctp");
  conns.add_option("--limit", arguments.limit, "At most so many (default: all)")
      ->check(CLI::NonNegativeNumber);
  auto& counters = *app.add_subcommand("counters", "Show counters that are not 0");
  counters.add_flag("--all", arguments.all, "Also those that are 0");
  counters.add_flag("--per-worker", arguments.per_worker, "A column for each worker");
  add_explain(app, arguments.flow);
  app.add_subcommand("status", "Show version, health, sinks, workers and ports");
}

Exit run_command(const std::string& command, Arguments& arguments, const Output& output,
                 std::istream& in) {
  const Failure bad_kind{
      Exit::kUsage,
      "USAGE",
      "\"" + arguments.kind + "\" is not one of services, endpointslices, nodes, servicecidrs",
      {}};
  arguments.files.wait = milliseconds(arguments.wait);
  Client client(arguments.server, milliseconds(arguments.timeout));
  if (command == "apply") {
    return apply(client, output, arguments.files, in);
  }
  if (command == "replace") {
    return replace(client, output, arguments.files, in);
  }
  if (command == "delete") {
    const auto kind = kind_of(arguments.kind);
    if (arguments.files.files.empty() == arguments.names.empty()) {
      return output.fail({Exit::kUsage, "USAGE", "delete needs -f FILE, or a kind and names", {}});
    }
    return kind.empty() && !arguments.names.empty()
               ? output.fail(bad_kind)
               : remove(client, output, arguments.files, kind, arguments.names, in);
  }
  if (command == "get") {
    const auto kind = kind_of(arguments.kind);
    return kind.empty() ? output.fail(bad_kind) : get(client, output, kind, arguments.filter);
  }
  if (command == "services") {
    return services(client, output, arguments.filter);
  }
  if (command == "backends") {
    return backends(client, output, arguments.filter);
  }
  if (command == "conns") {
    return connections(client, output, arguments.connections);
  }
  if (command == "explain") {
    return explain(client, output, arguments.flow);
  }
  if (command == "counters") {
    return counters(client, output, arguments.all, arguments.per_worker);
  }
  return status(client, output);
}

void fill_connections(Arguments& arguments) {
  auto& request = arguments.connections;
  request.set_client(arguments.client);
  request.set_vip(arguments.vip);
  request.set_vip_port(arguments.port);
  request.set_backend(arguments.backend);
  request.set_protocol(arguments.protocol);
  request.set_limit(arguments.limit);
}

/// What is wrong with a command line: one line.
std::string fault_of(const CLI::App& app, const CLI::ParseError& error) {
  if (!app.get_subcommands().empty()) {
    return error.what();
  }
  std::string known;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    known += (known.empty() ? "" : ", ") + command->get_name();
  }
  const auto words = app.remaining();
  const auto word = std::find_if(words.begin(), words.end(),
                                 [](const std::string& w) { return !w.starts_with('-'); });
  if (word != words.end()) {
    return "\"" + *word + "\" is not one of " + known;
  }
  if (!words.empty()) {
    return "unknown option " + words.front();
  }
  const bool required =
      error.get_exit_code() == static_cast<int>(CLI::ExitCodes::RequiredError);
  return required ? "a command is missing: one of " + known : error.what();
}

/// Whether the words ask for JSON: also needed when they cannot be parsed.
bool wants_json(int argc, const char* const* argv) {
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "-ojson" || word == "-o=json" || word == "--output=json" ||
        ((word == "-o" || word == "--output") && i + 1 < argc &&
         std::string(argv[i + 1]) == "json")) {
      return true;
    }
  }
  return false;
}

}  // namespace

std::string kind_of(const std::string& word) {
  std::string lower = word;
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  if (lower == "service" || lower == "services" || lower == "svc") {
    return "Service";
  }
  if (lower == "endpointslice" || lower == "endpointslices" || lower == "eps") {
    return "EndpointSlice";
  }
  if (lower == "node" || lower == "nodes" || lower == "no") {
    return "Node";
  }
  if (lower == "servicecidr" || lower == "servicecidrs") {
    return "ServiceCIDR";
  }
  return "";
}

int run(int argc, const char* const* argv, std::istream& in, std::ostream& out, std::ostream& err) {
  gpr_set_log_function([](gpr_log_func_args*) {});  // one short line is enough
  Arguments arguments;
  CLI::App app("Controls sluiced, the node daemon of Sluice.", "sluicectl");
  app.footer(kExitCodes);
  app.require_subcommand(1);
  app.fallthrough();
  app.add_option("--server", arguments.server,
                 "unix:/path or host:port (default unix:/run/sluice/sluiced.sock)")
      ->envname("SLUICE_SERVER");
  app.add_option("--timeout", arguments.timeout, "Seconds without any answer (default 10)")
      ->check(CLI::Range(0.1, 3600.0));
  app.add_option("-o,--output", arguments.format, "table or json")
      ->check(CLI::IsMember({"table", "json"}));
  app.set_version_flag("--version", std::string("sluicectl ") + SLUICE_VERSION);
  add_commands(app, arguments);
  const bool json = wants_json(argc, argv);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& asked) {  // help or version
    return app.exit(asked, out, err);
  } catch (const CLI::ParseError& error) {
    const Output output{out, err, json};
    return static_cast<int>(output.fail({Exit::kUsage, "USAGE", fault_of(app, error), {}}));
  }
  fill_connections(arguments);
  const Output output{out, err, arguments.format == "json"};
  const auto exit = run_command(app.get_subcommands().front()->get_name(), arguments, output, in);
  out.flush();
  return static_cast<int>(exit);
}

}  // namespace sluice::cli
