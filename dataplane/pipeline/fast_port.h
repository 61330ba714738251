#pragma once

#include <cstdint>

namespace sluice::pipeline {

/// What a worker's fast path needs of a port, copied when the tables change.
struct FastPort {
  std::uint64_t source_mac = 0;   ///< bytes 0-1 in the upper 16 bits: joins the destination MAC
  std::uint32_t source_tail = 0;  ///< bytes 2-5
  std::uint32_t max_frame = 0;    ///< longest frame: MTU and Ethernet header; 0: not present
  std::uint64_t own_mac = 0;      ///< as it lies at the start of a frame, low 48 bits
};

}  // namespace sluice::pipeline
