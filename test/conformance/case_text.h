#pragma once

#include <set>
#include <string>

#include "dataplane/core/net/address.h"

namespace sluice::conformance {

/// As cases write it; TCP when it is neither UDP nor SCTP.
[[nodiscard]] inline core::Protocol protocol_of(const std::string& text) {
  if (text == "UDP") {
    return core::Protocol::kUdp;
  }
  return text == "SCTP" ? core::Protocol::kSctp : core::Protocol::kTcp;
}

/// "{10.1.0.1:80 10.1.0.2:80}"
[[nodiscard]] inline std::string join(const std::set<std::string>& items) {
  std::string out;
  for (const std::string& item : items) {
    out += (out.empty() ? "" : " ") + item;
  }
  return "{" + out + "}";
}

}  // namespace sluice::conformance
