#include "conf/file_watch.h"

#include <sys/inotify.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <system_error>

namespace sluice::conf {
namespace {

constexpr std::uint32_t kGone = IN_MOVE_SELF | IN_DELETE_SELF;
constexpr std::uint32_t kWatched = IN_MODIFY | IN_CLOSE_WRITE | kGone;

core::Error failure(const std::string& path) {
  return {path + ": cannot be watched: " + std::generic_category().message(errno)};
}

}  // namespace

core::Result<FileWatch> FileWatch::start(const std::string& path) {
  FileWatch watch(inotify_init1(IN_NONBLOCK | IN_CLOEXEC), path);
  if (watch.fd_ < 0 || inotify_add_watch(watch.fd_, path.c_str(), kWatched) < 0) {
    return tl::make_unexpected(failure(path));
  }
  return watch;
}

FileWatch::FileWatch(FileWatch&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)),
      path_(std::move(other.path_)),
      written_(other.written_) {}

FileWatch::~FileWatch() {
  if (fd_ >= 0) {
    close(fd_);
  }
}

std::string FileWatch::changed() {
  // Events of a watched file have no name, so each is one struct.
  std::array<inotify_event, 16> events;
  for (ssize_t n = 0; (n = read(fd_, events.data(), sizeof(events))) > 0;) {
    for (std::size_t i = 0; i < static_cast<std::size_t>(n) / sizeof(inotify_event); ++i) {
      const std::uint32_t what = events[i].mask;
      if ((what & kGone) != 0) {
        return path_ + ": it was renamed, replaced or removed";
      }
      written_ = written_ || (what & IN_MODIFY) != 0;
      if (written_ && (what & IN_CLOSE_WRITE) != 0) {
        return path_ + ": it was written";
      }
    }
  }
  return {};
}

}  // namespace sluice::conf
