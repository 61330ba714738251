#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "dataplane/core/net/address.h"

namespace sluice::conformance {

/// A node and what is around it as network namespaces of the kernel: the node, the pods on it
/// (interface pod0), all else (interface eth0, the default route), and one namespace for each
/// further interface a case names. All traffic between addresses of one namespace goes by the node,
/// too, so an address' place never changes what the node sees. Neighbours are fixed: no ARP, no
/// ND.
/// Thread: the one that made it, which lives in the node's namespace.
class NetNamespaceSet {
 public:
  /// Errors: std::runtime_error when the machine does not allow it.
  explicit NetNamespaceSet(const std::vector<std::string>& interfaces);
  ~NetNamespaceSet();
  NetNamespaceSet(const NetNamespaceSet&) = delete;
  NetNamespaceSet& operator=(const NetNamespaceSet&) = delete;

  static constexpr const char* kNode = "";  ///< as a place
  static constexpr const char* kPods = "pod0";
  static constexpr const char* kElsewhere = "eth0";

  /// Makes these the node's addresses, and no others.
  void set_node_addresses(const std::vector<core::IpAddress>& addresses);
  [[nodiscard]] bool is_node_address(const core::IpAddress& address) const;

  /// Puts an address behind an interface of the node; it may be behind others, too, the node sends
  /// to the last one.
  void place(const core::IpAddress& address, const std::string& interface);
  /// Where packets of the node to `address` end: an interface or kNode.
  [[nodiscard]] std::string where(const core::IpAddress& address) const;

  /// Runs `body` in a place.
  void in(const std::string& place, const std::function<void()>& body) const;

 private:
  struct Link {
    std::string name;
    int fd = -1;  ///< namespace at its other end
    std::string mac_node;
    std::string mac_peer;
    std::vector<core::IpAddress> addresses;
  };
  void make_link(Link& link);
  [[nodiscard]] Link& link(const std::string& name);
  [[nodiscard]] int fd_of(const std::string& place) const;
  static void ip(const std::string& commands);

  int node_ = -1;
  std::vector<Link> links_;
  std::vector<core::IpAddress> node_addresses_;
  std::map<core::IpAddress, std::string> routes_;
};

}  // namespace sluice::conformance
