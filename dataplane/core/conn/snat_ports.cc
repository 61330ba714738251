#include "dataplane/core/conn/snat_ports.h"

#include <bit>

namespace sluice::core {

std::size_t PortSet::size() const noexcept {
  std::size_t n = 0;
  for (const std::uint64_t word : bits_) {
    n += static_cast<std::size_t>(std::popcount(word));
  }
  return n;
}

PortOwners::PortOwners() noexcept = default;

PortOwners::PortOwners(std::uint16_t first, std::uint16_t last, unsigned workers)
    : first_(first), last_(last) {
  const auto blocks = [this] {
    return (unsigned{last_} >> block_shift_) - (unsigned{first_} >> block_shift_) + 1;
  };
  while (block_shift_ > 0 && blocks() < workers) {
    --block_shift_;
  }
  block_owner_.assign((unsigned{last_} >> block_shift_) + 1, kNoOwner);
  unsigned worker = 0;
  for (std::size_t b = first_ >> block_shift_; b < block_owner_.size(); ++b) {
    block_owner_[b] = static_cast<std::uint8_t>(worker);
    worker = (worker + 1) % workers;
  }
}

std::vector<std::uint16_t> PortOwners::ports_of(unsigned worker) const {
  std::vector<std::uint16_t> ports;
  for (unsigned port = first_; port <= last_; ++port) {
    if (owner(static_cast<std::uint16_t>(port)) == worker) {
      ports.push_back(static_cast<std::uint16_t>(port));
    }
  }
  return ports;
}

}  // namespace sluice::core
