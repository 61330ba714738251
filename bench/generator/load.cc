#include "bench/generator/load.h"

#include <immintrin.h>
#include <rte_cycles.h>

#include "dataplane/core/net/parse.h"

namespace sluice::bench {
namespace {

// A generator that was held up longer than this gives up what it owes: to catch up would be a burst
// that nobody asked for.
constexpr std::uint64_t kMostBehind = 256;
// A turn sends one burst and receives two, in 10 us at most; a longer one was interrupted.
constexpr double kHeldSeconds = 20e-6;
constexpr std::uint64_t kStampMask = (std::uint64_t{1} << 48) - 1;
void copy_line(std::uint8_t* to, const std::uint8_t* from) noexcept {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(to),
                      _mm256_load_si256(reinterpret_cast<const __m256i*>(from)));
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + 32),
                      _mm256_load_si256(reinterpret_cast<const __m256i*>(from + 32)));
}

constexpr std::uint32_t kChecked = 1024;  // one of so many frames has its checksums verified

}  // namespace

Load::Load(Device& device, const FlowSet& flows, Images& images)
    : device_(device), flows_(flows), images_(images), at_(flows.offsets()) {
  for (std::uint32_t i = 0; i < kLengths; ++i) {
    lengths_[i] = flows.length_of(i);
  }
}

double ticks_per_second() { return static_cast<double>(rte_get_tsc_hz()); }

LoadResult Load::run(const LoadSpec& spec) {
  drain();  // what is left of opening or of an earlier measurement
  result_ = LoadResult{};
  start_ = last_heard_ = rte_rdtsc();
  due_ = outstanding_ = 0;
  own_heard_ = false;
  every_ = spec.window == 0 ? 1 : 8;  // a closed loop is about the rate
  const auto end = start_ + static_cast<std::uint64_t>(spec.seconds * ticks_per_second());
  std::uint64_t now = start_;
  const auto limit = static_cast<std::uint64_t>(kHeldSeconds * ticks_per_second());
  std::uint64_t idle = 0;
  std::uint64_t held = 0;
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
    held += turn - now > limit ? turn - now : 0;
    now = turn;
  }
  result_.seconds = static_cast<double>(now - start_) / ticks_per_second();
  result_.idle = static_cast<double>(idle) / static_cast<double>(now - start_);
  result_.held = static_cast<double>(held) / static_cast<double>(now - start_);
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
  const bool mixed = spec.fresh != 0 || spec.foreign != 0;
  ++result_.bursts;
  if (!device_.allocate(frames, n)) {
    result_.offered += n;
    result_.refused += n;
    ++result_.bursts_refused;
    return;
  }
  const Stamp stamp(now & kStampMask);
  if (mixed) {
    write_mixed(spec, frames, n, stamp, kinds);
  } else {
    write_images(frames, n, stamp);
  }
  const std::uint16_t taken = device_.send(frames, n);
  outstanding_ += taken;
  result_.bursts_refused += taken < n ? 1 : 0;
  if (taken < n && spec.window != 0) {
    outstanding_ = spec.window;  // the peer is held up: no more before it is heard again
  }
  for (std::uint16_t i = 0; mixed && i < n; ++i) {
    result_.offered += kinds[i] == Kind::kEstablished ? 1 : 0;
    result_.refused += kinds[i] == Kind::kEstablished && i >= taken ? 1 : 0;
    result_.fresh_sent += kinds[i] == Kind::kFresh ? 1 : 0;
    result_.foreign_sent += kinds[i] == Kind::kForeign ? 1 : 0;
    // Nobody sends a foreign frame back.
    outstanding_ -= kinds[i] == Kind::kForeign && i < taken ? 1 : 0;
  }
  result_.offered += mixed ? 0 : n;
  result_.refused += mixed ? 0 : static_cast<std::uint64_t>(n - taken);
}

void Load::write_images(rte_mbuf** frames, std::uint16_t n, const Stamp& stamp) noexcept {
  // Buffers were last read by the peer's core, images by nobody: both are far away.
  for (std::uint16_t i = 0; i < n; ++i) {
    __builtin_prefetch(rte_pktmbuf_mtod(frames[i], void*), 1);
    __builtin_prefetch(images_.at(std::min(next_ + Device::kBurst + i, images_.count() - 1)));
  }
  const bool two_lines = images_.stride() != 64;
  const FrameOffsets at = at_;
  std::uint32_t next = next_;
  for (std::uint16_t i = 0; i < n; ++i) {
    auto* data = rte_pktmbuf_mtod(frames[i], std::uint8_t*);
    copy_line(data, images_.at(next));
    if (two_lines) {
      copy_line(data + 64, images_.at(next) + 64);
    }
    stamp.put(data, at);
    const std::uint32_t length = lengths_[next % kLengths];
    frames[i]->data_len = static_cast<std::uint16_t>(length);
    frames[i]->pkt_len = length;
    next = next + 1 == images_.count() ? 0 : next + 1;
  }
  next_ = next;
}

void Load::write_mixed(const LoadSpec& spec, rte_mbuf** frames, std::uint16_t n,
                       const Stamp& stamp, Kind* kinds) noexcept {
  for (std::uint16_t i = 0; i < n; ++i) {
    kinds[i] = choose(spec);
    if (kinds[i] == Kind::kEstablished) {
      write_images(frames + i, 1, stamp);
      continue;
    }
    auto* data = rte_pktmbuf_mtod(frames[i], std::uint8_t*);
    frames[i]->data_len = static_cast<std::uint16_t>(at_.shortest());
    frames[i]->pkt_len = at_.shortest();
    if (kinds[i] == Kind::kFresh) {
      flows_.write_fresh(data, fresh_++);
    } else {
      flows_.write_foreign(data, foreign_++);
    }
    stamp.put(data, at_);
  }
}

Load::Kind Load::choose(const LoadSpec& spec) noexcept {
  fresh_credit_ += spec.fresh;
  foreign_credit_ += spec.foreign;
  if (fresh_credit_ >= 1) {
    fresh_credit_ -= 1;
    return Kind::kFresh;
  }
  if (foreign_credit_ >= 1) {
    foreign_credit_ -= 1;
    return Kind::kForeign;
  }
  return Kind::kEstablished;
}

// Every frame is read, as any receiver would: where only one of a burst is, what the device writes
// never leaves its own cache, and testpmd macswap does 17.8 instead of 12 million frames a second
// over memif, sluiced 9.3 instead of 8.3.
std::uint32_t Load::receive(std::uint64_t now) {
  rte_mbuf* frames[Device::kBurst];
  std::uint32_t heard = 0;
  // Two bursts: what was sent meanwhile must not pile up.
  for (int turn = 0; turn < 2; ++turn) {
    const std::uint16_t got = device_.receive(frames);
    for (std::uint16_t i = 0; i < got; ++i) {
      rte_prefetch0(rte_pktmbuf_mtod(frames[i], void*));
    }
    unsigned plain = 0;
    for (std::uint16_t i = 0; i < got; ++i) {
      const auto* data = rte_pktmbuf_mtod(frames[i], const std::uint8_t*);
      if (!is_plain(data)) [[unlikely]] {
        take_other(frames[i], now);
        continue;
      }
      count(data, now);
      frames[plain++] = frames[i];
    }
    rte_pktmbuf_free_bulk(frames, plain);
    heard += got;
    if (got < Device::kBurst) {
      break;
    }
  }
  last_heard_ = heard != 0 ? now : last_heard_;
  return heard;
}

/// The run's family and protocol, no tunnel. (Shorter frames than ours nobody sends.)
bool Load::is_plain(const std::uint8_t* frame) const noexcept {
  const bool v4 = flows_.family() == core::Family::kIpv4;
  return frame[at_.proto] == flows_.plan().shape.proto &&
         core::load_be16(frame + 12) == (v4 ? core::kEtherTypeIpv4 : core::kEtherTypeIpv6);
}

void Load::take_other(rte_mbuf* frame, std::uint64_t now) {
  const std::uint8_t* inner =
      look_at(rte_pktmbuf_mtod(frame, std::uint8_t*), frame->data_len, flows_);
  if (inner == nullptr) {
    answer_or_free(device_, frame);
    return;
  }
  count(inner, now);
  rte_pktmbuf_free(frame);
}

std::uint64_t Load::stamp_of(const std::uint8_t* inner) const noexcept {
  std::uint64_t sent = 0;
  std::memcpy(&sent, inner + at_.payload, kStampBytes);
  return sent;
}

void Load::count(const std::uint8_t* inner, std::uint64_t now) noexcept {
  if (!own_heard_) [[unlikely]] {
    // A device that was held up for longer than drain() waits gives back what an earlier
    // measurement sent. Frames come in their order, so the first of this one ends that.
    own_heard_ = ((stamp_of(inner) - start_) & kStampMask) < kStampMask / 2;
    if (!own_heard_) {
      return;
    }
  }
  outstanding_ -= outstanding_ > 0 ? 1 : 0;
  ++sample_;
  const bool tcp = flows_.plan().shape.proto == core::kIpProtoTcp;
  if (tcp && (inner[at_.l4 + 13] & core::kTcpSyn) != 0) {
    ++result_.fresh_received;
  } else {
    ++result_.received;
    if (sample_ % every_ == 0) {
      const std::uint64_t ticks = (now - stamp_of(inner)) & kStampMask;
      result_.latency.add(ticks < kStampMask / 2 ? ticks : 0);
    }
  }
  if (sample_ % kChecked == 0) [[unlikely]] {
    result_.bad_checksums += checksums_right(inner, flows_) ? 0 : 1;
  }
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
