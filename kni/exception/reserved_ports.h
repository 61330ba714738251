#pragma once

#include <cstdint>
#include <string>

#include "dataplane/core/sink.h"

namespace sluice::kni {

/// Keeps the host's own connections off the ports of source translation, when that uses the node's
/// address: adds a range to ip_local_reserved_ports (it covers IPv6 as well) while it lives. Put
/// back at the end, unless someone else changed the list meanwhile.
/// Thread: main.
class ReservedPorts {
 public:
  [[nodiscard]] static core::Result<ReservedPorts> reserve(std::uint16_t first,
                                                           std::uint16_t last);
  ~ReservedPorts();
  ReservedPorts(ReservedPorts&& other) noexcept;
  ReservedPorts& operator=(ReservedPorts&&) = delete;

 private:
  ReservedPorts(std::string before, std::string ours)
      : before_(std::move(before)), ours_(std::move(ours)) {}
  std::string before_;
  std::string ours_;  ///< as the kernel prints it; empty: nothing to put back
};

}  // namespace sluice::kni
