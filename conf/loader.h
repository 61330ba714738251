#pragma once

#include <set>
#include <string>
#include <string_view>

#include "conf/config.h"
#include "conf/section.h"

namespace sluice::conf {

/// parse() that also tells which keys the text could have had and has not ("ports.mtu"). For the
/// test that sluiced.yaml names every key.
[[nodiscard]] core::Result<Config> parse_noting_absent(std::string_view text,
                                                       const std::string& file,
                                                       std::set<std::string>& absent,
                                                       std::optional<Mode> mode = std::nullopt);

/// Fills `kind` and `target` from `device`. @return false: `device` has none of the known forms.
[[nodiscard]] bool parse_device(PortConfig& port);

/// True for "unix:/absolute/path" (at most 107 bytes of path) and "LOOPBACK:PORT".
[[nodiscard]] bool is_listen_address(std::string_view text);

/// Reads one entry of `ports`.
void read_port(Reader& reader, const YamlTree& node, const std::string& path, PortConfig& port);

/// Rules between fields: unique names, list lengths, port ranges. `top` gives lines.
void check_config(Section& top, const Config& config);

}  // namespace sluice::conf
