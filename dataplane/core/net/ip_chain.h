#pragma once

#include <cstdint>

#include "dataplane/core/net/parse.h"

namespace sluice::core {

/// Where an IPv6 header chain ends and what was met on the way.
struct Ipv6Chain {
  ParseError error = ParseError::kNone;
  std::uint8_t protocol = 0;          ///< first header that is no extension we walk
  std::uint32_t l4_offset = 0;        ///< from `data`; behind the fragment header if that ends it
  std::uint32_t fragment_offset = 0;  ///< from `data`; 0: no fragment header
  bool opaque = false;                ///< routing header with segments left: not at its destination
  bool fragment = false;              ///< a fragment header that really fragments
  bool later_fragment = false;        ///< its offset is not 0: the chain ends there
};

/// Walks the extension headers (hop-by-hop, destination options, routing, fragment) from `offset`
/// on; reads nothing at or behind `end`. Source: RFC 8200 4, RFC 5095 (routing type 0).
/// @param next_header  as the fixed header says.
[[nodiscard]] Ipv6Chain walk_ipv6_chain(const std::uint8_t* data, std::uint32_t offset,
                                        std::uint32_t end, std::uint8_t next_header) noexcept;

}  // namespace sluice::core
