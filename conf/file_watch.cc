#include "conf/file_watch.h"

#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <system_error>

namespace sluice::conf {
namespace {

constexpr std::uint32_t kGone = IN_MOVE_SELF | IN_DELETE_SELF;
constexpr std::uint32_t kWatched = IN_MODIFY | IN_CLOSE_WRITE | kGone;
constexpr const char* kReplaced = "it was renamed, replaced or removed";

core::Error failure(const std::string& path) {
  return {path + ": cannot be watched: " + std::generic_category().message(errno)};
}

}  // namespace

core::Result<FileWatch> FileWatch::start(const std::string& path) {
  struct stat file {};
  if (stat(path.c_str(), &file) != 0) {
    return tl::make_unexpected(failure(path));
  }
  FileWatch watch(-1, path);
  if (!S_ISREG(file.st_mode)) {
    return watch;
  }
  watch.fd_ = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
  if (watch.fd_ < 0 || inotify_add_watch(watch.fd_, path.c_str(), kWatched) < 0) {
    return tl::make_unexpected(failure(path));
  }
  watch.file_ = {file.st_dev, file.st_ino};
  return watch;
}

FileWatch::FileWatch(FileWatch&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)),
      path_(std::move(other.path_)),
      file_(other.file_),
      written_(other.written_),
      what_(std::move(other.what_)) {}

FileWatch::~FileWatch() {
  if (fd_ >= 0) {
    close(fd_);
  }
}

std::string FileWatch::changed() {
  if (fd_ < 0) {
    return {};
  }
  const bool events = see_events();
  const bool goes_on = see_path() || events;
  return goes_on || what_.empty() ? std::string() : path_ + ": " + what_;
}

/// @return true: somebody is at the file.
bool FileWatch::see_events() {
  // Events of a watched file have no name, so each is one struct.
  std::array<inotify_event, 16> events;
  bool any = false;
  for (ssize_t n = 0; (n = read(fd_, events.data(), sizeof(events))) > 0;) {
    for (std::size_t i = 0; i < static_cast<std::size_t>(n) / sizeof(inotify_event); ++i) {
      const std::uint32_t what = events[i].mask;
      written_ = written_ || (what & IN_MODIFY) != 0;
      any = any || written_ || (what & kGone) != 0;
      if ((what & kGone) != 0) {
        what_ = kReplaced;
      } else if (written_ && (what & IN_CLOSE_WRITE) != 0) {
        what_ = "it was written";
      }
    }
  }
  return any;
}

/// @return true: the path leads elsewhere than at the last look.
bool FileWatch::see_path() {
  struct stat file {};
  std::pair<std::uint64_t, std::uint64_t> now{};
  if (stat(path_.c_str(), &file) == 0) {
    now = {file.st_dev, file.st_ino};
  }
  if (now == file_) {
    return false;
  }
  file_ = now;
  what_ = kReplaced;
  return true;
}

}  // namespace sluice::conf
