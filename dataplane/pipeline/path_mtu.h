#pragma once

#include <array>
#include <cstdint>

#include "dataplane/core/conn/states.h"
#include "dataplane/core/net/address.h"
#include "dataplane/core/net/headers.h"

namespace sluice::pipeline {

/// What a router said about the path to a backend; also how one worker tells the others.
struct PathMtu {
  core::IpAddress to;
  std::uint16_t mtu = 0;
};

/// Path MTUs that ICMP errors about tunnels taught. An entry is believed for 10 minutes (RFC 1191
/// 6.3), then the path is tried anew. Of 256 places an address may take 4; the oldest gives way.
/// Thread: the worker's.
class PathMtus {
 public:
  static constexpr core::Tick kLifetime = core::ticks_of_ms(600'000);

  void learn(const PathMtu& path, core::Tick now) noexcept {
    Cell* oldest = nullptr;
    for (std::size_t n = 0; n < kWays; ++n) {
      Cell& cell = cells_[(place_of(path.to) + n) % kCells];
      if (cell.path.mtu == 0 || cell.path.to == path.to) {
        oldest = &cell;
        break;
      }
      oldest = oldest == nullptr || now - cell.at > now - oldest->at ? &cell : oldest;
    }
    *oldest = {path, now};
    any_ = true;
  }

  /// @return at most `link`, what the link itself carries.
  [[nodiscard]] std::uint16_t find(const core::IpAddress& to, std::uint16_t link,
                                   core::Tick now) noexcept {
    return any_ ? find_known(to, link, now) : link;
  }

  /// False: no path was ever learned.
  [[nodiscard]] bool any() const noexcept { return any_; }

 private:
  static constexpr std::size_t kCells = 256;
  static constexpr std::size_t kWays = 4;
  struct Cell {
    PathMtu path;  ///< mtu 0: empty
    core::Tick at = 0;
  };
  [[nodiscard]] static std::size_t place_of(const core::IpAddress& to) noexcept {
    std::uint64_t h = 0;
    for (std::size_t n = 0; n < 16; n += 4) {
      h = h * 0x9e3779b97f4a7c15ULL + core::load_raw32(to.data() + n);
    }
    return static_cast<std::size_t>(h >> 40);
  }
  [[nodiscard]] std::uint16_t find_known(const core::IpAddress& to, std::uint16_t link,
                                         core::Tick now) noexcept {
    for (std::size_t n = 0; n < kWays; ++n) {
      Cell& cell = cells_[(place_of(to) + n) % kCells];
      if (cell.path.mtu != 0 && cell.path.to == to) {
        if (now - cell.at >= kLifetime) {
          cell = {};
          return link;
        }
        return cell.path.mtu < link ? cell.path.mtu : link;
      }
    }
    return link;
  }
  std::array<Cell, kCells> cells_{};
  bool any_ = false;  ///< nothing was ever learned: no look
};

}  // namespace sluice::pipeline
