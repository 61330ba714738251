#pragma once

#include <cstdint>

#include "bench/generator/flow_set.h"
#include "bench/generator/histogram.h"
#include "bench/generator/port.h"

namespace sluice::bench {

/// One measurement.
struct LoadSpec {
  double seconds = 1;
  double rate = 0;            ///< open loop: frames a second
  std::uint32_t window = 0;   ///< closed loop: frames in flight; rate is not used
  double fresh = 0;           ///< share of frames that are a flow's first packet
  double foreign = 0;         ///< share of frames to no Service
};

struct LoadResult {
  double seconds = 0;
  std::uint64_t offered = 0;       ///< frames of established flows that were due
  std::uint64_t refused = 0;       ///< of these: the driver had no room, the peer is behind
  std::uint64_t received = 0;      ///< of these came back
  std::uint64_t fresh_sent = 0;
  std::uint64_t fresh_received = 0;
  std::uint64_t foreign_sent = 0;
  std::uint64_t skipped = 0;       ///< not offered because the generator itself was held up
  std::uint64_t stalls = 0;        ///< closed loop: times nothing came back for 5 ms
  std::uint64_t bad_checksums = 0; ///< of 1 in 1024
  std::uint64_t bursts = 0;
  std::uint64_t bursts_refused = 0;  ///< bursts the driver did not take whole
  double idle = 0;                   ///< share of the time that it had nothing to send or receive
  double held = 0;                   ///< share of it that turns took which its CPU was taken from
  Histogram latency;                 ///< ticks of the time stamp counter
};

/// Offers the frames of a FlowSet and counts what comes back. Thread: one.
class Load {
 public:
  /// All are borrowed and outlive the object.
  Load(Port& port, const FlowSet& flows, Images& images);

  [[nodiscard]] LoadResult run(const LoadSpec& spec);

 private:
  enum class Kind : std::uint8_t { kEstablished, kFresh, kForeign };

  void pace_open(const LoadSpec& spec, std::uint64_t now);
  void pace_closed(const LoadSpec& spec, std::uint64_t now);
  void send(const LoadSpec& spec, std::uint16_t n, std::uint64_t now);
  void send_mixed(const LoadSpec& spec, std::uint16_t n, std::uint64_t now);
  void refuse(const LoadSpec& spec) noexcept;
  void write_images(Frame* frames, std::uint16_t n, const Stamp& stamp) noexcept;
  void write_other(Frame& frame, Kind kind, const Stamp& stamp) noexcept;
  Kind choose(const LoadSpec& spec) noexcept;
  /// @return frames that came.
  std::uint32_t receive(std::uint64_t now);
  [[nodiscard]] bool is_plain(const std::uint8_t* frame) const noexcept;
  void take_other(const Frame& frame, std::uint64_t now);
  void count(const std::uint8_t* inner, std::uint64_t now) noexcept;
  [[nodiscard]] std::uint64_t stamp_of(const std::uint8_t* inner) const noexcept;
  void drain();

  Port& port_;
  const FlowSet& flows_;
  Images& images_;
  FrameOffsets at_;
  LoadResult result_;
  std::uint64_t start_ = 0;
  std::uint64_t last_heard_ = 0;
  bool own_heard_ = false;        ///< a frame of this measurement came back
  std::uint64_t due_ = 0;         ///< open loop: frames sent or skipped since start_
  std::uint64_t outstanding_ = 0;
  std::uint32_t next_ = 0;        ///< image
  std::uint32_t fresh_ = 0;
  std::uint32_t foreign_ = 0;
  double fresh_credit_ = 0;
  double foreign_credit_ = 0;
  std::array<std::uint32_t, kLengths> lengths_{};
  std::uint32_t until_checked_ = 1;  ///< frames until one has its checksums verified
  std::uint32_t until_timed_ = 1;    ///< and until one goes into the histogram,
  std::uint32_t timed_ = 1;          ///< which is one of so many
  double hertz_;
};

}  // namespace sluice::bench
