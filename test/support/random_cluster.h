#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "control/compile/compile.h"
#include "control/model/model.h"

namespace sluice::test {

/// Makes small clusters full of collisions: few names, addresses and ports, every policy, and a
/// share of bad values. Equal seeds make equal clusters on every machine.
class RandomCluster {
 public:
  explicit RandomCluster(std::uint64_t seed) : state_(seed) {}

  std::uint64_t next() {
    state_ += 0x9e3779b97f4a7c15ULL;
    std::uint64_t z = state_;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
    return z ^ (z >> 31);
  }
  std::size_t below(std::size_t n) { return static_cast<std::size_t>(next() % n); }
  bool chance(std::size_t percent) { return below(100) < percent; }
  template <class T>
  const T& one_of(const std::vector<T>& list) {
    return list[below(list.size())];
  }

  model::ObjectName service_name() { return {one_of(namespaces_), "svc" + number(5)}; }
  model::ObjectName slice_name() { return {one_of(namespaces_), "slice" + number(8)}; }

  model::Service service() {
    model::Service s;
    s.name = service_name();
    s.type = one_of<std::string>({"", "ClusterIP", "NodePort", "LoadBalancer", "ExternalName"});
    set_cluster_ips(s);
    const std::size_t ports = 1 + below(3);
    for (std::size_t i = 0; i < ports; ++i) {
      s.ports.push_back(port(i));
    }
    for (std::size_t i = below(3); i > 0; --i) {
      s.external_ips.push_back(one_of(external_));
    }
    for (std::size_t i = below(3); i > 0; --i) {
      s.load_balancer_ingress.push_back({one_of(external_), "", ip_mode()});
    }
    for (std::size_t i = below(3); i > 0; --i) {
      s.load_balancer_source_ranges.push_back(one_of<std::string>(
          {"198.51.100.0/24", "192.0.2.0/24", " 2001:db8::/32", "0.0.0.0/0", "x", ""}));
    }
    s.external_traffic_policy = one_of<std::string>({"", "Cluster", "Local", "Local"});
    if (chance(50)) {
      s.internal_traffic_policy = one_of<std::string>({"Cluster", "Local"});
    }
    s.session_affinity = one_of<std::string>({"", "None", "ClientIP"});
    s.affinity_timeout_seconds = static_cast<std::int64_t>(below(100000));
    s.health_check_node_port = static_cast<std::int64_t>(chance(50) ? 31000 + below(5) : 0);
    if (chance(60)) {
      s.creation_unix_seconds = static_cast<std::int64_t>(below(4));
    }
    if (chance(15)) {
      s.annotations["sluice.dev/" + one_of<std::string>({"scheduler", "weights", "shedular"})] =
          one_of<std::string>({"rr", "random", "10.42.1.1=0, 10.42.1.2:8080=3", "wrr"});
    }
    if (chance(15)) {
      s.annotations["sluice.dev/forwarding-mode"] =
          one_of<std::string>({"nat", "fullnat", "dr", "ipip", "ipip"});
    }
    if (chance(5)) {
      s.labels["service.kubernetes.io/service-proxy-name"] = "";
    }
    return s;
  }

  model::EndpointSlice slice() {
    model::EndpointSlice s;
    s.name = slice_name();
    if (!chance(5)) {
      s.labels["kubernetes.io/service-name"] = "svc" + number(5);
    }
    if (chance(5)) {
      s.labels["service.kubernetes.io/headless"] = "";
    }
    s.address_type = one_of<std::string>({"IPv4", "IPv4", "IPv4", "IPv6", "FQDN"});
    for (std::size_t i = below(3); i > 0; --i) {
      model::SlicePort p;
      if (!chance(5)) {
        p.name = port_name(below(3));
      }
      p.protocol = one_of<std::string>({"", "TCP", "UDP", "SCTP", "ICMP"});
      p.port = static_cast<std::int64_t>(chance(5) ? 70000 * below(2) : 8080 + below(2));
      s.ports.push_back(p);
    }
    for (std::size_t i = below(6); i > 0; --i) {
      s.endpoints.push_back(endpoint(s.address_type == "IPv6"));
    }
    return s;
  }

  model::Node node() {
    model::Node n;
    n.name = one_of<std::string>({"kestrel", "heron"});
    if (chance(80)) {
      n.labels["topology.kubernetes.io/zone"] = one_of<std::string>({"west", "east"});
    }
    n.addresses.push_back({"InternalIP", one_of<std::string>({"192.0.2.11", "192.0.2.12"})});
    n.pod_cidrs = {"10.42.1.0/24"};
    return n;
  }

  model::ServiceCidr service_cidr() {
    return {"cidr" + number(2),
            {one_of<std::string>({"10.43.0.0/16", "fd43::/112", "10.43.0.0/24", "bad"})}};
  }

  compile::NodeConfig config() {
    compile::NodeConfig c;
    c.node_name = "kestrel";
    c.cluster_cidrs = {*core::parse_cidr("10.42.0.0/16"), *core::parse_cidr("fd42::/16")};
    c.announce = {*core::parse_cidr("203.0.113.0/28")};
    c.node_port_addresses = one_of<std::vector<std::string>>({{}, {"primary"}, {"192.0.2.0/24"}});
    c.allow_service_external_ips = !chance(20);
    return c;
  }

  compile::HostState host() {
    compile::HostState h;
    for (const char* text : {"192.0.2.11", "192.0.2.12", "203.0.113.1", "127.0.0.1", "::1"}) {
      if (chance(70)) {
        h.addresses.push_back({*core::parse_address(text), "eth0"});
      }
    }
    return h;
  }

 private:
  std::string number(std::size_t n) { return std::to_string(below(n)); }
  static std::string port_name(std::size_t i) { return i == 0 ? "" : "p" + std::to_string(i); }

  std::optional<std::string> ip_mode() {
    return chance(60) ? std::nullopt : std::optional(one_of<std::string>({"VIP", "Proxy"}));
  }

  void set_cluster_ips(model::Service& s) {
    const std::string v4 =
        one_of<std::string>({"10.43.0.1", "10.43.0.2", "10.43.0.3", "None", "", "10.43.0.300"});
    const std::string v6 = one_of<std::string>({"fd43::1", "fd43::2"});
    s.cluster_ip = v4;
    s.cluster_ips = {v4};
    if (chance(40)) {
      s.ip_families = {"IPv4", "IPv6"};
      s.cluster_ips.push_back(v6);
    } else if (chance(20)) {
      s.ip_families = {"IPv6"};
      s.cluster_ip = v6;
      s.cluster_ips = {v6};
    }
  }

  model::ServicePortSpec port(std::size_t i) {
    model::ServicePortSpec p;
    p.name = port_name(i);
    p.protocol = one_of<std::string>({"", "TCP", "UDP", "SCTP", "tcp"});
    p.port = static_cast<std::int64_t>(chance(5) ? 0 : 80 + below(3));
    p.node_port = static_cast<std::int64_t>(chance(50) ? 30080 + below(3) : 0);
    return p;
  }

  model::SliceEndpoint endpoint(bool ipv6) {
    model::SliceEndpoint e;
    if (!chance(5)) {
      e.addresses.push_back(chance(3) ? "nonsense" : (ipv6 ? "fd42::" : "10.42.1.") + number(6));
    }
    const auto maybe = [&]() { return chance(40) ? std::nullopt : std::optional(chance(60)); };
    e.ready = maybe();
    e.serving = maybe();
    e.terminating = maybe();
    if (chance(80)) {
      e.node_name = one_of<std::string>({"kestrel", "heron"});
    }
    if (chance(50)) {
      e.for_zones.push_back(one_of<std::string>({"west", "east"}));
    }
    if (chance(30)) {
      e.for_nodes.push_back(one_of<std::string>({"kestrel", "heron"}));
    }
    if (chance(20)) {
      e.weight = static_cast<std::int64_t>(below(3));
    }
    return e;
  }

  std::uint64_t state_;
  std::vector<std::string> namespaces_ = {"shop", "shop", "shop", "bank"};
  std::vector<std::string> external_ = {"203.0.113.1",
                                        "203.0.113.2",
                                        "203.0.113.99",
                                        "2001:db8:99::1",
                                        "203.0.113.001",
                                        "rubbish",
                                        "",
                                        "10.43.0.1"};
};

}  // namespace sluice::test
