#include "bench/kernel_peers.h"

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <functional>
#include <fstream>
#include <sstream>
#include <string>

#include "dataplane/core/fwd/text.h"

namespace sluice::bench {
namespace {

using core::Endpoint;
using core::ServicePort;

void for_each_service(const core::ForwardingTable& table,
                      const std::function<void(std::size_t, const ServicePort&)>& visit) {
  for (std::uint32_t i = 0; i < table.slot_limit(); ++i) {
    if (const ServicePort* s = table.service(static_cast<core::ServiceSlot>(i))) {
      visit(i, *s);
    }
  }
}

std::string protocol_of(const ServicePort& s) {
  return std::string(core::protocol_name(s.protocol));
}

/// 16 characters, as a hash of kube-proxy's.
std::string code(std::size_t service, std::size_t endpoint = 0) {
  char text[20];
  std::snprintf(text, sizeof(text), "%010zuE%05zu", service, endpoint);
  return text;
}

std::string nft_endpoint_name(std::size_t i, std::size_t e) {
  return code(i, e) + "-ns/svc/udp/dns__" + std::to_string(e);
}

/// The rules of a Service's own chain.
std::string nft_service_rules(std::size_t i, const ServicePort& s) {
  std::string rules;
  std::string map;
  for (std::size_t e = 0; e < s.cluster.size(); ++e) {
    const Endpoint& endpoint = s.endpoint(s.cluster[e]);
    map += (e == 0 ? "" : ", ") + std::to_string(e) + " : ";
    if (s.affinity_seconds != 0) {
      const std::string name = nft_endpoint_name(i, e);
      rules += "    ip saddr @affinity-" + name + " goto endpoint-" + name + "\n";
      map += "goto endpoint-" + name;
    } else {
      map += core::to_string(endpoint.address) + " . " + std::to_string(endpoint.port);
    }
  }
  const std::string pick = "numgen random mod " + std::to_string(s.cluster.size());
  return rules + (s.affinity_seconds != 0
                      ? "    " + pick + " vmap { " + map + " }\n"
                      : "    meta l4proto " + protocol_of(s) + " dnat ip addr . port to " + pick +
                            " map { " + map + " }\n");
}

std::string nft_service(std::size_t i, const ServicePort& s) {
  std::string out;
  for (std::size_t e = 0; s.affinity_seconds != 0 && e < s.cluster.size(); ++e) {
    const Endpoint& endpoint = s.endpoint(s.cluster[e]);
    const std::string name = nft_endpoint_name(i, e);
    out += "  set affinity-" + name + " { type ipv4_addr; flags dynamic,timeout; timeout " +
           std::to_string(s.affinity_seconds) + "s; }\n  chain endpoint-" + name +
           " {\n    update @affinity-" + name + " { ip saddr }\n    meta l4proto " +
           protocol_of(s) + " dnat to " + core::to_string(endpoint.address, endpoint.port) +
           "\n  }\n";
  }
  out += "  chain service-" + code(i) + " {\n" + nft_service_rules(i, s) + "  }\n";
  if (s.externally_accessible) {
    out += "  chain external-" + code(i) + " {\n    meta mark set meta mark | 0x4000\n    goto " +
           "service-" + code(i) + "\n  }\n";
  }
  return out;
}

std::string nft_frontends(std::size_t i, const ServicePort& s) {
  const std::string port = " . " + protocol_of(s) + " . " + std::to_string(s.port) + " : goto ";
  std::string out =
      "      " + core::to_string(s.cluster_ip) + port + "service-" + code(i) + ",\n";
  for (const core::IpAddress& vip : s.load_balancer_vips) {
    out += "      " + core::to_string(vip) + port + "external-" + code(i) + ",\n";
  }
  return out;
}

constexpr const char* kNftHooks = R"(
  chain services {
    ip daddr @cluster-ips ip saddr != 10.64.0.0/10 meta mark set meta mark | 0x4000
    ip daddr . meta l4proto . th dport vmap @service-ips
    ip daddr 192.0.2.11 meta l4proto . th dport vmap @service-nodeports
  }
  chain nat-prerouting { type nat hook prerouting priority -100; jump services; }
  chain nat-output { type nat hook output priority -100; jump services; }
  chain nat-postrouting {
    type nat hook postrouting priority 100;
    meta mark & 0x4000 == 0x4000 meta mark set meta mark ^ 0x4000 masquerade fully-random
  }
}
)";

std::string sep(std::size_t i, std::size_t e) {
  return "KUBE-SEP-" + code(i, e);
}

std::string iptables_declarations(std::size_t i, const ServicePort& s) {
  std::string out = ":KUBE-SVC-" + code(i) + " - [0:0]\n";
  if (s.externally_accessible) {
    out += ":KUBE-EXT-" + code(i) + " - [0:0]\n";
  }
  for (std::size_t e = 0; e < s.cluster.size(); ++e) {
    out += ":" + sep(i, e) + " - [0:0]\n";
  }
  return out;
}

std::string iptables_service_chain(std::size_t i, const ServicePort& s) {
  const std::string chain = "-A KUBE-SVC-" + code(i);
  const std::string match = " -d " + core::to_string(s.cluster_ip) + "/32 -p " + protocol_of(s) +
                            " -m " + protocol_of(s) + " --dport " + std::to_string(s.port);
  std::string out = chain + " ! -s 10.64.0.0/10" + match + " -j KUBE-MARK-MASQ\n";
  const std::string life = " --seconds " + std::to_string(s.affinity_seconds) + " --reap --name ";
  for (std::size_t e = 0; s.affinity_seconds != 0 && e < s.cluster.size(); ++e) {
    out += chain + " -m recent --rcheck" + life + sep(i, e) + " -j " + sep(i, e) + "\n";
  }
  for (std::size_t e = 0; e < s.cluster.size(); ++e) {
    char chance[80] = "";
    if (e + 1 < s.cluster.size()) {
      std::snprintf(chance, sizeof(chance), " -m statistic --mode random --probability %.10f",
                    1.0 / static_cast<double>(s.cluster.size() - e));
    }
    out += chain + chance + " -j " + sep(i, e) + "\n";
  }
  return out;
}

std::string iptables_endpoints(std::size_t i, const ServicePort& s) {
  std::string out;
  for (std::size_t e = 0; e < s.cluster.size(); ++e) {
    const Endpoint& endpoint = s.endpoint(s.cluster[e]);
    const std::string chain = "-A " + sep(i, e);
    out += chain + " -s " + core::to_string(endpoint.address) + "/32 -j KUBE-MARK-MASQ\n" + chain +
           (s.affinity_seconds != 0 ? " -m recent --name " + sep(i, e) + " --set" : "") + " -p " +
           protocol_of(s) + " -m " + protocol_of(s) + " -j DNAT --to-destination " +
           core::to_string(endpoint.address, endpoint.port) + "\n";
  }
  return out;
}

std::string iptables_frontends(std::size_t i, const ServicePort& s) {
  const std::string port = "/32 -p " + protocol_of(s) + " -m " + protocol_of(s) + " --dport " +
                           std::to_string(s.port) + " -j KUBE-";
  std::string out = "-A KUBE-SERVICES -d " + core::to_string(s.cluster_ip) + port + "SVC-" +
                    code(i) + "\n";
  for (const core::IpAddress& vip : s.load_balancer_vips) {
    out += "-A KUBE-SERVICES -d " + core::to_string(vip) + port + "EXT-" + code(i) + "\n";
  }
  if (s.externally_accessible) {
    out += "-A KUBE-EXT-" + code(i) + " -j KUBE-MARK-MASQ\n-A KUBE-EXT-" + code(i) +
           " -j KUBE-SVC-" + code(i) + "\n";
  }
  if (s.node_port != 0) {
    out += "-A KUBE-NODEPORTS -p " + protocol_of(s) + " -m " + protocol_of(s) + " --dport " +
           std::to_string(s.node_port) + " -j KUBE-EXT-" + code(i) + "\n";
  }
  return out;
}

}  // namespace

std::string nft_chains(const core::ForwardingTable& table) {
  std::string chains;
  std::string frontends;
  std::string node_ports;
  std::string cluster_ips;
  for_each_service(table, [&](std::size_t i, const ServicePort& s) {
    chains += nft_service(i, s);
    frontends += nft_frontends(i, s);
    cluster_ips += "      " + core::to_string(s.cluster_ip) + ",\n";
    if (s.node_port != 0) {
      node_ports += "      " + protocol_of(s) + " . " + std::to_string(s.node_port) +
                    " : goto external-" + code(i) + ",\n";
    }
  });
  const auto elements = [](const std::string& lines) {
    return lines.empty() ? std::string() : "    elements = {\n" + lines + "    }\n";
  };
  return "table ip kube-proxy {\n" + chains +
         "  set cluster-ips {\n    type ipv4_addr\n" + elements(cluster_ips) +
         "  }\n  map service-ips {\n    type ipv4_addr . inet_proto . inet_service : verdict\n" +
         elements(frontends) +
         "  }\n  map service-nodeports {\n    type inet_proto . inet_service : verdict\n" +
         elements(node_ports) + "  }\n" + kNftHooks;
}

std::string nft_one_chain(const core::ForwardingTable& table, std::size_t service) {
  const ServicePort& s = *table.service(static_cast<core::ServiceSlot>(service));
  const std::string chain = " ip kube-proxy service-" + code(service);
  std::string out = "flush chain" + chain + "\n";
  std::istringstream rules(nft_service_rules(service, s));
  for (std::string rule; std::getline(rules, rule);) {
    out += "add rule" + chain + rule + "\n";
  }
  return out;
}

std::string iptables_chains(const core::ForwardingTable& table) {
  std::string declared =
      "*nat\n:KUBE-SERVICES - [0:0]\n:KUBE-NODEPORTS - [0:0]\n:KUBE-MARK-MASQ - [0:0]\n"
      ":KUBE-POSTROUTING - [0:0]\n";
  std::string rules =
      "-A PREROUTING -j KUBE-SERVICES\n-A OUTPUT -j KUBE-SERVICES\n"
      "-A POSTROUTING -j KUBE-POSTROUTING\n"
      "-A KUBE-POSTROUTING -m mark ! --mark 0x4000/0x4000 -j RETURN\n"
      "-A KUBE-POSTROUTING -j MARK --xor-mark 0x4000\n"
      "-A KUBE-POSTROUTING -j MASQUERADE --random-fully\n"
      "-A KUBE-MARK-MASQ -j MARK --or-mark 0x4000\n";
  for_each_service(table, [&](std::size_t i, const ServicePort& s) {
    declared += iptables_declarations(i, s);
    rules += iptables_frontends(i, s) + iptables_service_chain(i, s) + iptables_endpoints(i, s);
  });
  return declared + rules +
         "-A KUBE-SERVICES -m addrtype --dst-type LOCAL -j KUBE-NODEPORTS\nCOMMIT\n";
}

std::string iptables_one_chain(const core::ForwardingTable& table, std::size_t service) {
  const ServicePort& s = *table.service(static_cast<core::ServiceSlot>(service));
  std::string declared = ":KUBE-SVC-" + code(service) + " - [0:0]\n";
  for (std::size_t e = 0; e < s.cluster.size(); ++e) {
    declared += ":" + sep(service, e) + " - [0:0]\n";
  }
  return "*nat\n" + declared + iptables_service_chain(service, s) +
         iptables_endpoints(service, s) + "COMMIT\n";
}

namespace {

std::string failure_of(int status, const std::string& errors) {
  if (WIFEXITED(status) && WEXITSTATUS(status) == 124) {  // timeout's own
    return "not in the limit";
  }
  std::string line;
  std::ifstream in(errors);
  std::getline(in, line);
  return "failed: " + (line.empty() ? "wait status " + std::to_string(status) : line);
}

}  // namespace

PeerRun run_peer(const std::string& command, const std::string& input, unsigned seconds) {
  using Clock = std::chrono::steady_clock;
  const std::string path = "/tmp/sluice-bench-kernel-" + std::to_string(getpid()) + ".in";
  std::ofstream(path) << input;
  const std::string line = "ulimit -v 4194304; exec timeout " + std::to_string(seconds) + " " +
                           command + " < " + path + " > /dev/null 2>" + path + ".err";
  PeerRun run;
  const auto began = Clock::now();
  const pid_t child = fork();
  if (child == 0) {
    execl("/bin/sh", "sh", "-c", line.c_str(), static_cast<char*>(nullptr));
    _exit(127);
  }
  int status = 0;
  rusage usage{};
  wait4(child, &status, 0, &usage);
  if (status == 0) {
    run.wall = std::chrono::duration<double, std::milli>(Clock::now() - began).count();
  } else {
    run.failure = failure_of(status, path + ".err");
  }
  const auto ms = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) * 1e3 + static_cast<double>(t.tv_usec) / 1e3;
  };
  run.cpu = ms(usage.ru_utime) + ms(usage.ru_stime);
  run.mib = usage.ru_maxrss / 1024;
  std::remove(path.c_str());
  std::remove((path + ".err").c_str());
  return run;
}

}  // namespace sluice::bench
