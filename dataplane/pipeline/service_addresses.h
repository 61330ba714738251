#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "dataplane/core/fwd/forwarding_table.h"
#include "dataplane/core/net/flow_key.h"

namespace sluice::pipeline {

/// Destinations that lead to a Service that takes anybody, under the present table, as they were
/// found. A flood goes to few of them, and asking the table takes as long as all else that is done
/// with a frame of it. One place each of 4,096: the last one stays. Thread: the worker's.
class ServiceAddresses {
 public:
  using Word = std::uint64_t;  ///< names a destination; never 0

  /// Address, port and protocol themselves.
  [[nodiscard]] static Word word_of(const core::FlowKey4& key) noexcept {
    return Word{key.dst.host()} << 32 | Word{key.dport.host()} << 16 | Word{key.proto} << 8 | 1;
  }
  /// Their hash, of 63 bits: who finds another destination with the same one loses his own SYNs.
  [[nodiscard]] static Word word_of(const core::FlowKey6& key) noexcept {
    core::FrontendKey to;
    to.address = core::IpAddress(key.dst);
    to.port = key.dport.host();
    to.protocol = static_cast<core::Protocol>(key.proto);
    return to.hash() | 1;
  }

  [[nodiscard]] bool has(Word word) const noexcept { return cells_[place_of(word)] == word; }
  void keep(Word word) noexcept {
    cells_[place_of(word)] = word;
    empty_ = false;
  }
  /// With every table.
  void clear() noexcept {
    if (!empty_) {
      cells_.fill(0);
      empty_ = true;
    }
  }

 private:
  static constexpr unsigned kBits = 12;
  [[nodiscard]] static std::size_t place_of(Word word) noexcept {
    return static_cast<std::size_t>(word * 0x9e3779b97f4a7c15ULL >> (64 - kBits));
  }
  std::array<Word, std::size_t{1} << kBits> cells_{};
  bool empty_ = true;
};

}  // namespace sluice::pipeline
