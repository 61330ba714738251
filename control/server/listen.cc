#include "control/server/listen.h"

#include <fcntl.h>
#include <netdb.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>

#include "dataplane/core/net/address.h"

namespace sluice::server {
namespace {

constexpr std::size_t kMaxSocketPath = sizeof(sockaddr_un::sun_path) - 1;

tl::unexpected<core::Error> fail(std::string message) {
  return tl::unexpected(core::Error{std::move(message)});
}

tl::unexpected<core::Error> fail_errno(const std::string& what) {
  return fail(what + ": " + std::strerror(errno));
}

std::string parent_of(const std::string& path) {
  const auto slash = path.rfind('/');
  return slash == 0 ? "/" : path.substr(0, slash);
}

bool is_loopback(const std::string& host) {
  if (host == "localhost") {
    return true;
  }
  const auto address = core::parse_address(host);
  return address && address->is_loopback();
}

/// Whether somebody answers at a Unix socket.
bool answers(const std::string& path) {
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.data(), std::min(path.size(), kMaxSocketPath));
  const bool connected =
      connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 ||
      errno == EAGAIN;
  close(fd);
  return connected;
}

}  // namespace

core::Result<ListenAddress> parse_listen(const std::string& text) {
  if (text.starts_with("unix:")) {
    ListenAddress address{true, text.substr(5), ""};
    if (address.path.starts_with("//")) {
      address.path.erase(0, 2);  // unix:///path, as gRPC also writes it
    }
    if (!address.path.starts_with('/') || address.path.ends_with('/')) {
      return fail("listen " + text + ": expected unix:/absolute/path");
    }
    return address;
  }
  const auto colon = text.rfind(':');
  std::string host = text.substr(0, colon == text.npos ? 0 : colon);
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') {
    host = host.substr(1, host.size() - 2);
  } else if (host.find(':') != host.npos) {
    return fail("listen " + text + ": write an IPv6 address as [::1]:port");
  }
  unsigned port = 0;
  const char* end = text.data() + text.size();
  const char* begin = colon == text.npos ? end : text.data() + colon + 1;
  if (host.empty() || begin == end || std::from_chars(begin, end, port).ptr != end ||
      port > 65535) {
    return fail("listen " + text + ": expected unix:/path, 127.0.0.1:port or [::1]:port");
  }
  if (!is_loopback(host)) {
    return fail("listen " + text + ": only a Unix socket or a loopback address is allowed");
  }
  return ListenAddress{false, "", text};
}

std::string why_not_bindable(const ListenAddress& address) {
  const auto colon = address.tcp.rfind(':');
  std::string host = address.tcp.substr(0, colon);
  if (host.front() == '[') {
    host = host.substr(1, host.size() - 2);
  }
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE;
  addrinfo* found = nullptr;
  if (const int error = getaddrinfo(host.c_str(), address.tcp.c_str() + colon + 1, &hints, &found);
      error != 0) {
    return gai_strerror(error);
  }
  const int fd = socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const int one = 1;
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
  const bool bound = bind(fd, found->ai_addr, found->ai_addrlen) == 0 && ::listen(fd, 1) == 0;
  const std::string why = bound ? "" : std::strerror(errno);
  close(fd);
  freeaddrinfo(found);
  return why;
}

core::Result<std::unique_ptr<UnixSocket>> UnixSocket::claim(const std::string& path) {
  std::unique_ptr<UnixSocket> socket(new UnixSocket(path));
  if (auto locked = socket->lock(); !locked) {
    return tl::unexpected(locked.error());
  }
  if (auto good = socket->check_path(); !good) {
    return tl::unexpected(good.error());
  }
  if (auto made = socket->make_private_directory(); !made) {
    return tl::unexpected(made.error());
  }
  return socket;
}

core::Result<void> UnixSocket::lock() {
  const std::string parent = parent_of(path_);
  if (mkdir(parent.c_str(), 0755) != 0 && errno != EEXIST) {
    return fail_errno("cannot make " + parent);
  }
  const std::string lock_path = path_ + ".lock";
  lock_fd_ = open(lock_path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (lock_fd_ < 0) {
    return fail_errno("cannot open " + lock_path);
  }
  if (flock(lock_fd_, LOCK_EX | LOCK_NB) != 0) {
    char pid[32] = {};
    const auto length = pread(lock_fd_, pid, sizeof pid - 1, 0);
    const std::string who(pid, length > 0 ? static_cast<std::size_t>(length) : 0);
    return fail("unix:" + path_ + " is served by another daemon" +
                (who.empty() ? "" : " (pid " + who + ")"));
  }
  const std::string pid = std::to_string(getpid());
  if (ftruncate(lock_fd_, 0) != 0 || pwrite(lock_fd_, pid.data(), pid.size(), 0) < 0) {
    return fail_errno("cannot write " + lock_path);
  }
  return {};
}

core::Result<void> UnixSocket::check_path() const {
  struct stat info {};
  if (lstat(path_.c_str(), &info) != 0) {
    return errno == ENOENT ? core::Result<void>{} : fail_errno("cannot look at " + path_);
  }
  if (!S_ISSOCK(info.st_mode)) {
    return fail(path_ + " exists and is no socket");
  }
  if (answers(path_)) {
    return fail("unix:" + path_ + " is served by another process");
  }
  return {};
}

core::Result<void> UnixSocket::make_private_directory() {
  std::string name = parent_of(path_) + "/.slc-XXXXXX";
  if (name.size() + 2 > kMaxSocketPath || path_.size() > kMaxSocketPath) {
    return fail("unix:" + path_ + ": the path is too long for a socket (" +
                std::to_string(kMaxSocketPath) + " characters, 14 of them are needed for a while)");
  }
  if (mkdtemp(name.data()) == nullptr) {  // mode 0700
    return fail_errno("cannot make a directory in " + parent_of(path_));
  }
  private_directory_ = name;
  private_path_ = name + "/s";
  return {};
}

core::Result<void> UnixSocket::publish() {
  struct stat info {};
  if (chmod(private_path_.c_str(), 0600) != 0 || lstat(private_path_.c_str(), &info) != 0 ||
      rename(private_path_.c_str(), path_.c_str()) != 0) {
    return fail_errno("cannot put the socket to " + path_);
  }
  published_ = true;
  device_ = info.st_dev;
  inode_ = info.st_ino;
  rmdir(private_directory_.c_str());
  return {};
}

UnixSocket::~UnixSocket() {
  struct stat info {};
  if (published_ && lstat(path_.c_str(), &info) == 0 && info.st_dev == device_ &&
      info.st_ino == inode_) {
    unlink(path_.c_str());
  }
  if (!published_ && !private_directory_.empty()) {
    unlink(private_path_.c_str());
    rmdir(private_directory_.c_str());
  }
  if (lock_fd_ >= 0) {
    close(lock_fd_);  // the file stays: removing it would let two processes hold two locks
  }
}

}  // namespace sluice::server
