#include "bench/generator/load.h"

#include <immintrin.h>

#include "bench/clock.h"
#include "dataplane/core/net/parse.h"

namespace sluice::bench {
namespace {

// A generator that was held up longer than this gives up what it owes: to catch up would be a burst
// that nobody asked for.
constexpr std::uint64_t kMostBehind = 256;
// A turn sends one burst and receives two, in 10 us at most; a longer one was interrupted.
constexpr double kHeldSeconds = 20e-6;
constexpr std::uint64_t kStampMask = (std::uint64_t{1} << 48) - 1;
constexpr std::uint32_t kChecked = 1024;  // one of so many frames has its checksums verified

void copy_line(std::uint8_t* to, const std::uint8_t* from) noexcept {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(to),
                      _mm256_load_si256(reinterpret_cast<const __m256i*>(from)));
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + 32),
                      _mm256_load_si256(reinterpret_cast<const __m256i*>(from + 32)));
}

}  // namespace

Load::Load(Port& port, const FlowSet& flows, Images& images)
    : port_(port),
      flows_(flows),
      images_(images),
      at_(flows.offsets()),
      hertz_(ticks_per_second()) {
  for (std::uint32_t i = 0; i < kLengths; ++i) {
    lengths_[i] = flows.length_of(i);
  }
}

LoadResult Load::run(const LoadSpec& spec) {
  drain();  // what is left of opening or of an earlier measurement
  result_ = LoadResult{};
  start_ = last_heard_ = tsc();
  due_ = outstanding_ = 0;
  own_heard_ = false;
  until_timed_ = timed_ = spec.window == 0 ? 1 : 8;  // a closed loop is about the rate
  const auto end = start_ + static_cast<std::uint64_t>(spec.seconds * hertz_);
  std::uint64_t now = start_;
  const auto limit = static_cast<std::uint64_t>(kHeldSeconds * hertz_);
  std::uint64_t idle = 0;
  std::uint64_t held = 0;
  while (now < end) {
    const std::uint64_t bursts = result_.bursts;
    if (spec.window == 0) {
      pace_open(spec, now);
    } else {
      pace_closed(spec, now);
    }
    const bool heard = receive(tsc()) != 0;
    const std::uint64_t turn = tsc();
    idle += heard || bursts != result_.bursts ? 0 : turn - now;
    held += turn - now > limit ? turn - now : 0;
    now = turn;
  }
  result_.seconds = static_cast<double>(now - start_) / hertz_;
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
                                               hertz_ * spec.rate);
  if (owed <= due_) {
    return;
  }
  std::uint64_t n = owed - due_;
  if (n > kMostBehind) {
    result_.skipped += n - Port::kBurst;
    due_ += n - Port::kBurst;
    n = Port::kBurst;
  }
  n = n < Port::kBurst ? n : Port::kBurst;
  due_ += n;
  send(spec, static_cast<std::uint16_t>(n), now);
}

void Load::pace_closed(const LoadSpec& spec, std::uint64_t now) {
  if (outstanding_ + Port::kBurst <= spec.window) {
    send(spec, Port::kBurst, now);
  } else if (now - last_heard_ > static_cast<std::uint64_t>(hertz_ * 0.005)) {
    ++result_.stalls;
    outstanding_ = 0;
    last_heard_ = now;
  }
}

void Load::send(const LoadSpec& spec, std::uint16_t n, std::uint64_t now) {
  ++result_.bursts;
  if (spec.fresh != 0 || spec.foreign != 0) {
    send_mixed(spec, n, now);
    return;
  }
  Frame frames[Port::kBurst];
  const std::uint16_t room = port_.reserve(frames, n);
  write_images(frames, room, Stamp(now & kStampMask));
  const std::uint16_t taken = port_.send(frames, room);
  outstanding_ += taken;
  result_.offered += n;
  result_.refused += static_cast<std::uint64_t>(n - taken);
  if (taken < n) {
    refuse(spec);
  }
}

void Load::send_mixed(const LoadSpec& spec, std::uint16_t n, std::uint64_t now) {
  Frame frames[Port::kBurst];
  Kind kinds[Port::kBurst];
  const Stamp stamp(now & kStampMask);
  const std::uint16_t room = port_.reserve(frames, n);
  for (std::uint16_t i = 0; i < n; ++i) {
    kinds[i] = choose(spec);
    if (i < room && kinds[i] == Kind::kEstablished) {
      write_images(frames + i, 1, stamp);
    } else if (i < room) {
      write_other(frames[i], kinds[i], stamp);
    }
  }
  const std::uint16_t taken = port_.send(frames, room);
  for (std::uint16_t i = 0; i < n; ++i) {
    result_.offered += kinds[i] == Kind::kEstablished ? 1 : 0;
    result_.refused += kinds[i] == Kind::kEstablished && i >= taken ? 1 : 0;
    result_.fresh_sent += kinds[i] == Kind::kFresh ? 1 : 0;
    result_.foreign_sent += kinds[i] == Kind::kForeign ? 1 : 0;
    // Nobody sends a foreign frame back.
    outstanding_ += kinds[i] != Kind::kForeign && i < taken ? 1 : 0;
  }
  if (taken < n) {
    refuse(spec);
  }
}

/// A burst was not taken whole.
void Load::refuse(const LoadSpec& spec) noexcept {
  ++result_.bursts_refused;
  if (spec.window != 0) {
    outstanding_ = spec.window;  // the peer is held up: no more before it is heard again
  }
}

void Load::write_images(Frame* frames, std::uint16_t n, const Stamp& stamp) noexcept {
  const std::uint32_t stride = images_.stride();
  const std::uint32_t count = images_.count();
  const FrameOffsets at = at_;
  std::uint32_t next = next_;
  for (std::uint16_t i = 0; i < n; ++i) {
    // Nobody has read the images of the next burst yet: they are far away.
    __builtin_prefetch(images_.at(std::min(next + Port::kBurst, count - 1)));
    copy_line(frames[i].data, images_.at(next));
    if (stride != 64) {
      copy_line(frames[i].data + 64, images_.at(next) + 64);
    }
    stamp.put(frames[i].data, at);
    frames[i].length = lengths_[next % kLengths];
    port_.clear_from(frames[i], stride);
    next = next + 1 == count ? 0 : next + 1;
  }
  next_ = next;
}

void Load::write_other(Frame& frame, Kind kind, const Stamp& stamp) noexcept {
  frame.length = at_.shortest();
  if (kind == Kind::kFresh) {
    flows_.write_fresh(frame.data, fresh_++);
  } else {
    flows_.write_foreign(frame.data, foreign_++);
  }
  stamp.put(frame.data, at_);
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
// never leaves its own cache, and it looks faster than it is, the more the less it does besides.
std::uint32_t Load::receive(std::uint64_t now) {
  Frame frames[Port::kBurst];
  std::uint32_t heard = 0;
  // Two bursts: what was sent meanwhile must not pile up.
  for (int turn = 0; turn < 2; ++turn) {
    const std::uint16_t got = port_.receive(frames);
    for (std::uint16_t i = 0; i < got; ++i) {
      if (is_plain(frames[i].data)) [[likely]] {
        count(frames[i].data, now);
      } else {
        take_other(frames[i], now);
      }
    }
    port_.release();
    heard += got;
    if (got < Port::kBurst) {
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

void Load::take_other(const Frame& frame, std::uint64_t now) {
  if (const std::uint8_t* inner = look_at(frame.data, frame.length, flows_)) {
    count(inner, now);
  } else {
    answer_request(port_, frame, flows_);
  }
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
  const bool tcp = flows_.plan().shape.proto == core::kIpProtoTcp;
  if (tcp && (inner[at_.l4 + 13] & core::kTcpSyn) != 0) {
    ++result_.fresh_received;
  } else {
    ++result_.received;
    if (--until_timed_ == 0) {
      until_timed_ = timed_;
      const std::uint64_t ticks = (now - stamp_of(inner)) & kStampMask;
      result_.latency.add(ticks < kStampMask / 2 ? ticks : 0);
    }
  }
  if (--until_checked_ == 0) [[unlikely]] {
    until_checked_ = kChecked;
    result_.bad_checksums += checksums_right(inner, flows_) ? 0 : 1;
  }
}

/// Takes what is still on its way, until nothing has come for 10 ms.
void Load::drain() {
  const auto patience = static_cast<std::uint64_t>(hertz_ * 0.01);
  last_heard_ = tsc();
  for (std::uint64_t now = last_heard_; now - last_heard_ < patience; now = tsc()) {
    receive(now);
  }
}

}  // namespace sluice::bench
