#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "dataplane/core/net/address.h"
#include "test/conformance/net_namespace_set.h"

namespace sluice::conformance {

/// A file descriptor.
class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(other.fd_) { other.fd_ = -1; }
  Descriptor& operator=(Descriptor&& other) noexcept;
  ~Descriptor();
  [[nodiscard]] int get() const noexcept { return fd_; }

 private:
  int fd_ = -1;
};

/// An address and port.
struct SocketName {
  core::IpAddress address;
  std::uint16_t port = 0;  ///< host order
  bool operator==(const SocketName&) const = default;
  auto operator<=>(const SocketName&) const = default;
};

/// Real sockets in the namespaces of a node: servers at endpoints and clients. TCP connects, UDP
/// sends a datagram and wants its answer, SCTP sends an INIT chunk by a raw socket.
/// Thread: the one of the namespaces.
class SocketNet {
 public:
  /// What was refused so far, by the node's rules.
  struct Refusals {
    std::uint64_t rejected = 0;
    std::uint64_t dropped = 0;
  };
  /// What became of a flow's first packet.
  struct Seen {
    std::string verdict;  ///< served, refused, rejected, dropped, or what else happened
    SocketName server;    ///< that got it
    SocketName source;    ///< that the server saw
    SocketName client;    ///< that the client had
  };

  /// A flow to open. Port 0 of the client: any.
  struct Flow {
    core::Protocol protocol = core::Protocol::kTcp;
    std::string place;  ///< of the client
    SocketName from;
    SocketName to;
  };
  /// Whether it is asked which rule refused a flow; that costs, so where flows are to be served it
  /// is not, and one that is dropped is "lost".
  enum class Refused : std::uint8_t { kNot, kByARule };

  SocketNet(NetNamespaceSet& net, std::function<Refusals(core::Family)> refusals)
      : net_(net), refusals_(std::move(refusals)) {}

  /// Serves at an address, in the place where the node's packets to it end. Once is enough.
  void serve(core::Protocol protocol, const SocketName& at);
  [[nodiscard]] Seen open(Flow flow, Refused refused);

 private:
  struct Server {
    core::Protocol protocol;
    SocketName at;
    std::string place;
    Descriptor socket;
  };
  [[nodiscard]] Descriptor make_client(const Flow& flow, Seen& seen) const;
  /// @param before  nullptr: refusals are not looked at.
  void wait(const Flow& flow, const Descriptor& client, const Refusals* before, Seen& seen);
  bool take(core::Protocol protocol, Seen& seen);
  bool take_one(const Server& server, Seen& seen);

  NetNamespaceSet& net_;
  std::function<Refusals(core::Family)> refusals_;
  std::vector<Server> servers_;
  std::uint16_t next_port_ = 20000;
};

}  // namespace sluice::conformance
