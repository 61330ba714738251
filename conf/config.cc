#include "conf/config.h"

#include <array>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <system_error>
#include <utility>

#include "conf/loader.h"
#include "control/http/bind_address.h"

namespace sluice::conf {
namespace {

constexpr std::array<std::pair<const char*, Mode>, 3> kModes = {
    {{"dpdk", Mode::kDpdk}, {"nftables", Mode::kNftables}, {"iptables", Mode::kIptables}}};

void read_mode(Section& top, std::optional<Mode> given, Mode& mode) {
  std::string word = "dpdk";
  top.text("mode", word);
  if (given) {
    mode = *given;
    return;
  }
  const auto read = parse_mode(word);
  if (read) {
    mode = *read;
  } else {
    top.fail("mode", read.error().message);
  }
}

/// A kernel mode, or "none".
void read_host_mode(Section& top, std::optional<Mode>& out) {
  std::string word = "none";
  top.text("host-mode", word);
  if (word == "none") {
    return;
  }
  const auto read = parse_mode(word);
  if (read && *read != Mode::kDpdk) {
    out = *read;
  } else {
    top.fail("host-mode", "none or a kernel mode of this sluiced is expected, not \"" +
                              word.substr(0, 60) + "\"");
  }
}

void read_idle(Section& section, std::vector<Idle>& out) {
  const YamlTree* node = section.find("idle");
  if (node == nullptr) {
    return;
  }
  std::vector<Idle> read;
  const auto one = [&](const YamlTree& item, const std::string& path) {
    Idle idle = Idle::kAuto;
    section.match<Idle>(item, path,
                        {{"auto", Idle::kAuto},
                         {"spin", Idle::kSpin},
                         {"yield", Idle::kYield},
                         {"sleep", Idle::kSleep}},
                        idle);
    read.push_back(idle);
  };
  if (node->kind == YamlTree::Kind::kList) {
    section.list("idle", one);
  } else {
    one(*node, section.path_of("idle"));
  }
  if (read.empty()) {
    section.fail("idle", "one of auto, spin, yield, sleep, or a list of them is expected");
    return;
  }
  out = std::move(read);
}

void read_workers(Section section, WorkersConfig& out) {
  constexpr std::uint64_t kMaxCore = 65535;
  constexpr std::uint32_t kMaxWorkers = 128;
  std::uint32_t count = 0;
  section.number_or_auto("count", {1, kMaxWorkers}, count);
  section.values(
      "cores", "the number of a CPU",
      [](std::string_view text) -> std::optional<std::uint32_t> {
        const auto core = parse_number(text);
        if (!core.has_value() || *core > kMaxCore) {
          return std::nullopt;
        }
        return static_cast<std::uint32_t>(*core);
      },
      out.cores);
  read_idle(section, out.idle);
  section.done();
  const auto cores = static_cast<std::uint32_t>(out.cores.size());
  if (cores > kMaxWorkers) {
    section.fail("cores", "at most 128 cores are expected");
  } else if (count != 0 && cores != 0 && count != cores) {
    section.fail("count", "it differs from the number of cores (" + std::to_string(cores) +
                              "); leave it out or make them equal");
  } else if (count != 0 || cores != 0) {
    out.count = count != 0 ? count : cores;
  }
}

void read_memory(Section section, MemoryConfig& out) {
  section.number_or_auto("mbufs", {1024, 16777216}, out.mbufs);
  section.word<Hugepages>(
      "hugepages", {{"auto", Hugepages::kAuto}, {"on", Hugepages::kOn}, {"off", Hugepages::kOff}},
      out.hugepages);
  section.number_or_auto("mib", {64, 1048576}, out.mib);
  section.done();
}

void read_tables(Section section, TablesConfig& out) {
  section.number("services", {1, 1048576}, out.services);
  section.number("backends", {1, 16777216}, out.backends);
  section.number("connections", {1024, 67108864}, out.connections);
  section.number("next-hops", {16, 65534}, out.next_hops);
  section.number("handover-ring", {64, 65536}, out.handover_ring);
  if ((out.handover_ring & (out.handover_ring - 1)) != 0) {
    section.fail("handover-ring", "a power of two in 64..65536 is expected, not " +
                                      std::to_string(out.handover_ring));
  }
  section.done();
}

std::optional<std::string> any_text(std::string_view text) {
  return std::string(text);
}

void read_eal(Section section, EalConfig& out) {
  section.text("file-prefix", out.file_prefix);
  section.values("extra-args", "a text", any_text, out.extra_args);
  section.done();
  if (out.file_prefix.size() > 63 || out.file_prefix.find('/') != std::string::npos) {
    section.fail("file-prefix", "at most 63 characters without / are expected");
  }
}

std::optional<std::string> parse_node_port_address(std::string_view text) {
  if (text == "primary" || core::parse_cidr(text).has_value()) {
    return std::string(text);
  }
  return std::nullopt;
}

void read_node(Section section, NodeSection& out) {
  section.text("name", out.name);
  section.text("zone", out.zone);
  section.values("addresses", "an IP address", core::parse_address, out.addresses);
  section.word<DetectLocal>("detect-local",
                            {{"cluster-cidr", DetectLocal::kClusterCidr},
                             {"node-cidr", DetectLocal::kNodeCidr},
                             {"bridge-interface", DetectLocal::kBridgeInterface},
                             {"interface-name-prefix", DetectLocal::kInterfaceNamePrefix}},
                            out.detect_local);
  section.values("cluster-cidrs", "a CIDR such as 10.244.0.0/16", core::parse_cidr,
                 out.cluster_cidrs);
  section.values("pod-cidrs", "a CIDR such as 10.244.1.0/24", core::parse_cidr, out.pod_cidrs);
  section.text("bridge-interface", out.bridge_interface);
  section.text("interface-name-prefix", out.interface_name_prefix);
  section.boolean("masquerade-all", out.masquerade_all);
  section.number("masquerade-bit", {0, 31}, out.masquerade_bit);
  section.values("node-port-addresses", "a CIDR such as 192.0.2.0/24, or primary,",
                 parse_node_port_address, out.node_port_addresses);
  section.boolean("allow-service-external-ips", out.allow_service_external_ips);
  section.done();
}

void read_snat(Section section, SnatConfig& out) {
  section.values("addresses", "an IP address", core::parse_address, out.addresses);
  section.number_or_auto("first-port", {1, 65535}, out.first_port);
  section.number_or_auto("last-port", {1, 65535}, out.last_port);
  section.done();
}

void read_ipip(Section section, IpipConfig& out) {
  section.values("sources", "a CIDR such as 192.0.2.128/25", core::parse_cidr, out.sources);
  section.done();
}

void read_timeouts(Section section, TimeoutsConfig& out) {
  section.duration("tcp-syn-sent", out.tcp_syn_sent);
  section.duration("tcp-syn-received", out.tcp_syn_received);
  section.duration("tcp-established", out.tcp_established);
  section.duration("tcp-fin-wait", out.tcp_fin_wait);
  section.duration("tcp-time-wait", out.tcp_time_wait);
  section.duration("tcp-closed", out.tcp_closed);
  section.duration("udp-new", out.udp_new);
  section.duration("udp-stream", out.udp_stream);
  section.duration("sctp-init", out.sctp_init);
  section.duration("sctp-established", out.sctp_established);
  section.duration("sctp-shutdown", out.sctp_shutdown);
  section.done();
}

/// healthz and metrics.
template <class Config>
void read_server(Section section, Config& out) {
  section.text("address", out.address);
  section.boolean("bind-hard-fail", out.bind_hard_fail);
  section.done();
  constexpr std::uint16_t kAnyPort = 1;  // what stands for a port that is left out is not ours
  if (const auto address = http::parse_bind_address(out.address, kAnyPort);
      !address || (address->port == 0 && !address->addresses.empty())) {
    section.fail("address",
                 "ADDRESS:PORT with an IP address, :PORT for all addresses, or \"\" for none, is "
                 "expected, not \"" +
                     out.address.substr(0, 60) + "\"");
  }
}

void read_conntrack(Section section, ConntrackConfig& out) {
  section.number("max-per-core", {0, 16777216}, out.max_per_core);
  section.number("min", {0, 1048576}, out.min);
  section.duration_or_zero("tcp-established-timeout", out.tcp_established_timeout);
  section.duration_or_zero("tcp-close-wait-timeout", out.tcp_close_wait_timeout);
  section.duration_or_zero("udp-timeout", out.udp_timeout);
  section.duration_or_zero("udp-stream-timeout", out.udp_stream_timeout);
  section.boolean("tcp-be-liberal", out.tcp_be_liberal);
  section.done();
}

void read_iptables(Section section, IptablesConfig& out) {
  using Variant = IptablesConfig::Variant;
  section.word<Variant>(
      "variant",
      {{"auto", Variant::kAuto}, {"legacy", Variant::kLegacy}, {"nft", Variant::kNft}},
      out.variant);
  section.boolean("localhost-node-ports", out.localhost_node_ports);
  section.done();
}

void read_min_sync_period(Section& top, std::optional<std::chrono::seconds>& out) {
  const YamlTree* node = top.find("min-sync-period");
  const bool given = node != nullptr && node->scalar != "auto";
  if (given) {
    top.duration_or_zero("min-sync-period", out.emplace());
  }
}

void read_words(Section& top, Config& out) {
  using core::SchedulerKind;
  top.word<SchedulerKind>("scheduler",
                          {{"random", SchedulerKind::kRandom},
                           {"wrandom", SchedulerKind::kWrandom},
                           {"rr", SchedulerKind::kRr},
                           {"wrr", SchedulerKind::kWrr},
                           {"lc", SchedulerKind::kLc},
                           {"wlc", SchedulerKind::kWlc},
                           {"lblc", SchedulerKind::kLblc},
                           {"lblcr", SchedulerKind::kLblcr},
                           {"sh", SchedulerKind::kSh},
                           {"dh", SchedulerKind::kDh},
                           {"sed", SchedulerKind::kSed},
                           {"nq", SchedulerKind::kNq},
                           {"mh", SchedulerKind::kMh}},
                          out.scheduler);
  top.word<LogLevel>("log-level",
                     {{"trace", LogLevel::kTrace},
                      {"debug", LogLevel::kDebug},
                      {"info", LogLevel::kInfo},
                      {"warn", LogLevel::kWarn},
                      {"error", LogLevel::kError}},
                     out.log_level);
  top.word<OwnerMap>(
      "test-owner-map",
      {{"normal", OwnerMap::kNormal}, {"inverted", OwnerMap::kInverted}, {"last", OwnerMap::kLast}},
      out.test_owner_map);
}

void read_config(Reader& reader, Section& top, std::optional<Mode> mode, Config& out) {
  read_mode(top, mode, out.mode);
  read_host_mode(top, out.host_mode);
  top.list("ports", [&](const YamlTree& node, const std::string& path) {
    read_port(reader, node, path, out.ports.emplace_back());
  });
  read_workers(top.section("workers"), out.workers);
  read_memory(top.section("memory"), out.memory);
  read_tables(top.section("tables"), out.tables);
  read_eal(top.section("eal"), out.eal);
  read_node(top.section("node"), out.node);
  top.values("announce", "a CIDR such as 198.51.100.0/24", core::parse_cidr, out.announce);
  read_snat(top.section("snat"), out.snat);
  read_ipip(top.section("ipip"), out.ipip);
  read_timeouts(top.section("timeouts"), out.timeouts);
  read_words(top, out);
  top.text("listen", out.listen);
  read_server(top.section("healthz"), out.healthz);
  read_server(top.section("metrics"), out.metrics);
  top.duration("sync-period", out.sync_period);
  read_min_sync_period(top, out.min_sync_period);
  read_conntrack(top.section("conntrack"), out.conntrack);
  read_iptables(top.section("iptables"), out.iptables);
  top.text("state-dir", out.state_dir);
  top.done();
  check_config(top, out);
}

}  // namespace

core::Result<Config> parse_noting_absent(std::string_view text, const std::string& file,
                                         std::set<std::string>& absent, std::optional<Mode> mode) {
  const auto tree = parse_yaml(text, file);
  if (!tree.has_value()) {
    return tl::make_unexpected(tree.error());
  }
  Reader reader(file);
  Section top(reader, &*tree, "");
  Config config;
  read_config(reader, top, mode, config);
  absent = reader.absent();
  if (reader.failed()) {
    return tl::make_unexpected(*reader.error());
  }
  return config;
}

const char* name_of(Mode mode) noexcept {
  for (const auto& [name, named] : kModes) {
    if (named == mode) {
      return name;
    }
  }
  return kModes.front().first;
}

core::Result<Mode> parse_mode(std::string_view word) {
  for (const auto& [name, mode] : kModes) {
    if (word == name) {
      return mode;
    }
  }
  for (const char* kernel : {"ipvs", "kernelspace"}) {
    if (word == kernel) {
      return tl::make_unexpected(core::Error{std::string("this sluiced has no kernel mode ") +
                                             kernel + "; nftables and iptables are built in"});
    }
  }
  return tl::make_unexpected(
      core::Error{"dpdk, nftables or iptables is expected, not \"" +
                  std::string(word.substr(0, 60)) + "\""});
}

core::Result<Config> parse(std::string_view text, const std::string& file,
                           std::optional<Mode> mode) {
  std::set<std::string> absent;
  return parse_noting_absent(text, file, absent, mode);
}

core::Result<Config> load(const std::string& path, std::optional<Mode> mode) {
  std::error_code status;
  if (std::filesystem::is_directory(path, status)) {
    return tl::make_unexpected(core::Error{path + ": cannot be read: it is a directory"});
  }
  std::ifstream in(path, std::ios::binary);
  if (!in) {
    return tl::make_unexpected(
        core::Error{path + ": cannot be read: " + std::generic_category().message(errno)});
  }
  std::ostringstream text;
  text << in.rdbuf();
  return parse(text.str(), path, mode);
}

}  // namespace sluice::conf
