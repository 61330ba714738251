#pragma once

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <vector>

#include "bench/generator/frame.h"
#include "bench/generator/port.h"
#include "dataplane/core/sink.h"

namespace sluice::bench {

/// Image i has length number i % kLengths.
inline constexpr std::uint32_t kLengths = 64;

struct FlowPlan {
  std::uint32_t flows = 1000;
  std::uint32_t services = 1;    ///< flow n asks for Service n % services
  bool one_way = false;          ///< answers do not come by (dr, ipip)
  bool reflect = false;          ///< the device under test sends back what it gets: nothing to open
  std::vector<std::uint32_t> lengths = {60};  ///< of frames without FCS; of kLengths each its share
  FrameShape shape;
};

/// Headers of every frame of a run in the order of sending. Flows are visited in a permutation, the
/// memory in a line: the generator never waits for a cache miss, the device under test always does.
class Images {
 public:
  Images(std::uint32_t count, std::uint32_t stride);

  [[nodiscard]] std::uint8_t* at(std::uint32_t i) noexcept {
    return memory_.get() + std::size_t{i} * stride_;
  }
  [[nodiscard]] std::uint32_t count() const noexcept { return count_; }
  [[nodiscard]] std::uint32_t stride() const noexcept { return stride_; }

 private:
  struct Free {
    void operator()(std::uint8_t* p) const noexcept { std::free(p); }
  };
  std::unique_ptr<std::uint8_t, Free> memory_;
  std::uint32_t count_;
  std::uint32_t stride_;
};

/// What came of opening the flows.
struct OpenReport {
  std::uint32_t opened = 0;
  std::uint32_t asked = 0;
  std::uint64_t bad_checksums = 0;
};

/// The flows of a run in one family. Thread: one.
class FlowSet {
 public:
  /// Errors: family is neither 4 nor 6 (by precondition) - none.
  [[nodiscard]] static std::unique_ptr<FlowSet> make(core::Family family, FlowPlan plan);
  virtual ~FlowSet() = default;

  /// Opens every flow by a whole handshake, as clients and as backends.
  [[nodiscard]] virtual OpenReport open(Port& port) = 0;
  /// Frames of both directions of all flows; opened before, or plan.reflect.
  [[nodiscard]] virtual Images images() const = 0;
  /// The first packet of flow plan.flows + n, never seen before.
  virtual void write_fresh(std::uint8_t* at, std::uint32_t n) const noexcept = 0;
  /// A packet to an address that is no Service's.
  virtual void write_foreign(std::uint8_t* at, std::uint32_t n) const noexcept = 0;

  /// Bytes of every frame that are written, in images too; what is behind is zero.
  [[nodiscard]] std::uint32_t stride() const noexcept {
    return offsets_.payload + kStampBytes <= 64 ? 64 : 128;
  }
  /// Of image i, without FCS.
  [[nodiscard]] std::uint32_t length_of(std::uint32_t i) const noexcept {
    return std::max(plan_.lengths[i % kLengths % plan_.lengths.size()], offsets_.shortest());
  }
  [[nodiscard]] const FlowPlan& plan() const noexcept { return plan_; }
  [[nodiscard]] const FrameOffsets& offsets() const noexcept { return offsets_; }
  [[nodiscard]] core::Family family() const noexcept { return family_; }

 protected:
  FlowSet(core::Family family, FlowPlan plan)
      : family_(family),
        offsets_(FrameOffsets::of(family, plan.shape.proto)),
        plan_(std::move(plan)) {}

 private:
  core::Family family_;
  FrameOffsets offsets_;
  FlowPlan plan_;
};

/// Where a received frame of the run's family and protocol is as if the (inner) frame began there,
/// tunnelled or not; nullptr: another frame.
[[nodiscard]] const std::uint8_t* look_at(const std::uint8_t* frame, std::uint32_t length,
                                          const FlowSet& flows) noexcept;

/// Answers what came if it is a neighbour request. Not with more bytes than every frame of the run
/// writes: what is behind must stay zero in the memory of a port. (IPv4 needs no longer answer.)
void answer_request(Port& port, const Frame& frame, const FlowSet& flows) noexcept;

/// Both checksums of a frame that look_at() knew.
[[nodiscard]] bool checksums_right(const std::uint8_t* inner, const FlowSet& flows) noexcept;

}  // namespace sluice::bench
