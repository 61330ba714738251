#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "dataplane/core/sink.h"

struct pcap;
struct pcap_dumper;

namespace sluice::bench {

/// A file of Ethernet frames, written by libpcap, for a generator that replays such a file.
class CaptureFile {
 public:
  explicit CaptureFile(const std::string& path);
  ~CaptureFile();
  CaptureFile(const CaptureFile&) = delete;
  CaptureFile& operator=(const CaptureFile&) = delete;

  /// A frame of `length` bytes without FCS that begins with `start`; the rest is zero.
  void add(std::span<const std::uint8_t> start, std::uint32_t length);
  /// Errors: the file could not be opened, or what was added not written.
  [[nodiscard]] core::Result<void> close();

 private:
  std::string path_;
  std::string error_;
  pcap* format_ = nullptr;
  pcap_dumper* out_ = nullptr;  ///< null: not open
  std::vector<std::uint8_t> frame_;
};

}  // namespace sluice::bench
