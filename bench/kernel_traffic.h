#pragma once

#include <sys/types.h>

#include <cstddef>
#include <string>

namespace sluice::bench {

/// Packets per second that came through.
struct PacketRate {
  double new_flows = 0;    ///< every packet begins a flow: rules, a choice, conntrack
  double established = 0;  ///< of flows that are there
};

/// A client and a sink, each in a network namespace of its own, at two veths of ours, which
/// forwards. Errors end the program; the namespaces go with it.
class KernelTraffic {
 public:
  KernelTraffic();
  ~KernelTraffic();
  KernelTraffic(const KernelTraffic&) = delete;
  KernelTraffic& operator=(const KernelTraffic&) = delete;

  /// Sends `flows` UDP packets to the cluster IPs of `services` Services in turn, then the same ones
  /// again. Flows of earlier runs are forgotten first.
  [[nodiscard]] PacketRate run(std::size_t services, std::size_t flows);
  /// The same without a Service: packets go straight to endpoints.
  [[nodiscard]] PacketRate run_direct(std::size_t endpoints, std::size_t flows);

 private:
  struct Peer {
    pid_t pid = -1;
    int to = -1;    ///< commands
    int from = -1;  ///< one byte when a command is done
  };
  static Peer start();
  static void stop(Peer& peer);
  void set_up();
  PacketRate run_to(std::uint32_t base, std::size_t count, std::uint16_t port, std::size_t flows);
  /// One round; packets per second at the sink.
  double round(const std::string& command);
  [[nodiscard]] std::size_t arrived() const;

  Peer client_;
  Peer sink_;
};

}  // namespace sluice::bench
