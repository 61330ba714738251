#include "bench/generator/capture_file.h"

#include <algorithm>
#include <cstdio>
#include <utility>

#include <pcap/pcap.h>

namespace sluice::bench {
namespace {

constexpr int kLongest = 65535;

}  // namespace

CaptureFile::CaptureFile(const std::string& path)
    : path_(path), format_(pcap_open_dead(DLT_EN10MB, kLongest)) {
  out_ = format_ == nullptr ? nullptr : pcap_dump_open(format_, path.c_str());
  if (out_ == nullptr) {
    error_ = format_ == nullptr ? "too little memory" : pcap_geterr(format_);
  }
}

CaptureFile::~CaptureFile() {
  if (out_ != nullptr) {
    pcap_dump_close(out_);
  }
  if (format_ != nullptr) {
    pcap_close(format_);
  }
}

void CaptureFile::add(std::span<const std::uint8_t> start, std::uint32_t length) {
  if (out_ == nullptr) {
    return;
  }
  frame_.assign(length, 0);
  std::copy_n(start.begin(), std::min<std::size_t>(start.size(), length), frame_.begin());
  const pcap_pkthdr header{{}, length, length};
  pcap_dump(reinterpret_cast<u_char*>(out_), &header, frame_.data());
}

core::Result<void> CaptureFile::close() {
  if (out_ == nullptr) {
    return tl::make_unexpected(core::Error{path_ + " cannot be written: " + error_});
  }
  // pcap_dump() tells of no error: the stream remembers it.
  const bool good = pcap_dump_flush(out_) == 0 && std::ferror(pcap_dump_file(out_)) == 0;
  pcap_dump_close(std::exchange(out_, nullptr));
  if (!good) {
    return tl::make_unexpected(core::Error{path_ + " cannot be written"});
  }
  return {};
}

}  // namespace sluice::bench
