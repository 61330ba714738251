#include "control/server/persist.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <array>
#include <bit>
#include <cerrno>
#include <cstring>
#include <vector>

#include "control/server/object_pages.h"
#include "proto/codec.h"

namespace sluice::server {
namespace {

constexpr std::array<char, 8> kMagic = {'S', 'L', 'U', 'I', 'C', 'E', '0', '1'};
// Versions start at unix milliseconds and grow by one: this is out of reach.
constexpr std::uint64_t kMaxVersion = std::uint64_t{1} << 62;
static_assert(std::endian::native == std::endian::little);

struct Header {
  std::array<char, 8> magic = kMagic;
  std::uint64_t version = 0;
  std::uint64_t length = 0;
  std::uint64_t checksum = 0;
};

core::Error error_of(const std::string& what, const std::string& path) {
  return {what + " " + path + ": " + std::strerror(errno)};
}

/// A file that is closed, and the checksum of what went through it.
class File {
 public:
  File(const std::string& path, int flags) : fd_(open(path.c_str(), flags | O_CLOEXEC, 0600)) {}
  ~File() {
    if (fd_ >= 0) {
      close(fd_);
    }
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  [[nodiscard]] int fd() const { return fd_; }

  bool write_all(const void* data, std::size_t size) {
    return all(::write, static_cast<const char*>(data), size);
  }
  bool read_all(void* data, std::size_t size) {
    return all(::read, static_cast<char*>(data), size);
  }

 private:
  /// read() or write(), until everything is done.
  template <class Call, class Byte>
  bool all(Call call, Byte* at, std::size_t size) {
    while (size > 0) {
      const auto n = call(fd_, at, size);
      if (n < 0 && errno == EINTR) {
        continue;
      }
      if (n <= 0) {
        return false;
      }
      at += n;
      size -= static_cast<std::size_t>(n);
    }
    return true;
  }

  int fd_;
};

bool is_set(const std::atomic<bool>* flag) { return flag != nullptr && *flag; }

/// @return false: it could not be written, or was given up.
bool write_payload(File& file, const model::ClusterState& state, Header& header,
                   const std::atomic<bool>* give_up) {
  XXH3_state_t hash;
  XXH3_64bits_reset(&hash);
  bool good = true;
  const auto append = [&](const void* data, std::size_t size) {
    XXH3_64bits_update(&hash, data, size);
    header.length += size;
    good = good && file.write_all(data, size);
  };
  for_each_page(state, {}, [&](const v1::Objects& page) {
    const auto bytes = page.SerializeAsString();
    const auto length = static_cast<std::uint32_t>(bytes.size());
    append(&length, sizeof length);
    append(bytes.data(), bytes.size());
    return good && !is_set(give_up);
  });
  header.checksum = XXH3_64bits_digest(&hash);
  return good && !is_set(give_up);
}

void flush_directory(const std::string& path) {
  const auto slash = path.rfind('/');
  const File directory(slash == path.npos ? "." : path.substr(0, slash + 1), O_RDONLY);
  if (directory.fd() >= 0) {
    fsync(directory.fd());
  }
}

bool take_pages(const std::string& payload, model::ClusterState& state) {
  std::vector<codec::FieldError> ignored;
  for (std::size_t at = 0; at < payload.size();) {
    std::uint32_t length = 0;
    if (payload.size() - at < sizeof length) {
      return false;
    }
    std::memcpy(&length, payload.data() + at, sizeof length);
    at += sizeof length;
    v1::Objects page;
    if (payload.size() - at < length ||
        !page.ParseFromArray(payload.data() + at, static_cast<int>(length))) {
      return false;
    }
    at += length;
    add_page(page, state, ignored);
    ignored.clear();
  }
  return true;
}

}  // namespace

core::Result<Saved> save_state(const std::string& path, const model::ClusterState& state,
                               const std::atomic<bool>* give_up) {
  const std::string temporary = path + ".tmp";
  {
    File file(temporary, O_WRONLY | O_CREAT | O_TRUNC);
    Header header;
    header.version = state.version;
    if (file.fd() < 0 || !file.write_all(&header, sizeof header) ||
        !write_payload(file, state, header, give_up) || lseek(file.fd(), 0, SEEK_SET) != 0 ||
        !file.write_all(&header, sizeof header) || fsync(file.fd()) != 0) {
      const auto error = error_of("cannot write", temporary);
      unlink(temporary.c_str());
      if (is_set(give_up)) {
        return Saved::kGivenUp;
      }
      return tl::unexpected(error);
    }
  }
  if (rename(temporary.c_str(), path.c_str()) != 0) {
    return tl::unexpected(error_of("cannot rename to", path));
  }
  flush_directory(path);
  return Saved::kWhole;
}

core::Result<std::optional<model::ClusterState>> load_state(const std::string& path) {
  File file(path, O_RDONLY);
  if (file.fd() < 0) {
    return errno == ENOENT ? core::Result<std::optional<model::ClusterState>>(std::nullopt)
                           : tl::unexpected(error_of("cannot open", path));
  }
  const auto damaged = [&](const char* what) {
    return tl::unexpected(core::Error{path + ": " + what + "; the kept snapshot is not used"});
  };
  struct stat info {};
  Header header;
  if (fstat(file.fd(), &info) != 0 || !file.read_all(&header, sizeof header) ||
      header.magic != kMagic) {
    return damaged("is no snapshot of this format");
  }
  if (header.length != static_cast<std::uint64_t>(info.st_size) - sizeof header) {
    return damaged("is cut");
  }
  std::string payload(header.length, '\0');
  if (!file.read_all(payload.data(), payload.size()) ||
      XXH3_64bits(payload.data(), payload.size()) != header.checksum) {
    return damaged("has a wrong checksum");
  }
  if (header.version == 0 || header.version > kMaxVersion) {
    return damaged("has an impossible version");  // versions of later changes would wrap round
  }
  model::ClusterState state;
  if (!take_pages(payload, state)) {
    return damaged("cannot be decoded");
  }
  state.version = header.version;
  return std::optional(std::move(state));
}

}  // namespace sluice::server
