#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "bench/targets.h"
#include "bench/traffic.h"
#include "dataplane/core/sink.h"

namespace sluice::bench {

// Theory of operation. What is compared is set up first, all of it, and then measured in turn: a
// window of the one, a window of the next, and so on, many times. Who else uses the core, its
// caches or the memory comes and goes within seconds, and meets all of them alike. A window begins
// with rounds that are not counted, until code and table are in the caches as they usually are.
//
// A figure is told twice. The median tells what the machine gave: where a hyperthread sibling is
// busy most of the time, that is half of what the core can do. The low quantile tells what the core
// does while it is left alone, which it is for a millisecond now and then even on a busy machine.
// It is not the luck of single rounds: what is ranked are slices, each the median of 16 rounds,
// which last about as long as such a moment. On a quiet machine the two lie a twentieth apart, with
// millions of flows a tenth.

/// Something whose packets are timed. Thread: one.
class Timed {
 public:
  virtual ~Timed() = default;
  /// Puts the frames of one round; not timed. @return false: it cannot go on.
  virtual bool fill(FrameRing& ring, std::uint64_t round) = 0;
  /// One burst; this is what is timed.
  virtual void run(const pipeline::Packet* packets, std::uint32_t n) noexcept = 0;
  /// Frames that it has treated as it should, since it was made.
  [[nodiscard]] virtual std::uint64_t done() const = 0;
  /// For the message that some were not: counters, or nothing.
  [[nodiscard]] virtual std::string counters() const { return {}; }
};

/// Whose round it is, of two that would have a core each and are on one here. Long enough to have
/// the core's own caches; a slice has rounds of both alike, and its median none of those in which
/// they are filled again.
struct Step {
  static constexpr std::uint64_t kRounds = 4;
  std::size_t who;      ///< 0 or 1
  std::uint64_t round;  ///< of those it has had

  [[nodiscard]] static constexpr Step of(std::uint64_t round) noexcept {
    return {static_cast<std::size_t>(round / kRounds % 2),
            round / kRounds / 2 * kRounds + round % kRounds};
  }
};

/// Of all that one program measures.
struct TurnsConfig {
  double cycles_per_tick = 1;   ///< of the time stamp counter
  double quantile = 0.05;       ///< the low one, 0 to 1
  std::uint64_t rounds = 8000;  ///< counted ones of each figure
};

/// "5 % quantile", of 0.05.
[[nodiscard]] std::string quantile_name(double quantile);

/// Thread: one.
class Turns {
 public:
  /// @param flows  of what is compared; the more, the longer a window warms up.
  Turns(const TurnsConfig& config, std::uint32_t flows);

  /// @param name  of its figure, and of its section for a profile.
  void add(std::string name, std::unique_ptr<Timed> what);

  /// Errors: the making of it, or what it could not do.
  [[nodiscard]] bool add_made(std::string name, core::Result<std::unique_ptr<Timed>> made);

  /// Out of the turns, for others.
  [[nodiscard]] std::unique_ptr<Timed> take(std::string_view name);

  /// @return false: not every frame was treated as it should; told on standard error.
  [[nodiscard]] bool run();

  [[nodiscard]] bool has(std::string_view name) const;
  /// After run(): cycles per packet.
  [[nodiscard]] Figure cycles(std::string_view name) const;
  /// After run(): cycles of a packet of one over those of another, or less those. The median is
  /// that of all turns, each of two windows beside each other.
  [[nodiscard]] Figure ratio(std::string_view above, std::string_view below) const;
  [[nodiscard]] Figure difference(std::string_view more, std::string_view less) const;
  /// Figures of all, by name, but of those that were told.
  void tell(Results& results) const;

 private:
  struct Side {
    std::string name;
    std::unique_ptr<Timed> what;
    std::vector<double> slices;   ///< cycles per packet of each, of all windows
    std::vector<double> windows;  ///< the median slice of each
    std::uint64_t rounds = 0;
  };
  bool window(Side& side);
  [[nodiscard]] const Side& of(std::string_view name) const;
  template <class Operation>
  [[nodiscard]] Figure compared(std::string_view one, std::string_view other,
                                Operation&& operation) const;

  TurnsConfig config_;
  std::uint64_t warm_;
  std::uint64_t slices_;  ///< of a window
  FrameRing ring_;
  std::vector<Side> sides_;
};

}  // namespace sluice::bench
