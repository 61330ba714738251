#pragma once

#include <string>
#include <utility>

#include "dataplane/core/sink.h"

namespace sluice::conf {

/// Notices that a configuration file is not any more what was read (SY-12). Thread: one.
///
/// A file that is written counts when its writer closes it, so that who reads it next reads it
/// whole. What is watched is the file that the path led to at start: a symbolic link that is turned
/// elsewhere counts when the old file goes, as the kubelet has it with a ConfigMap.
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

  int fd_;
  std::string path_;
  bool written_ = false;  ///< and not closed yet
};

}  // namespace sluice::conf
