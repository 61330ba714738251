#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "dataplane/core/sink.h"

namespace sluice::conf {

/// One node of a parsed YAML document, with the line it starts at.
struct YamlTree {
  enum class Kind { kNull, kScalar, kList, kMap };
  Kind kind = Kind::kNull;
  std::size_t line = 0;  ///< 1-based
  bool quoted = false;   ///< of a scalar: written in quotes
  std::string scalar;
  std::vector<YamlTree> items;         ///< of a list; of a map: the values, in the order of `keys`
  std::vector<std::string> keys;       ///< of a map; no duplicates
  std::vector<std::size_t> key_lines;  ///< of a map, 1-based
};

/// Parses exactly one document whose top is a map. Refused, because in a configuration file they
/// hide mistakes or cost unbounded memory: a second document, duplicate keys, keys that are not
/// plain words, anchors and aliases, tags, tabs before the text of a line, a byte order mark, NUL
/// bytes, more than 256 KiB, more than 16 levels, an empty file.
/// Errors: one line, "FILE:LINE: what". Never throws.
[[nodiscard]] core::Result<YamlTree> parse_yaml(std::string_view text, const std::string& file);

}  // namespace sluice::conf
