#pragma once

#include <functional>
#include <memory>
#include <string_view>
#include <vector>

#include <libmnl/libmnl.h>

#include "dataplane/core/sink.h"
#include "kni/nftables/attributes.h"
#include "kni/nftables/batch.h"
#include "kni/nftables/kernel.h"

namespace sluice::kni::nft {

/// A netfilter netlink socket. Thread: one.
class Socket {
 public:
  [[nodiscard]] static core::Result<Socket> open();
  /// One that hears what others commit in this network namespace. @param own  port of the socket
  /// whose commits are ours: a filter keeps their thousands of messages out of its buffer.
  [[nodiscard]] static core::Result<Socket> open_listener(std::uint32_t own);

  using Handler = std::function<void(std::uint8_t family, const Attributes&)>;
  /// Asks for one thing or, with NLM_F_DUMP in `flags`, for all. @param attributes  of the request.
  /// @return 0 or errno; EAGAIN: what was listed changed meanwhile.
  int request(std::uint16_t type, std::uint8_t family, std::uint16_t flags,
              std::string_view attributes, const Handler& handler);
  CommitResult commit(const Batch& batch);
  /// A listener that is deaf hears nothing; what was said before stays. Errors: errno.
  int set_deaf(bool deaf);
  /// What a listener heard, without waiting; commits of its owner's socket are not heard.
  Events take_events();
  [[nodiscard]] std::uint32_t port() const noexcept { return mnl_socket_get_portid(socket_.get()); }

 private:
  struct Close {
    void operator()(mnl_socket* s) const noexcept { mnl_socket_close(s); }
  };
  explicit Socket(mnl_socket* s) : socket_(s), buffer_(kBuffer) {}
  static constexpr std::size_t kBuffer = 65536;  // dumps come in pieces of at most 32 KiB
  [[nodiscard]] int fd() const noexcept { return mnl_socket_get_fd(socket_.get()); }
  int receive_answer(const Handler& handler, bool dump);
  CommitResult read_refusals(const Batch& batch);
  void hear(std::uint16_t type, std::string_view payload, Events& events);

  std::unique_ptr<mnl_socket, Close> socket_;
  std::vector<char> buffer_;
  std::uint32_t sequence_ = 0;
  std::size_t send_buffer_ = 0;  ///< as asked for so far
  bool heard_ours_ = false;      ///< the commit that is being told of is about our tables
};

/// Attribute bytes for a request.
[[nodiscard]] std::string text_attribute(std::uint16_t type, const std::string& text);

}  // namespace sluice::kni::nft
