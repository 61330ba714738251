#pragma once

#include <cstdint>
#include <cstring>

#include "dataplane/core/net/address.h"

namespace sluice::bench {

/// A frame in the memory of a port. Only the port knows what `handle` is.
struct Frame {
  std::uint8_t* data = nullptr;
  std::uint32_t length = 0;  ///< bytes without FCS
  void* handle = nullptr;
};

/// Where the generator sends and receives. A burst costs one call each, so that what is behind it
/// does not show in a frame's price. Thread: one.
class Port {
 public:
  static constexpr std::uint16_t kBurst = 64;

  /// zeroed: what nobody wrote to is zero in the memory of frames to send.
  explicit Port(bool zeroed) : zeroed_(zeroed) {}
  virtual ~Port() = default;
  Port(const Port&) = delete;
  Port& operator=(const Port&) = delete;

  [[nodiscard]] virtual core::MacAddress mac() const noexcept = 0;
  /// Whether the peer is there; where it has yet to come it may be taken on here.
  [[nodiscard]] virtual bool link_up() = 0;

  /// Room for up to n (at most kBurst) frames, to be written and sent before the next call.
  /// @return how many; fewer than n: the peer is behind.
  [[nodiscard]] virtual std::uint16_t reserve(Frame* frames, std::uint16_t n) noexcept = 0;
  /// The n frames that were reserved, with their lengths.
  /// @return how many were taken; the others are gone.
  virtual std::uint16_t send(const Frame* frames, std::uint16_t n) noexcept = 0;
  /// Up to kBurst frames, which are there until release().
  [[nodiscard]] virtual std::uint16_t receive(Frame* frames) noexcept = 0;
  /// What the last receive() brought is not needed any more.
  virtual void release() noexcept = 0;

  /// Makes bytes [from, length) of a frame to send zero, which costs nothing where only their
  /// headers were ever written to.
  void clear_from(const Frame& frame, std::uint32_t from) const noexcept {
    if (!zeroed_ && frame.length > from) {
      std::memset(frame.data + from, 0, frame.length - from);
    }
  }

 private:
  bool zeroed_;
};

}  // namespace sluice::bench
