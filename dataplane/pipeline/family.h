#pragma once

#include "dataplane/core/net/flow_key.h"

namespace sluice::pipeline {

/// A key as the control side and decide() see it.
template <class Key>
[[nodiscard]] core::FlowTuple tuple_of(const Key& key) noexcept {
  return {core::IpAddress(key.src), core::IpAddress(key.dst), key.sport.host(), key.dport.host(),
          static_cast<core::Protocol>(key.proto)};
}

/// Precondition: `address` is of family F.
template <class F>
[[nodiscard]] typename F::Address address_as(const core::IpAddress& address) noexcept {
  if constexpr (F::kFamily == core::Family::kIpv4) {
    return address.v4();
  } else {
    return address.v6();
  }
}

}  // namespace sluice::pipeline
