// Theory of operation
//
// Flow n is a client address and port by arithmetic, so a frame that comes back translated is known
// by the note in its payload alone. Who answers, and to which address and port (fullnat), is learnt
// from the first packet as the device under test sent it: the generator knows nothing of endpoints.

#include "bench/generator/flow_set.h"

#include <sys/mman.h>

#include "bench/clock.h"
#include "bench/generator/responder.h"
#include "dataplane/core/net/parse.h"

namespace sluice::bench {
namespace {

constexpr std::uint8_t kForeign = 15;  // block of addresses that no Service has
constexpr std::uint32_t kInFlight = 24;  // while opening; below a burst, or new flows are held back
constexpr std::size_t kLongestRequest = 128;  // of a neighbour, and of its answer
constexpr double kPatience = 15;     // seconds without a flow that opens
constexpr double kRetransmit = 0.1;  // seconds without a frame, then what is missing is sent again

template <class F>
class FlowSetOf final : public FlowSet {
 public:
  using Key = typename F::Key;
  using Address = typename F::Address;

  explicit FlowSetOf(FlowPlan flow_plan) : FlowSet(F::kFamily, std::move(flow_plan)) {}

  OpenReport open(Port& port) override;
  [[nodiscard]] Images images() const override;

  void write_fresh(std::uint8_t* at, std::uint32_t n) const noexcept override {
    write_headers<F>(at, plan().shape, forward(plan().flows + n), core::kTcpSyn, shortest());
  }
  void write_foreign(std::uint8_t* at, std::uint32_t n) const noexcept override {
    Key key = forward(n % plan().flows);
    key.dst = numbered<F>(kForeign, 1 + n % 1000);
    write_headers<F>(at, plan().shape, key, core::kTcpAck, shortest());
  }

 private:
  struct Peer {
    Address source;
    Address destination;
    core::Be16 sport;
    core::Be16 dport;
  };

  [[nodiscard]] std::uint32_t shortest() const noexcept { return offsets().shortest(); }
  [[nodiscard]] Key forward(std::uint32_t n) const noexcept {
    return {numbered<F>(FlowSpace<F>::kClients, 1 + (n >> 8)),
            numbered<F>(FlowSpace<F>::kVips, 1 + n % plan().services),
            core::Be16::from_host(static_cast<std::uint16_t>(1024 + (n & 255))),
            core::Be16::from_host(80),
            plan().shape.proto,
            {}};
  }
  [[nodiscard]] Key reply(std::uint32_t n) const noexcept {
    if (plan().reflect) {
      return forward(n).reversed();
    }
    const Peer& p = peers_[n];
    return {p.source, p.destination, p.sport, p.dport, plan().shape.proto, {}};
  }

  void send_note(Port& port, const Key& key, std::uint8_t flags, const Note& note);
  void send_firsts(Port& port, std::uint32_t& cursor);
  void take(Port& port, const Frame& frame);
  void serve(Port& port, const std::uint8_t* inner);
  void learn(std::uint32_t flow, const std::uint8_t* inner);
  void set_open(std::uint32_t flow) {
    report_.opened += is_open_[flow] ? 0u : 1u;
    is_open_[flow] = true;
  }

  std::vector<Peer> peers_;
  std::vector<bool> is_open_;
  std::uint32_t in_flight_ = 0;
  OpenReport report_;
};

template <class F>
OpenReport FlowSetOf<F>::open(Port& port) {
  report_.asked = plan().flows;
  if (plan().reflect) {
    report_.opened = plan().flows;
    return report_;
  }
  peers_.resize(plan().one_way ? 0 : plan().flows);
  is_open_.assign(plan().flows, false);
  Frame frames[Port::kBurst];
  const auto hertz = ticks_per_second();
  std::uint64_t heard = tsc();
  std::uint64_t progress = heard;
  std::uint32_t cursor = 0;
  for (std::uint64_t now = heard;
       report_.opened < plan().flows && static_cast<double>(now - progress) < kPatience * hertz;
       now = tsc()) {
    send_firsts(port, cursor);
    const std::uint32_t before = report_.opened;
    const std::uint16_t got = port.receive(frames);
    for (std::uint16_t i = 0; i < got; ++i) {
      take(port, frames[i]);
    }
    port.release();
    heard = got != 0 ? now : heard;
    progress = report_.opened != before ? now : progress;
    if (static_cast<double>(now - heard) > kRetransmit * hertz) {
      in_flight_ = 0;
      cursor = cursor == plan().flows ? 0 : cursor;
      heard = now;
    }
  }
  return report_;
}

template <class F>
void FlowSetOf<F>::send_firsts(Port& port, std::uint32_t& cursor) {
  for (; in_flight_ < kInFlight && cursor < plan().flows; ++cursor) {
    if (!is_open_[cursor]) {
      send_note(port, forward(cursor), core::kTcpSyn, {cursor, Note::kFirst});
      ++in_flight_;
    }
  }
}

template <class F>
void FlowSetOf<F>::send_note(Port& port, const Key& key, std::uint8_t flags,
                             const Note& note) {
  Frame frame;
  if (port.reserve(&frame, 1) == 0) {
    return;
  }
  write_headers<F>(frame.data, plan().shape, key, flags, shortest());
  std::uint8_t bytes[8] = {};
  note.store(bytes);
  std::uint64_t value = 0;
  std::memcpy(&value, bytes, 8);
  Stamp(value).put(frame.data, offsets());
  frame.length = shortest();
  port.send(&frame, 1);
}

template <class F>
void FlowSetOf<F>::take(Port& port, const Frame& frame) {
  if (const std::uint8_t* inner = look_at(frame.data, frame.length, *this)) {
    report_.bad_checksums += checksums_right(inner, *this) ? 0u : 1u;
    serve(port, inner);
    return;
  }
  answer_request(port, frame, *this);
}

/// What a client or a backend does with a frame of a handshake.
template <class F>
void FlowSetOf<F>::serve(Port& port, const std::uint8_t* inner) {
  const Note note = Note::load(inner + offsets().payload);
  const bool tcp = plan().shape.proto == core::kIpProtoTcp;
  if (note.flow >= plan().flows) {
    return;
  }
  const Note confirm{note.flow, Note::kConfirm};
  if (note.kind == Note::kFirst && plan().one_way) {
    in_flight_ -= in_flight_ > 0 ? 1 : 0;
    set_open(note.flow);
    if (tcp) {
      send_note(port, forward(note.flow), core::kTcpAck, confirm);
    }
  } else if (note.kind == Note::kFirst) {
    learn(note.flow, inner);
    send_note(port, reply(note.flow), core::kTcpSyn | core::kTcpAck,
              {note.flow, Note::kAnswer});
  } else if (note.kind == Note::kAnswer && tcp) {
    send_note(port, forward(note.flow), core::kTcpAck, confirm);
  } else if (note.kind == Note::kAnswer || (note.kind == Note::kConfirm && !plan().one_way)) {
    in_flight_ -= in_flight_ > 0 ? 1 : 0;
    set_open(note.flow);
  }
}

template <class F>
void FlowSetOf<F>::learn(std::uint32_t flow, const std::uint8_t* inner) {
  constexpr bool kV4 = F::kFamily == core::Family::kIpv4;
  const std::uint8_t* addresses =
      inner + core::kEthernetLength + (kV4 ? core::ipv4::kSrc : core::ipv6::kSrc);
  const std::uint8_t* ports = inner + offsets().l4;
  peers_[flow] = {Address::load(addresses + sizeof(Address)), Address::load(addresses),
                  core::Be16::load(ports + 2), core::Be16::load(ports)};
}

template <class F>
Images FlowSetOf<F>::images() const {
  const std::uint32_t directions = plan().one_way ? 1 : 2;
  const std::uint32_t count = plan().flows * directions;
  Images images(count, stride());
  const Shuffle order(count);
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::uint32_t k = order.at(i);
    const std::uint32_t flow = k / directions;
    const bool answer = directions == 2 && k % 2 == 1;
    write_headers<F>(images.at(i), plan().shape, answer ? reply(flow) : forward(flow),
                     core::kTcpAck, length_of(i));
  }
  return images;
}

}  // namespace

Images::Images(std::uint32_t count, std::uint32_t stride) : count_(count), stride_(stride) {
  constexpr std::size_t kHuge = std::size_t{2} << 20;
  const std::size_t bytes = (std::size_t{count} * stride + kHuge - 1) / kHuge * kHuge;
  memory_.reset(static_cast<std::uint8_t*>(std::aligned_alloc(kHuge, bytes)));
  (void)madvise(memory_.get(), bytes, MADV_HUGEPAGE);
  std::memset(memory_.get(), 0, bytes);
}

std::unique_ptr<FlowSet> FlowSet::make(core::Family family, FlowPlan plan) {
  if (family == core::Family::kIpv4) {
    return std::make_unique<FlowSetOf<core::Ipv4>>(std::move(plan));
  }
  return std::make_unique<FlowSetOf<core::Ipv6>>(std::move(plan));
}

const std::uint8_t* look_at(const std::uint8_t* frame, std::uint32_t length,
                            const FlowSet& flows) noexcept {
  const FrameOffsets& at = flows.offsets();
  if (length < at.shortest()) {
    return nullptr;
  }
  const bool v4 = core::load_be16(frame + 12) == core::kEtherTypeIpv4;
  if (!v4 && core::load_be16(frame + 12) != core::kEtherTypeIpv6) {
    return nullptr;
  }
  const bool inner_v4 = flows.family() == core::Family::kIpv4;
  const std::uint8_t proto =
      frame[14 + (v4 ? core::ipv4::kProtocol : core::ipv6::kNextHeader)];
  if (v4 == inner_v4 && proto == flows.plan().shape.proto) {
    return frame;
  }
  const std::uint32_t outer = v4 ? core::ipv4::kHeaderLength : core::ipv6::kHeaderLength;
  constexpr std::uint8_t kIpv4InIp = 4, kIpv6InIp = 41;
  if (proto == (inner_v4 ? kIpv4InIp : kIpv6InIp) && length >= at.shortest() + outer) {
    return frame + outer;
  }
  return nullptr;
}

void answer_request(Port& port, const Frame& frame, const FlowSet& flows) noexcept {
  std::array<std::uint8_t, kLongestRequest> copy;
  std::uint32_t length = frame.length;
  Frame answer;
  if (length > copy.size()) {
    return;
  }
  std::memcpy(copy.data(), frame.data, length);
  if (answer_neighbour(copy.data(), length, port.mac()) && length <= flows.stride() &&
      port.reserve(&answer, 1) == 1) {
    std::memcpy(answer.data, copy.data(), length);
    answer.length = length;
    port.send(&answer, 1);
  }
}

bool checksums_right(const std::uint8_t* inner, const FlowSet& flows) noexcept {
  const FrameOffsets& at = flows.offsets();
  const std::uint8_t* ip = inner + core::kEthernetLength;
  const bool v4 = flows.family() == core::Family::kIpv4;
  if (v4 && !core::ipv4_whole_header_valid(ip)) {
    return false;
  }
  const std::size_t l4_length = v4 ? core::load_be16(ip + core::ipv4::kTotalLength) - 20u
                                   : core::load_be16(ip + core::ipv6::kPayloadLength);
  const auto address = [&](std::uint32_t v4_at, std::uint32_t v6_at) {
    return v4 ? core::IpAddress(core::Ipv4Address::load(ip + v4_at))
              : core::IpAddress(core::Ipv6Address::load(ip + v6_at));
  };
  const std::uint16_t wanted = core::l4_checksum(
      address(core::ipv4::kSrc, core::ipv6::kSrc), address(core::ipv4::kDst, core::ipv6::kDst),
      flows.plan().shape.proto, inner + at.l4, l4_length);
  const std::uint16_t found = core::load_raw16(inner + at.checksum);
  // Both forms of zero are the same.
  return found == wanted || (found % 0xffff == 0 && wanted % 0xffff == 0);
}

}  // namespace sluice::bench
