#pragma once

#include <cstdint>
#include <fstream>
#include <span>
#include <string>

#include "dataplane/core/sink.h"

namespace sluice::bench {

/// A file of Ethernet frames, for a generator that replays such a file.
/// Source: IETF draft-ietf-opsawg-pcap, sections 4 and 5.
class CaptureFile {
 public:
  explicit CaptureFile(const std::string& path);

  /// A frame of `length` bytes without FCS that begins with `start`; the rest is zero.
  void add(std::span<const std::uint8_t> start, std::uint32_t length);
  /// Errors: what was added could not be written.
  [[nodiscard]] core::Result<void> close();

 private:
  std::string path_;
  std::ofstream out_;
};

}  // namespace sluice::bench
