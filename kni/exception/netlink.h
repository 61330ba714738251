#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <libmnl/libmnl.h>

#include "dataplane/core/net/address.h"
#include "dataplane/core/sink.h"

namespace sluice::kni {

/// A netlink message under construction, with its own buffer.
class Message {
 public:
  Message(std::uint16_t type, std::uint16_t flags);
  /// The family header (ifaddrmsg, rtmsg, ...), zeroed.
  template <class T>
  T* extra() {
    return static_cast<T*>(mnl_nlmsg_put_extra_header(header_, sizeof(T)));
  }
  void put_u32(std::uint16_t attribute, std::uint32_t value) {
    mnl_attr_put_u32(header_, attribute, value);
  }
  void put_string(std::uint16_t attribute, const std::string& value) {
    mnl_attr_put_strz(header_, attribute, value.c_str());
  }
  void put_address(std::uint16_t attribute, const core::IpAddress& address) {
    mnl_attr_put(header_, attribute, address.size(), address.data());
  }
  [[nodiscard]] nlmsghdr* header() noexcept { return header_; }

 private:
  std::vector<char> buffer_;
  nlmsghdr* header_;
};

/// AF_INET or AF_INET6 as netlink headers want it.
[[nodiscard]] std::uint8_t family_number(core::Family family) noexcept;

/// A netlink socket. Thread: one at a time.
class Netlink {
 public:
  /// @param bus     NETLINK_ROUTE or NETLINK_NETFILTER.
  /// @param groups  RTNLGRP_* to listen to; empty: requests only.
  [[nodiscard]] static core::Result<Netlink> open(int bus, const std::vector<unsigned>& groups);

  [[nodiscard]] int fd() const noexcept { return mnl_socket_get_fd(socket_.get()); }
  [[nodiscard]] std::uint32_t port_id() const noexcept {
    return mnl_socket_get_portid(socket_.get());
  }

  /// Sends a request and waits for its acknowledgement. @return 0 or a positive errno.
  int request(Message& message);

  using Handler = std::function<void(const nlmsghdr&)>;
  /// Sends a dump request and hands on every answer. A dump that changed under way is repeated by
  /// the caller: @return 0, EAGAIN (changed under way) or another positive errno.
  int dump(Message& message, const Handler& handler);

  /// Reads what has arrived, without waiting. @return 0, or a positive errno; ENOBUFS means that
  /// events were lost.
  int receive(const Handler& handler);

  /// Sends a batch of messages (one nfnetlink transaction) and waits for its answers.
  /// @param answers  messages in it that ask for an acknowledgement.
  /// @return 0, or the errno of the first that failed.
  int request_batch(const void* data, std::size_t size, unsigned answers);

 private:
  struct Close {
    void operator()(mnl_socket* socket) const noexcept { mnl_socket_close(socket); }
  };
  explicit Netlink(mnl_socket* socket) : socket_(socket), buffer_(kBuffer) {}
  static constexpr std::size_t kBuffer = 65536;  // the kernel fills dumps up to 32 KiB
  std::unique_ptr<mnl_socket, Close> socket_;
  std::vector<char> buffer_;
  std::uint32_t sequence_ = 0;
};

}  // namespace sluice::kni
