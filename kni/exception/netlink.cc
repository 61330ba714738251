#include "kni/exception/netlink.h"

#include <cerrno>
#include <cstring>

#include <linux/netlink.h>
#include <sys/socket.h>
#include <sys/time.h>

namespace sluice::kni {

Message::Message(std::uint16_t type, std::uint16_t flags) : buffer_(1024) {
  header_ = mnl_nlmsg_put_header(buffer_.data());
  header_->nlmsg_type = type;
  header_->nlmsg_flags = static_cast<std::uint16_t>(NLM_F_REQUEST | flags);
}

std::uint8_t family_number(core::Family family) noexcept {
  return family == core::Family::kIpv4 ? AF_INET : AF_INET6;
}

core::Result<Netlink> Netlink::open(int bus, const std::vector<unsigned>& groups) {
  const auto fail = [](const char* what) {
    return tl::make_unexpected(core::Error{std::string("netlink: ") + what + ": " + std::strerror(errno)});
  };
  mnl_socket* raw = mnl_socket_open2(bus, SOCK_CLOEXEC);
  if (raw == nullptr) {
    return fail("opening a socket");
  }
  Netlink netlink(raw);
  // Bursts of neighbour events must not overrun it; FORCE needs privilege, which we have.
  const int size = 4 << 20;
  (void)setsockopt(netlink.fd(), SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof(size));
  // The kernel answers at once; a reply that never comes must not hang the daemon.
  const timeval patience{5, 0};
  (void)setsockopt(netlink.fd(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
  if (mnl_socket_bind(raw, 0, MNL_SOCKET_AUTOPID) < 0) {
    return fail("binding");
  }
  for (unsigned group : groups) {
    if (mnl_socket_setsockopt(raw, NETLINK_ADD_MEMBERSHIP, &group, sizeof(group)) < 0) {
      return fail("joining a group");
    }
  }
  return netlink;
}

int Netlink::request(Message& message) {
  nlmsghdr* header = message.header();
  header->nlmsg_flags = static_cast<std::uint16_t>(header->nlmsg_flags | NLM_F_ACK);
  header->nlmsg_seq = ++sequence_;
  if (mnl_socket_sendto(socket_.get(), header, header->nlmsg_len) < 0) {
    return errno;
  }
  const ssize_t size = mnl_socket_recvfrom(socket_.get(), buffer_.data(), buffer_.size());
  if (size < 0) {
    return errno;
  }
  const int rc = mnl_cb_run(buffer_.data(), static_cast<std::size_t>(size), sequence_, port_id(),
                            nullptr, nullptr);
  return rc < 0 ? errno : 0;
}

namespace {

int call_handler(const nlmsghdr* header, void* handler) {
  (*static_cast<const Netlink::Handler*>(handler))(*header);
  return MNL_CB_OK;
}

}  // namespace

int Netlink::dump(Message& message, const Handler& handler) {
  nlmsghdr* header = message.header();
  header->nlmsg_flags = static_cast<std::uint16_t>(header->nlmsg_flags | NLM_F_DUMP);
  header->nlmsg_seq = ++sequence_;
  if (mnl_socket_sendto(socket_.get(), header, header->nlmsg_len) < 0) {
    return errno;
  }
  while (true) {
    const ssize_t size = mnl_socket_recvfrom(socket_.get(), buffer_.data(), buffer_.size());
    if (size < 0) {
      return errno;
    }
    Handler copy = handler;
    const int rc = mnl_cb_run(buffer_.data(), static_cast<std::size_t>(size), sequence_, port_id(),
                              call_handler, &copy);
    if (rc < 0) {
      return errno == EINTR ? EAGAIN : errno;  // EINTR: NLM_F_DUMP_INTR was set
    }
    if (rc == MNL_CB_STOP) {
      return 0;
    }
  }
}

int Netlink::receive(const Handler& handler) {
  while (true) {
    const ssize_t size =
        recv(fd(), buffer_.data(), buffer_.size(), MSG_DONTWAIT);
    if (size < 0) {
      return errno == EAGAIN ? 0 : errno;
    }
    Handler copy = handler;
    if (mnl_cb_run(buffer_.data(), static_cast<std::size_t>(size), 0, 0, call_handler, &copy) < 0) {
      return errno;
    }
  }
}

int Netlink::request_batch(const void* data, std::size_t size, unsigned answers) {
  if (mnl_socket_sendto(socket_.get(), data, size) < 0) {
    return errno;
  }
  int first_error = 0;
  while (answers > 0) {
    const ssize_t got = mnl_socket_recvfrom(socket_.get(), buffer_.data(), buffer_.size());
    if (got < 0) {
      return errno;
    }
    auto left = static_cast<int>(got);
    for (auto* at = reinterpret_cast<const nlmsghdr*>(buffer_.data()); mnl_nlmsg_ok(at, left);
         at = mnl_nlmsg_next(at, &left)) {
      if (at->nlmsg_type != NLMSG_ERROR) {
        continue;
      }
      const int rc = -static_cast<const nlmsgerr*>(mnl_nlmsg_get_payload(at))->error;
      first_error = first_error == 0 ? rc : first_error;
      answers -= answers > 0 ? 1 : 0;
    }
    if (first_error == EPERM) {
      return first_error;  // the whole batch is refused with one answer
    }
  }
  return first_error;
}

}  // namespace sluice::kni
