#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "dataplane/core/net/address.h"
#include "test/conformance/wire_node.h"

namespace sluice::conformance {

/// One flow of a client through a WireNode: real frames of TCP, UDP or SCTP, of which each that
/// comes out is judged whole: addresses, ports, checksums, hop limit, everything it carries, where
/// it came out. Thread: one.
class WireFlow {
 public:
  struct Side {
    core::IpAddress address;
    std::uint16_t port = 0;
  };
  struct Spec {
    core::Protocol protocol = core::Protocol::kTcp;
    Side client;
    Side to;
    std::size_t port = 0;    ///< where the client's frames arrive
    bool from_host = false;  ///< a host process is the client
    std::uint32_t id = 1;    ///< makes the frames' contents unlike those of other flows
  };

  WireFlow(WireNode& node, const Spec& spec);

  /// Sends the first packet. @return forward, reject, drop, pass, or what else came out.
  std::string open();
  /// After open() said forward: the backend answers, the client goes on and closes. What is wrong
  /// is in error().
  void converse();
  /// A further packet of the client. @return forward, or what else came out. May change backend().
  std::string go_on();
  /// The backend sends a packet to the client.
  void answer();

  [[nodiscard]] const Side& backend() const { return backend_; }
  /// "10.0.0.1:80"
  [[nodiscard]] std::string backend_text() const {
    return core::to_string(backend_.address, backend_.port);
  }
  /// "none" or "masquerade".
  [[nodiscard]] const std::string& source() const { return source_; }
  /// What was wrong with a frame that came out; empty: nothing.
  [[nodiscard]] const std::string& error() const { return error_; }

 private:
  enum class Leg : std::uint8_t { kOpen, kAnswer, kGoOn, kClose };
  [[nodiscard]] test::Bytes make(Leg leg, const Side& from, const Side& to,
                                 std::string_view src_mac, std::string_view dst_mac) const;
  [[nodiscard]] test::Bytes from_client(Leg leg) const;
  [[nodiscard]] WireNode::Seen offer_from_client(const test::Bytes& frame);
  std::string judge(const test::Bytes& in, const WireNode::Seen& seen);
  std::string judge_forward(const test::Bytes& in, const test::SentFrame& out, bool to_host);
  [[nodiscard]] bool is_refusal(const test::Bytes& in, const test::SentFrame& out);
  void judge_translated(const test::Bytes& in, const test::SentFrame& out, bool to_host);
  void judge_source(const Side& source);
  void fail(const std::string& what);

  WireNode& node_;
  const Spec spec_;
  Side backend_;
  Side seen_source_;  ///< of the client, as the backend sees it
  std::string source_;
  std::string error_;
};

}  // namespace sluice::conformance
