#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "dataplane/core/sink.h"

namespace sluice::conf {

/// Notices that a configuration file is not any more what was read (SY-12). Thread: one.
///
/// A file that is written counts when its writer closes it, and a change is told when nothing more
/// has happened from one call to the next, so that who reads the file next reads it whole. Also
/// told is that the path leads to another file: a rename over it, of which the kernel says nothing
/// while anybody has the old one open, or a symbolic link that is turned elsewhere, as the kubelet
/// has it with a ConfigMap. Only regular files are watched: a pipe is read once.
class FileWatch {
 public:
  /// Starts before the file is read, so that no change is missed. Errors: one line; the path leads
  /// to no file, or the kernel has no more watches.
  [[nodiscard]] static core::Result<FileWatch> start(const std::string& path);

  FileWatch(FileWatch&& other) noexcept;
  FileWatch& operator=(FileWatch&& other) = delete;
  ~FileWatch();

  /// Does not wait. @return a line that says what has happened; empty: nothing yet.
  [[nodiscard]] std::string changed();

 private:
  FileWatch(int fd, std::string path) : fd_(fd), path_(std::move(path)) {}
  [[nodiscard]] bool see_events();
  [[nodiscard]] bool see_path();

  int fd_;  ///< -1: nothing to watch
  std::string path_;
  std::pair<std::uint64_t, std::uint64_t> file_{};  ///< device and inode the path led to
  bool written_ = false;                            ///< and not closed yet
  std::string what_;                                ///< has happened; empty: nothing
};

}  // namespace sluice::conf
