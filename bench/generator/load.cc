#include "bench/generator/load.h"

#include <rte_cycles.h>

#include "dataplane/core/net/parse.h"

namespace sluice::bench {
namespace {

// A generator that was held up longer than this gives up what it owes: to catch up would be a burst
// that nobody asked for.
constexpr std::uint64_t kMostBehind = 256;
constexpr std::uint64_t kStampMask = (std::uint64_t{1} << 48) - 1;
constexpr std::uint32_t kChecked = 1024;  // one of so many frames has its checksums verified

}  // namespace

double ticks_per_second() { return static_cast<double>(rte_get_tsc_hz()); }

LoadResult Load::run(const LoadSpec& spec) {
  drain();  // what is left of opening or of an earlier measurement
  result_ = LoadResult{};
  start_ = last_heard_ = rte_rdtsc();
  due_ = outstanding_ = 0;
  const auto end = start_ + static_cast<std::uint64_t>(spec.seconds * ticks_per_second());
  std::uint64_t now = start_;
  std::uint64_t idle = 0;
  while (now < end) {
    const std::uint64_t bursts = result_.bursts;
    if (spec.window == 0) {
      pace_open(spec, now);
    } else {
      pace_closed(spec, now);
    }
    const bool heard = receive(rte_rdtsc()) != 0;
    const std::uint64_t turn = rte_rdtsc();
    idle += heard || bursts != result_.bursts ? 0 : turn - now;
    now = turn;
  }
  result_.seconds = static_cast<double>(now - start_) / ticks_per_second();
  result_.idle = static_cast<double>(idle) / static_cast<double>(now - start_);
  if (spec.window == 0) {
    drain();  // a closed loop is a rate in its steady state: what comes late is not in it
  } else {
    const LoadResult kept = result_;
    drain();
    result_ = kept;
  }
  return result_;
}

void Load::pace_open(const LoadSpec& spec, std::uint64_t now) {
  const auto owed = static_cast<std::uint64_t>(static_cast<double>(now - start_) /
                                               ticks_per_second() * spec.rate);
  if (owed <= due_) {
    return;
  }
  std::uint64_t n = owed - due_;
  if (n > kMostBehind) {
    result_.skipped += n - Device::kBurst;
    due_ += n - Device::kBurst;
    n = Device::kBurst;
  }
  n = n < Device::kBurst ? n : Device::kBurst;
  due_ += n;
  send(spec, static_cast<std::uint16_t>(n), now);
}

void Load::pace_closed(const LoadSpec& spec, std::uint64_t now) {
  if (outstanding_ + Device::kBurst <= spec.window) {
    send(spec, Device::kBurst, now);
  } else if (now - last_heard_ > static_cast<std::uint64_t>(ticks_per_second() * 0.005)) {
    ++result_.stalls;
    outstanding_ = 0;
    last_heard_ = now;
  }
}

void Load::send(const LoadSpec& spec, std::uint16_t n, std::uint64_t now) {
  rte_mbuf* frames[Device::kBurst];
  Kind kinds[Device::kBurst];
  ++result_.bursts;
  if (!device_.allocate(frames, n)) {
    result_.offered += n;
    result_.refused += n;
    ++result_.bursts_refused;
    return;
  }
  for (std::uint16_t i = 0; i < n; ++i) {
    kinds[i] = write(spec, frames[i]);
    stamp(rte_pktmbuf_mtod(frames[i], std::uint8_t*), flows_.offsets(), now & kStampMask);
  }
  const std::uint16_t taken = device_.send(frames, n);
  outstanding_ += taken;
  if (taken < n && spec.window != 0) {
    outstanding_ = spec.window;  // the peer is held up: no more before it is heard again
  }
  result_.bursts_refused += taken < n ? 1 : 0;
  if (spec.fresh == 0 && spec.foreign == 0) {
    result_.offered += n;
    result_.refused += static_cast<std::uint64_t>(n - taken);
    return;
  }
  for (std::uint16_t i = 0; i < n; ++i) {
    result_.offered += kinds[i] == Kind::kEstablished ? 1 : 0;
    result_.refused += kinds[i] == Kind::kEstablished && i >= taken ? 1 : 0;
    result_.fresh_sent += kinds[i] == Kind::kFresh ? 1 : 0;
    result_.foreign_sent += kinds[i] == Kind::kForeign ? 1 : 0;
    // Nobody sends a foreign frame back.
    outstanding_ -= kinds[i] == Kind::kForeign && i < taken ? 1 : 0;
  }
}

Load::Kind Load::write(const LoadSpec& spec, rte_mbuf* frame) noexcept {
  auto* data = rte_pktmbuf_mtod(frame, std::uint8_t*);
  frame->data_len = static_cast<std::uint16_t>(flows_.offsets().shortest());
  frame->pkt_len = frame->data_len;
  fresh_credit_ += spec.fresh;
  foreign_credit_ += spec.foreign;
  if (fresh_credit_ >= 1) {
    fresh_credit_ -= 1;
    flows_.write_fresh(data, fresh_++);
    return Kind::kFresh;
  }
  if (foreign_credit_ >= 1) {
    foreign_credit_ -= 1;
    flows_.write_foreign(data, foreign_++);
    return Kind::kForeign;
  }
  const std::uint8_t* image = images_.at(next_);
  std::memcpy(data, image, 64);
  if (images_.stride() != 64) {
    std::memcpy(data + 64, image + 64, 64);
  }
  const auto& lengths = flows_.plan().lengths;
  if (lengths.size() == 1 || pattern_ == lengths.size()) {
    pattern_ = 0;
  }
  const std::uint32_t length = std::max<std::uint32_t>(lengths[pattern_], frame->data_len);
  frame->data_len = static_cast<std::uint16_t>(length);
  frame->pkt_len = length;
  ++pattern_;
  if (++next_ == images_.count()) {
    next_ = 0;
    pattern_ = 0;
  }
  return Kind::kEstablished;
}

std::uint32_t Load::receive(std::uint64_t now) {
  rte_mbuf* frames[Device::kBurst];
  std::uint32_t count = 0;
  // Two bursts: what was sent meanwhile must not pile up.
  for (int turn = 0; turn < 2; ++turn) {
    const std::uint16_t got = device_.receive(frames);
    for (std::uint16_t i = 0; i < got; ++i) {
      take(frames[i], now);
    }
    count += got;
    if (got < Device::kBurst) {
      break;
    }
  }
  last_heard_ = count != 0 ? now : last_heard_;
  return count;
}

void Load::take(rte_mbuf* frame, std::uint64_t now) {
  auto* data = rte_pktmbuf_mtod(frame, std::uint8_t*);
  const Received received = look_at(data, frame->data_len, flows_);
  if (received.inner == nullptr) {
    answer_or_free(device_, frame);
    return;
  }
  outstanding_ -= outstanding_ > 0 ? 1 : 0;
  const FrameOffsets& at = flows_.offsets();
  const bool tcp = flows_.plan().shape.proto == core::kIpProtoTcp;
  if (tcp && (received.inner[at.l4 + 13] & core::kTcpSyn) != 0) {
    ++result_.fresh_received;
  } else {
    ++result_.received;
    std::uint64_t sent = 0;
    std::memcpy(&sent, received.inner + at.payload, kStampBytes);
    const std::uint64_t ticks = (now - sent) & kStampMask;
    result_.latency.add(ticks < kStampMask / 2 ? ticks : 0);
  }
  if (++sample_ % kChecked == 0) {
    result_.bad_checksums += checksums_right(received.inner, flows_) ? 0 : 1;
  }
  rte_pktmbuf_free(frame);
}

/// Takes what is still on its way, until nothing has come for 10 ms.
void Load::drain() {
  const auto patience = static_cast<std::uint64_t>(ticks_per_second() * 0.01);
  last_heard_ = rte_rdtsc();
  for (std::uint64_t now = last_heard_; now - last_heard_ < patience; now = rte_rdtsc()) {
    receive(now);
  }
}

}  // namespace sluice::bench
