#pragma once

#include <map>
#include <string>
#include <vector>

#include "test/conformance/case.h"
#include "test/conformance/kernel_node.h"
#include "test/conformance/socket_flow.h"

namespace sluice::conformance {

/// Judges probes by real sockets. Thread: the one of the namespaces.
///
/// forward: without affinity the endpoints that take the flows are exactly the wanted ones, each
/// with its share; with affinity all flows of the client go to one, the kernel remembers it for the
/// wanted time, and, when the case is not about that memory, once it is wiped every endpoint
/// comes in the end.
class KernelProbeJudge {
 public:
  /// @param may_wipe  no probe of the case follows from an earlier one.
  KernelProbeJudge(NetNamespaceSet& net, SocketNet& sockets, KernelNode& node, bool may_wipe)
      : net_(net), sockets_(sockets), node_(node), may_wipe_(may_wipe) {}

  /// @return what is wrong, one line each.
  std::vector<std::string> judge(const Probe& probe);
  /// Endpoint of the last probe's first flow; "": not forwarded.
  [[nodiscard]] const std::string& chosen() const { return chosen_; }

 private:
  void judge_refusals(const Probe& probe);
  void judge_forward(const Probe& probe);
  void judge_spread(const Probe& probe);
  void judge_affinity(const Probe& probe, std::uint32_t seconds);
  void judge_labels(const Probe& probe);
  void judge_source(const Probe& probe, const SocketNet::Seen& seen);
  std::string send(const Probe& probe, std::uint16_t sport);
  SocketNet::Seen open(const Probe& probe, std::uint16_t sport, SocketNet::Refused refused);
  void fail(const std::string& what);
  void expect(const std::string& what, const std::string& wanted, const std::string& got);

  NetNamespaceSet& net_;
  SocketNet& sockets_;
  KernelNode& node_;
  const bool may_wipe_;
  std::string what_;
  std::string place_;  ///< of the client
  std::string chosen_;
  std::map<std::string, std::string> labels_;
  std::vector<std::string> failures_;
};

}  // namespace sluice::conformance
