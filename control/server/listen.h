#pragma once

#include <sys/types.h>
#include <memory>
#include <string>

#include "dataplane/core/sink.h"

namespace sluice::server {

/// Where to listen, parsed.
struct ListenAddress {
  bool is_unix = false;
  std::string path;  ///< of the Unix socket
  std::string tcp;   ///< "127.0.0.1:50051" as gRPC takes it
};

/// "unix:/absolute/path", "127.0.0.1:port", "[::1]:port" or "localhost:port". Any other address is
/// refused: without mutual TLS nothing but the host itself may control a node.
core::Result<ListenAddress> parse_listen(const std::string& text);

/// The errno text of why a TCP address cannot be bound, or "" when it can.
std::string why_not_bindable(const ListenAddress& address);

// gRPC unlinks whatever lies at a Unix socket's path before it binds, and binds with the process's
// umask. So two daemons would take each other's socket in silence, and for a moment everybody may
// connect. UnixSocket therefore holds a lock file for as long as it lives, lets gRPC bind inside a
// directory of mode 0700, and moves the finished socket, mode 0600, to its place.

/// The place of one Unix socket. Thread: one.
class UnixSocket {
 public:
  /// Takes the lock, makes the private directory (and the parent, when its own parent exists).
  /// Errors: another daemon holds the lock or answers at the path; the path is no socket; no
  /// permission; the path is too long for a socket address.
  static core::Result<std::unique_ptr<UnixSocket>> claim(const std::string& path);
  ~UnixSocket();  ///< removes the socket if it still is ours, and the private directory
  UnixSocket(const UnixSocket&) = delete;
  UnixSocket& operator=(const UnixSocket&) = delete;

  /// "unix:..." for gRPC.
  [[nodiscard]] std::string private_address() const { return "unix:" + private_path_; }
  /// After gRPC has bound: mode 0600, moved to the path.
  core::Result<void> publish();

 private:
  explicit UnixSocket(std::string path) : path_(std::move(path)) {}
  core::Result<void> lock();
  core::Result<void> check_path() const;
  core::Result<void> make_private_directory();

  std::string path_;
  std::string private_directory_;
  std::string private_path_;
  int lock_fd_ = -1;
  bool published_ = false;
  dev_t device_ = 0;
  ino_t inode_ = 0;
};

}  // namespace sluice::server
