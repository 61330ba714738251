#include "test/conformance/wire_flow.h"

#include <algorithm>
#include <utility>

#include "test/support/packet_view.h"

namespace sluice::conformance {
namespace {

using core::Protocol;
using pipeline::Origin;
using test::Bytes;
using test::PacketBuilder;
using test::PacketView;

constexpr std::uint8_t kTtl = 64;

void put32(Bytes& to, std::uint32_t value) {
  for (int shift = 24; shift >= 0; shift -= 8) {
    to.push_back(static_cast<std::uint8_t>(value >> shift));
  }
}

/// INIT and INIT ACK: tag, window, 10 streams each way, first TSN.
Bytes init_chunk(std::uint8_t type, std::uint32_t tag) {
  Bytes chunk = {type, 0, 0, 20};
  put32(chunk, tag);
  put32(chunk, 65536);
  put32(chunk, 10u << 16 | 10u);
  put32(chunk, tag + 1);
  return chunk;
}

Bytes cookie_echo(std::uint32_t cookie) {
  Bytes chunk = {10, 0, 0, 8};
  put32(chunk, cookie);
  return chunk;
}

/// What a packet carries from its L4 header on, but for ports and checksum.
Bytes carried(const PacketView& view) {
  Bytes l4 = view.l4();
  const std::size_t at = view.protocol() == 6 ? 16 : view.protocol() == 17 ? 6 : 8;
  const std::size_t size = view.protocol() == 132 ? 4 : 2;
  for (std::size_t i = 0; i < l4.size(); ++i) {
    if (i < 4 || (i >= at && i < at + size)) {
      l4[i] = 0;
    }
  }
  return l4;
}

std::string name_of(Protocol protocol) {
  return protocol == Protocol::kTcp ? "tcp" : protocol == Protocol::kUdp ? "udp" : "sctp";
}

std::string flow_text(Protocol protocol, const WireFlow::Side& from, const WireFlow::Side& to) {
  return name_of(protocol) + " " + core::to_string(from.address, from.port) + " > " +
         core::to_string(to.address, to.port);
}

WireFlow::Side side_of(const std::string& address, std::uint16_t port) {
  return {core::parse_address(address).value_or(core::IpAddress{}), port};
}

}  // namespace

WireFlow::WireFlow(WireNode& node, const Spec& spec) : node_(node), spec_(spec) {}

Bytes WireFlow::make(Leg leg, const Side& from, const Side& to, std::string_view src_mac,
                     std::string_view dst_mac) const {
  const std::uint32_t id = spec_.id;
  PacketBuilder b;
  b.eth(src_mac, dst_mac);
  if (from.address.is_v4()) {
    b.ipv4(core::to_string(from.address), core::to_string(to.address), kTtl).dont_fragment();
  } else {
    b.ipv6(core::to_string(from.address), core::to_string(to.address), kTtl);
  }
  const bool answer = leg == Leg::kAnswer;
  switch (spec_.protocol) {
    case Protocol::kTcp:
      if (leg == Leg::kOpen) {
        b.tcp(from.port, to.port, test::kSyn, id, 0);
      } else if (leg == Leg::kClose) {
        b.tcp(from.port, to.port, test::kRst, id + 1, 0);
      } else {
        b.tcp(from.port, to.port, answer ? test::kSyn | test::kAck : test::kPsh | test::kAck,
              answer ? id + 7 : id + 1, answer ? id + 1 : id + 8);
        b.payload(answer ? std::size_t{0} : std::size_t{11});
      }
      break;
    case Protocol::kUdp:
      b.udp(from.port, to.port).payload((answer ? "answer " : "asks ") + std::to_string(id));
      break;
    case Protocol::kSctp:
      b.sctp(from.port, to.port, leg == Leg::kOpen ? 0 : answer ? id : id + 7);
      b.raw(leg == Leg::kOpen    ? init_chunk(1, id)
            : answer             ? init_chunk(2, id + 7)
            : leg == Leg::kClose ? Bytes{6, 0, 0, 4}
                                 : cookie_echo(id));
      break;
  }
  return b.build();
}

Bytes WireFlow::from_client(Leg leg) const {
  const std::string own = WireNode::mac_of(spec_.port);
  return spec_.from_host ? make(leg, spec_.client, spec_.to, own, test::kPeerMac)
                         : make(leg, spec_.client, spec_.to, test::kPeerMac, own);
}

WireNode::Seen WireFlow::offer_from_client(const Bytes& frame) {
  return node_.offer(frame, spec_.port, spec_.from_host ? Origin::kHost : Origin::kWire);
}

std::string WireFlow::open() {
  const Bytes frame = from_client(Leg::kOpen);
  return judge(frame, offer_from_client(frame));
}

std::string WireFlow::judge(const Bytes& in, const WireNode::Seen& seen) {
  const std::size_t frames = seen.sent.size() + seen.to_host.size();
  if (frames == 0) {
    return "drop";
  }
  if (frames != 1) {
    return std::to_string(frames) + " frames";
  }
  const bool to_host = seen.sent.empty();
  const test::SentFrame& out = to_host ? seen.to_host.front() : seen.sent.front();
  const bool same_port = out.port == static_cast<pipeline::PortIndex>(spec_.port);
  if (out.bytes == in) {
    // From the wire to the host, from the host to the wire.
    return same_port && to_host != spec_.from_host ? "pass" : "unchanged by a wrong way";
  }
  if (same_port && to_host == spec_.from_host && is_refusal(in, out)) {
    return "reject";
  }
  return judge_forward(in, out, to_host);
}

/// A reset, an abort or an ICMP port unreachable to the client about its packet.
bool WireFlow::is_refusal(const Bytes& in, const test::SentFrame& out) {
  const PacketView asked(in);
  const PacketView answer(out.bytes);
  if (answer.dst() != asked.src() || !answer.checksum_ok()) {
    return false;
  }
  const bool back = answer.sport() == asked.dport() && answer.dport() == asked.sport() &&
                    answer.src() == asked.dst();
  switch (answer.protocol()) {
    case 6:
      return back && (answer.tcp_flags() & test::kRst) != 0 && answer.ack() == asked.seq() + 1;
    case 132:
      return back && !answer.payload().empty() && answer.payload()[0] == 6;
    default:
      break;
  }
  const bool unreachable = answer.is_v4() ? answer.icmp_type() == 3 && answer.icmp_code() == 3
                                          : answer.icmp_type() == 1 && answer.icmp_code() == 4;
  const Bytes quoted = answer.inner_frame();
  return unreachable && !quoted.empty() && PacketView(quoted).flow() == asked.flow();
}

std::string WireFlow::judge_forward(const Bytes& in, const test::SentFrame& out, bool to_host) {
  const PacketView view(out.bytes);
  const Side to = side_of(view.dst(), view.dport());
  if (to.address == spec_.to.address && to.port == spec_.to.port) {
    return "changed, but not translated: " + view.flow();
  }
  backend_ = to;
  seen_source_ = side_of(view.src(), view.sport());
  judge_source(seen_source_);
  judge_translated(in, out, to_host);
  const bool host = node_.has_address(backend_.address);
  if (host != to_host) {
    fail(host ? "a packet for the host left by a port" : "a packet for the wire went to the host");
  }
  return "forward";
}

void WireFlow::judge_source(const Side& source) {
  const bool same = source.address == spec_.client.address && source.port == spec_.client.port;
  source_ = same ? "none" : "masquerade";
  if (!same && (!node_.has_address(source.address) || source.port < WireNode::kFirstPoolPort)) {
    fail("source " + core::to_string(source.address, source.port) +
         " is neither the client's nor the node's");
  }
}

/// What every translated packet keeps, whatever its way.
void WireFlow::judge_translated(const Bytes& in, const test::SentFrame& out, bool to_host) {
  const PacketView before(in);
  const PacketView after(out.bytes);
  if (const std::string wrong = after.checksum_error(); !wrong.empty()) {
    fail(after.flow() + ": " + wrong);
  }
  if (after.ttl() != kTtl - 1) {
    fail(after.flow() + ": hop limit " + std::to_string(after.ttl()));
  }
  if (after.protocol() != before.protocol() || carried(after) != carried(before) ||
      after.dont_fragment() != before.dont_fragment()) {
    fail(after.flow() + ": contents changed");
  }
  const std::string own = WireNode::mac_of(static_cast<std::size_t>(out.port));
  if (to_host ? after.eth_dst() != own
              : after.eth_dst() != test::kPeerMac || after.eth_src() != own) {
    fail(after.flow() + ": MAC " + after.eth_src() + " > " + after.eth_dst());
  }
}

void WireFlow::answer() {
  const bool from_host = node_.has_address(backend_.address);
  const std::string own = WireNode::mac_of(0);
  const Bytes frame = make(Leg::kAnswer, backend_, seen_source_, from_host ? own : test::kPeerMac,
                           from_host ? test::kPeerMac : own);
  const auto seen = node_.offer(frame, 0, from_host ? Origin::kHost : Origin::kWire);
  const bool to_host = node_.has_address(spec_.client.address);
  const auto& frames = to_host ? seen.to_host : seen.sent;
  if (frames.size() != 1 || seen.sent.size() + seen.to_host.size() != 1) {
    fail("answer of " + backend_text() + ": " + std::to_string(seen.sent.size()) +
         " frames sent, " + std::to_string(seen.to_host.size()) + " to the host");
    return;
  }
  const std::string flow = PacketView(frames.front().bytes).flow();
  const std::string wanted = flow_text(spec_.protocol, spec_.to, spec_.client);
  if (flow != wanted) {
    fail("answer of " + backend_text() + ": expected " + wanted + ", got " + flow);
  }
  judge_translated(frame, frames.front(), to_host);
}

std::string WireFlow::go_on() {
  const Bytes frame = from_client(Leg::kGoOn);
  return judge(frame, offer_from_client(frame));
}

void WireFlow::converse() {
  answer();
  for (const Leg leg : {Leg::kGoOn, Leg::kClose}) {
    if (leg == Leg::kClose && spec_.protocol == Protocol::kUdp) {
      continue;
    }
    const Side backend = backend_;
    const Side source = seen_source_;
    const Bytes frame = from_client(leg);
    const std::string verdict = judge(frame, offer_from_client(frame));
    if (verdict != "forward") {
      fail("the client's next packet: " + verdict);
    } else if (backend.address != backend_.address || backend.port != backend_.port ||
               source.address != seen_source_.address || source.port != seen_source_.port) {
      fail("the client's next packet went another way: " +
           flow_text(spec_.protocol, seen_source_, backend_));
    }
  }
}

void WireFlow::fail(const std::string& what) {
  if (error_.empty()) {
    error_ = what;
  }
}

}  // namespace sluice::conformance
