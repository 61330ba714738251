// Theory of operation
//
// A message is 128 bytes on a SOCK_SEQPACKET socket, a file descriptor beside it where it brings
// memory or an event. The server begins:
//
//   server  hello                 versions and limits
//   client  init                  -> ack
//   client  add region, add ring  -> ack, for each
//   client  connect               -> connected, and both sides use the rings
//
// Whoever goes closes the socket; disconnect says why.

#include "bench/generator/memif_channel.h"

#include <cerrno>
#include <cstring>
#include <utility>

#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

namespace sluice::bench {
namespace {

constexpr std::uint16_t kVersion = 0x200;
constexpr int kPatienceSeconds = 10;
constexpr std::uint16_t kToServer = 1;  // flag of a ring in its message

enum class Type : std::uint16_t {
  kNone,
  kAck,
  kHello,
  kInit,
  kAddRegion,
  kAddRing,
  kConnect,
  kConnected,
  kDisconnect
};

struct [[gnu::packed]] Hello {
  char name[32];
  std::uint16_t min_version, max_version, max_region, max_to_client, max_to_server;
  std::uint8_t max_log2_slots;
};
struct [[gnu::packed]] Init {
  std::uint16_t version;
  std::uint32_t id;
  std::uint8_t mode;  // 0: Ethernet
  char secret[24];
  char name[32];
};
struct [[gnu::packed]] AddRegion {
  std::uint16_t index;
  std::uint64_t bytes;
};
struct [[gnu::packed]] AddRing {
  std::uint16_t flags, index, region;
  std::uint32_t offset;
  std::uint8_t log2_slots;
  std::uint16_t private_header;
};
struct [[gnu::packed]] Disconnect {
  std::uint32_t code;
  char reason[96];
};

struct Message {
  Type type = Type::kNone;
  std::array<std::uint8_t, 126> body{};

  template <class T>
  static Message of(Type type, const T& body) {
    static_assert(sizeof(T) <= sizeof(Message::body));
    Message message;
    message.type = type;
    std::memcpy(message.body.data(), &body, sizeof body);
    return message;
  }
  template <class T>
  [[nodiscard]] T as() const {
    T found;
    std::memcpy(&found, body.data(), sizeof found);
    return found;
  }
};
static_assert(sizeof(Message) == 128);

tl::unexpected<core::Error> failure(const std::string& what) {
  return tl::make_unexpected(core::Error{"memif: " + what});
}

tl::unexpected<core::Error> system_failure(const std::string& what) {
  return failure(what + ": " + std::strerror(errno));
}

core::Result<void> send(int socket, const Message& message, int file = -1) {
  Message copy = message;
  iovec part{&copy, sizeof copy};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof file)] = {};
  msghdr header = {};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  if (file >= 0) {
    header.msg_control = control;
    header.msg_controllen = sizeof control;
    cmsghdr* beside = CMSG_FIRSTHDR(&header);
    beside->cmsg_level = SOL_SOCKET;
    beside->cmsg_type = SCM_RIGHTS;
    beside->cmsg_len = CMSG_LEN(sizeof file);
    std::memcpy(CMSG_DATA(beside), &file, sizeof file);
  }
  if (::sendmsg(socket, &header, MSG_NOSIGNAL) != static_cast<ssize_t>(sizeof copy)) {
    return system_failure("sending");
  }
  return {};
}

struct Received {
  Message message;
  int file = -1;
};

void close_file(int file) {
  if (file >= 0) {
    ::close(file);
  }
}

core::Result<Received> receive(int socket) {
  Received found;
  iovec part{&found.message, sizeof found.message};
  alignas(cmsghdr) char control[256];
  msghdr header = {};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  header.msg_control = control;
  header.msg_controllen = sizeof control;
  const ssize_t got = ::recvmsg(socket, &header, MSG_CMSG_CLOEXEC);
  if (got != static_cast<ssize_t>(sizeof found.message)) {
    return got < 0 ? system_failure("no answer") : failure("the peer has gone");
  }
  for (cmsghdr* c = CMSG_FIRSTHDR(&header); c != nullptr; c = CMSG_NXTHDR(&header, c)) {
    if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS) {
      std::memcpy(&found.file, CMSG_DATA(c), sizeof found.file);
    }
  }
  if (found.message.type == Type::kDisconnect) {
    close_file(found.file);
    auto told = found.message.as<Disconnect>();
    told.reason[sizeof told.reason - 1] = '\0';
    return failure(std::string("refused: ") + told.reason);
  }
  return found;
}

core::Result<Message> expect(int socket, Type type) {
  auto found = receive(socket);
  if (!found) {
    return tl::make_unexpected(found.error());
  }
  close_file(found->file);  // none belongs here
  if (found->message.type != type) {
    return failure("message " + std::to_string(static_cast<int>(found->message.type)) +
                   " instead of " + std::to_string(static_cast<int>(type)));
  }
  return found->message;
}

/// Sends a message and waits for its answer.
core::Result<void> ask(int socket, const Message& message, int file = -1,
                       Type answer = Type::kAck) {
  if (auto sent = send(socket, message, file); !sent) {
    return sent;
  }
  if (auto heard = expect(socket, answer); !heard) {
    return tl::make_unexpected(heard.error());
  }
  return {};
}

core::Result<sockaddr_un> address_of(const std::string& path) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) {
    return failure("path too long: " + path);
  }
  std::memcpy(address.sun_path, path.data(), path.size());
  return address;
}

Message ring_message(const MemifRing& ring, std::uint16_t flags) {
  return Message::of(Type::kAddRing,
                     AddRing{flags, 0, ring.region, ring.offset, ring.log2_slots, 0});
}

core::Result<void> map(MemifLayout& layout, const AddRegion& told, int file) {
  if (told.index != layout.regions.size() || file < 0) {
    return failure("regions out of order");
  }
  void* base = ::mmap(nullptr, told.bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (base == MAP_FAILED) {
    return system_failure("mapping the peer's memory");
  }
  layout.regions.push_back({static_cast<std::uint8_t*>(base), told.bytes, file});
  return {};
}

/// What a client tells before it connects. The file is the layout's then, or closed.
core::Result<void> take(MemifLayout& layout, const Received& told) {
  const Message& message = told.message;
  core::Result<void> done;
  if (message.type == Type::kAddRing) {
    const auto ring = message.as<AddRing>();
    MemifRing& own = (ring.flags & kToServer) != 0 ? layout.to_server : layout.to_client;
    close_file(own.event);  // of a ring that is named twice
    own = {ring.region, ring.offset, ring.log2_slots, told.file};
    return done;
  }
  if (message.type == Type::kAddRegion) {
    done = map(layout, message.as<AddRegion>(), told.file);
  } else if (message.type != Type::kInit) {
    done = failure("an unknown message");
  }
  if (!done || message.type == Type::kInit) {
    close_file(told.file);
  }
  return done;
}

}  // namespace

MemifChannel::MemifChannel(int socket) : socket_(socket) {
  const timeval patience{kPatienceSeconds, 0};
  ::setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
}

MemifChannel::~MemifChannel() {
  if (socket_ >= 0) {
    ::close(socket_);
  }
}

MemifChannel::MemifChannel(MemifChannel&& other) noexcept
    : socket_(std::exchange(other.socket_, -1)) {}

MemifChannel& MemifChannel::operator=(MemifChannel&& other) noexcept {
  std::swap(socket_, other.socket_);
  return *this;
}

core::Result<MemifChannel> MemifChannel::connect(const std::string& path) {
  auto address = address_of(path);
  if (!address) {
    return tl::make_unexpected(address.error());
  }
  MemifChannel channel(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  if (::connect(channel.socket_, reinterpret_cast<const sockaddr*>(&*address), sizeof *address) !=
      0) {
    return system_failure(path);
  }
  return channel;
}

core::Result<MemifChannel> MemifChannel::listen(const std::string& path) {
  auto address = address_of(path);
  if (!address) {
    return tl::make_unexpected(address.error());
  }
  MemifChannel channel(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  if (::bind(channel.socket_, reinterpret_cast<const sockaddr*>(&*address), sizeof *address) != 0 ||
      ::listen(channel.socket_, 1) != 0) {
    return system_failure(path);
  }
  return channel;
}

bool MemifChannel::has_client() const noexcept {
  pollfd state{socket_, POLLIN, 0};
  return ::poll(&state, 1, 0) == 1;
}

core::Result<MemifChannel> MemifChannel::accept() const {
  const int socket = ::accept4(socket_, nullptr, nullptr, SOCK_CLOEXEC);
  if (socket < 0) {
    return system_failure("accept");
  }
  return MemifChannel(socket);
}

core::Result<void> MemifChannel::offer(const MemifLayout& layout) const {
  auto hello = expect(socket_, Type::kHello);
  if (!hello) {
    return tl::make_unexpected(hello.error());
  }
  const auto limits = hello->as<Hello>();
  if (limits.min_version > kVersion || limits.max_version < kVersion ||
      limits.max_log2_slots < layout.to_server.log2_slots) {
    return failure("the server speaks another version or has no rings of that size");
  }
  auto done = ask(socket_, Message::of(Type::kInit, Init{kVersion, 0, 0, {}, "generator"}));
  for (std::size_t i = 0; done && i < layout.regions.size(); ++i) {
    done = ask(socket_,
               Message::of(Type::kAddRegion,
                           AddRegion{static_cast<std::uint16_t>(i), layout.regions[i].bytes}),
               layout.regions[i].file);
  }
  done =
      done ? ask(socket_, ring_message(layout.to_server, kToServer), layout.to_server.event) : done;
  done = done ? ask(socket_, ring_message(layout.to_client, 0), layout.to_client.event) : done;
  constexpr std::array<char, 32> kName = {'g', 'e', 'n'};
  return done ? ask(socket_, Message::of(Type::kConnect, kName), -1, Type::kConnected) : done;
}

core::Result<void> MemifChannel::learn(MemifLayout& layout) const {
  const Message ack = Message::of(Type::kAck, std::uint8_t{0});
  auto done = send(
      socket_, Message::of(Type::kHello, Hello{"generator", kVersion, kVersion, 255, 0, 0, 14}));
  while (done) {
    auto found = receive(socket_);
    if (!found) {
      return tl::make_unexpected(found.error());
    }
    if (found->message.type == Type::kConnect) {
      close_file(found->file);
      break;
    }
    done = take(layout, *found);
    done = done ? send(socket_, ack) : done;
  }
  const bool complete = layout.to_server.event >= 0 && layout.to_client.event >= 0 &&
                        layout.to_server.region < layout.regions.size() &&
                        layout.to_client.region < layout.regions.size();
  return !done || complete ? done : failure("a ring is missing");
}

core::Result<void> MemifChannel::connected() const {
  constexpr std::array<char, 32> kName = {'g', 'e', 'n'};
  return send(socket_, Message::of(Type::kConnected, kName));
}

}  // namespace sluice::bench
