#include "kni/nftables/socket.h"

#include <linux/filter.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "kni/nftables/layout.h"

namespace sluice::kni::nft {
namespace {

constexpr std::size_t kSlack = 1 << 20;

core::Error failure(const char* what) {
  return {describe({errno, what})};
}

/// Calls `visit(header, payload behind nfgenmsg, family)` for each whole message.
template <class Visit>
void for_each_message(const char* data, std::size_t size, Visit visit) {
  while (size >= sizeof(nlmsghdr)) {
    nlmsghdr h{};
    std::memcpy(&h, data, sizeof(h));
    if (h.nlmsg_len < sizeof(h) || h.nlmsg_len > size) {
      return;
    }
    visit(h, std::string_view(data + sizeof(h), h.nlmsg_len - sizeof(h)));
    const std::size_t step = std::min<std::size_t>(size, (h.nlmsg_len + 3u) / 4 * 4);
    data += step;
    size -= step;
  }
}

int error_of(std::string_view payload) {
  int error = 0;
  if (payload.size() >= sizeof(error)) {
    std::memcpy(&error, payload.data(), sizeof(error));
  }
  return -error;
}

}  // namespace

std::string text_attribute(std::uint16_t type, const std::string& text) {
  const nlattr a{static_cast<std::uint16_t>(sizeof(nlattr) + text.size() + 1), type};
  std::string out(reinterpret_cast<const char*>(&a), sizeof(a));
  out.append(text.c_str(), text.size() + 1);
  out.resize((out.size() + 3) / 4 * 4);
  return out;
}

core::Result<Socket> Socket::open() {
  mnl_socket* raw = mnl_socket_open2(NETLINK_NETFILTER, SOCK_CLOEXEC);
  if (raw == nullptr) {
    return tl::make_unexpected(failure("opening a netlink socket"));
  }
  Socket socket(raw);
  const int room = 8 << 20;
  (void)setsockopt(socket.fd(), SOL_SOCKET, SO_RCVBUFFORCE, &room, sizeof(room));
  // The kernel answers at once; an answer that never comes must not hang the daemon.
  const timeval patience{10, 0};
  (void)setsockopt(socket.fd(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
  if (mnl_socket_bind(raw, 0, MNL_SOCKET_AUTOPID) < 0) {
    return tl::make_unexpected(failure("binding a netlink socket"));
  }
  return socket;
}

core::Result<Socket> Socket::open_listener(std::uint32_t own) {
  auto socket = open();
  if (!socket) {
    return socket;
  }
  // The filter loads as big-endian what netlink keeps in host order.
  sock_filter pass_others[] = {
      {BPF_LD | BPF_W | BPF_ABS, 0, 0, offsetof(nlmsghdr, nlmsg_pid)},
      {BPF_JMP | BPF_JEQ | BPF_K, 1, 0, htonl(own)},
      {BPF_RET | BPF_K, 0, 0, 0xffffffff},
      {BPF_RET | BPF_K, 0, 0, 0},
  };
  const sock_fprog program{4, pass_others};
  if (setsockopt(socket->fd(), SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof(program)) != 0) {
    return tl::make_unexpected(failure("filtering events"));
  }
  if (socket->set_deaf(false) != 0) {
    return tl::make_unexpected(failure("listening to events"));
  }
  return socket;
}

int Socket::set_deaf(bool deaf) {
  int group = NFNLGRP_NFTABLES;
  const int rc = mnl_socket_setsockopt(
      socket_.get(), deaf ? NETLINK_DROP_MEMBERSHIP : NETLINK_ADD_MEMBERSHIP, &group, sizeof(group));
  return rc < 0 ? errno : 0;
}

int Socket::request(std::uint16_t type, std::uint8_t family, std::uint16_t flags,
                    std::string_view attributes, const Handler& handler) {
  nlmsghdr h{};
  nfgenmsg g{};
  g.nfgen_family = family;
  h.nlmsg_len = static_cast<std::uint32_t>(sizeof(h) + sizeof(g) + attributes.size());
  h.nlmsg_type = static_cast<std::uint16_t>(NFNL_SUBSYS_NFTABLES << 8 | type);
  h.nlmsg_flags = static_cast<std::uint16_t>(NLM_F_REQUEST | flags);
  h.nlmsg_seq = ++sequence_;
  std::string message(reinterpret_cast<const char*>(&h), sizeof(h));
  message.append(reinterpret_cast<const char*>(&g), sizeof(g));
  message.append(attributes);
  if (mnl_socket_sendto(socket_.get(), message.data(), message.size()) < 0) {
    return errno;
  }
  return receive_answer(handler, (flags & NLM_F_DUMP) != 0);
}

int Socket::receive_answer(const Handler& handler, bool dump) {
  int error = 0;
  bool done = false;
  while (!done) {
    const ssize_t size = recv(fd(), buffer_.data(), buffer_.size(), 0);
    if (size < 0) {
      return errno == EAGAIN ? ETIMEDOUT : errno;
    }
    for_each_message(buffer_.data(), static_cast<std::size_t>(size),
                     [&](const nlmsghdr& h, std::string_view payload) {
                       if (h.nlmsg_seq != sequence_) {
                         return;  // left over from a request that was given up
                       }
                       if ((h.nlmsg_flags & NLM_F_DUMP_INTR) != 0) {
                         error = EAGAIN;
                       }
                       if (h.nlmsg_type == NLMSG_ERROR || h.nlmsg_type == NLMSG_DONE) {
                         const int rc = error_of(payload);
                         error = rc != 0 ? rc : error;
                         done = true;
                       } else if (payload.size() >= sizeof(nfgenmsg)) {
                         handler(static_cast<std::uint8_t>(payload[0]),
                                 Attributes(payload.substr(sizeof(nfgenmsg))));
                         done = done || !dump;
                       }
                     });
  }
  return error;
}

CommitResult Socket::commit(const Batch& batch) {
  const std::size_t needed = batch.size() + kSlack;
  if (needed > send_buffer_) {
    const int room = static_cast<int>(needed);
    if (setsockopt(fd(), SOL_SOCKET, SO_SNDBUFFORCE, &room, sizeof(room)) == 0) {
      send_buffer_ = needed;
    }
  }
  sockaddr_nl to{};
  to.nl_family = AF_NETLINK;
  if (sendto(fd(), batch.bytes().data(), batch.size(), 0, reinterpret_cast<const sockaddr*>(&to),
             sizeof(to)) < 0) {
    return {errno, "sending the transaction"};
  }
  return read_refusals(batch);
}

/// The kernel has worked through the batch when the send returns. It answers only what it refused.
CommitResult Socket::read_refusals(const Batch& batch) {
  CommitResult result;
  while (true) {
    const ssize_t size = recv(fd(), buffer_.data(), buffer_.size(), MSG_DONTWAIT);
    if (size < 0) {
      const int error = errno;
      if (error != EAGAIN && result.error == 0) {
        result = {error, "reading the answer"};
      }
      if (error == ENOBUFS || error == EINTR) {
        continue;  // the rest must not be taken for the answer to another transaction
      }
      return result;
    }
    for_each_message(buffer_.data(), static_cast<std::size_t>(size),
                     [&](const nlmsghdr& h, std::string_view payload) {
                       const int rc = h.nlmsg_type == NLMSG_ERROR ? error_of(payload) : 0;
                       if (rc != 0 && result.error == 0) {
                         result = {rc, batch.what(h.nlmsg_seq)};
                       }
                     });
  }
}

Events Socket::take_events() {
  Events events;
  while (true) {
    const ssize_t size = recv(fd(), buffer_.data(), buffer_.size(), MSG_DONTWAIT);
    if (size < 0) {
      if (errno == ENOBUFS) {
        events.lost = true;
        continue;
      }
      return events;
    }
    for_each_message(buffer_.data(), static_cast<std::size_t>(size),
                     [&](const nlmsghdr& h, std::string_view payload) {
                       if (payload.size() >= sizeof(nfgenmsg)) {
                         hear(static_cast<std::uint16_t>(h.nlmsg_type & 0xff), payload, events);
                       }
                     });
  }
}

/// A commit's changes come first, then its generation.
void Socket::hear(std::uint16_t type, std::string_view payload, Events& events) {
  nfgenmsg g{};
  std::memcpy(&g, payload.data(), sizeof(g));
  const Attributes a(payload.substr(sizeof(g)));
  if (type == NFT_MSG_NEWGEN) {
    events.foreign.push_back({a.u32(NFTA_GEN_ID), a.u32(NFTA_GEN_PROC_PID),
                              a.text(NFTA_GEN_PROC_NAME), std::exchange(heard_ours_, false)});
    return;
  }
  // Of every message about a thing in a table the first attribute is the table's name.
  static_assert(NFTA_TABLE_NAME == 1 && NFTA_CHAIN_TABLE == 1 && NFTA_RULE_TABLE == 1 &&
                NFTA_SET_TABLE == 1 && NFTA_SET_ELEM_LIST_TABLE == 1 && NFTA_OBJ_TABLE == 1);
  const bool element = type == NFT_MSG_NEWSETELEM || type == NFT_MSG_DELSETELEM;
  const bool ours = (g.nfgen_family == family_number(core::Family::kIpv4) ||
                     g.nfgen_family == family_number(core::Family::kIpv6)) &&
                    a.text(NFTA_TABLE_NAME) == kTable;
  heard_ours_ = heard_ours_ ||
                (ours && !(element && a.text(NFTA_SET_ELEM_LIST_SET) == names::kAffinity));
}

}  // namespace sluice::kni::nft
