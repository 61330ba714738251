#include "bench/generator/capture_file.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <vector>

namespace sluice::bench {
namespace {

struct FileHeader {
  std::uint32_t magic = 0xa1b2c3d4;
  std::uint16_t major = 2;
  std::uint16_t minor = 4;
  std::uint32_t reserved[2] = {};
  std::uint32_t longest = 65535;
  std::uint32_t link_type = 1;  // Ethernet
};

struct FrameHeader {
  std::uint32_t time[2] = {};
  std::uint32_t captured;
  std::uint32_t length;
};

template <class T>
void put(std::ofstream& out, const T& value) {
  out.write(reinterpret_cast<const char*>(&value), sizeof(value));
}

}  // namespace

CaptureFile::CaptureFile(const std::string& path) : path_(path), out_(path, std::ios::binary) {
  put(out_, FileHeader{});
}

void CaptureFile::add(std::span<const std::uint8_t> start, std::uint32_t length) {
  std::vector<std::uint8_t> frame(length);
  std::copy_n(start.begin(), std::min<std::size_t>(start.size(), length), frame.begin());
  put(out_, FrameHeader{{}, length, length});
  out_.write(reinterpret_cast<const char*>(frame.data()), length);
}

core::Result<void> CaptureFile::close() {
  out_.close();
  if (!out_) {
    return tl::make_unexpected(core::Error{path_ + " cannot be written: " + std::strerror(errno)});
  }
  return {};
}

}  // namespace sluice::bench
