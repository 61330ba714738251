#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "bench/generator/memif_channel.h"
#include "bench/generator/port.h"

namespace sluice::bench {

struct MemifOptions {
  std::string socket;                ///< path
  bool server = false;               ///< the memory is the peer's then, else ours
  core::MacAddress mac;              ///< of this end
  bool hugepages = false;            ///< of our memory
  std::uint16_t descriptors = 1024;  ///< of each ring of a client; a power of two
  std::uint32_t frame = 1518;        ///< longest frame
};

/// One end of a memif without a driver between: frames are written and read where they lie. Thread:
/// one.
class MemifPort final : public Port {
 public:
  /// A client is connected when this returns, a server waits for its client in link_up(). Errors:
  /// of the socket, of memory, what the peer refuses.
  [[nodiscard]] static core::Result<std::unique_ptr<MemifPort>> open(const MemifOptions& options);
  ~MemifPort() override;

  [[nodiscard]] core::MacAddress mac() const noexcept override { return options_.mac; }
  [[nodiscard]] bool link_up() override;
  [[nodiscard]] std::uint16_t reserve(Frame* frames, std::uint16_t n) noexcept override;
  std::uint16_t send(const Frame* frames, std::uint16_t n) noexcept override;
  [[nodiscard]] std::uint16_t receive(Frame* frames) noexcept override;
  void release() noexcept override;

 private:
  /// Our end of one ring. What we publish is at + lead; up to what the peer published + their_lead
  /// is ours.
  struct End {
    memif::Ring* ring = nullptr;
    std::uint16_t* published = nullptr;
    const std::uint16_t* theirs = nullptr;
    std::uint16_t mask = 0;
    std::uint16_t lead = 0;
    std::uint16_t their_lead = 0;
    std::uint16_t at = 0;         ///< the next slot
    std::uint16_t fetched = 0;    ///< up to here slots were asked for ahead
    std::uint8_t* own = nullptr;  ///< our memory: buffer of slot 0
    int event = -1;               ///< of a peer that does not poll

    [[nodiscard]] std::uint16_t ours() const noexcept {
      return static_cast<std::uint16_t>(__atomic_load_n(theirs, __ATOMIC_ACQUIRE) + their_lead -
                                        at);
    }
    void publish() const noexcept {
      __atomic_store_n(published, static_cast<std::uint16_t>(at + lead), __ATOMIC_RELEASE);
    }
  };

  explicit MemifPort(const MemifOptions& options);
  core::Result<void> connect();
  core::Result<void> take_client();
  core::Result<void> make_memory();
  void bind_ends();
  [[nodiscard]] std::uint8_t* data(const End& end, std::uint16_t slot) const noexcept;
  /// Asks for the lines of up to n slots from end.at on.
  template <bool kForWriting>
  void fetch(End& end, std::uint16_t n) const noexcept;

  MemifOptions options_;
  std::uint32_t room_;    ///< bytes of our buffers
  std::uint32_t stride_;  ///< from one to the next
  MemifChannel channel_;
  std::optional<MemifChannel> client_;  ///< of a server
  MemifLayout layout_;
  bool up_ = false;
  End out_;
  End in_;
  std::uint16_t held_ = 0;  ///< frames received and not released
};

}  // namespace sluice::bench
