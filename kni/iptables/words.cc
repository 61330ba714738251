#include "kni/iptables/words.h"

#include <array>
#include <cstdio>

#include "dataplane/core/fwd/text.h"

namespace sluice::kni::ipt {

std::string safe_name(std::string_view name) {
  constexpr std::size_t kMost = 200;  // a comment has 255 bytes in the kernel
  return core::safe_name(name, kMost);
}

std::string comment(std::string_view text, bool wanted) {
  if (!wanted) {
    return {};
  }
  const bool quoted = text.find(' ') != std::string_view::npos;
  std::string out = "-m comment --comment ";
  out += quoted ? "\"" : "";
  out += text;
  out += quoted ? "\" " : " ";
  return out;
}

std::string protocol_match(core::Protocol protocol) {
  const std::string name(core::protocol_name(protocol));
  return "-m " + name + " -p " + name + " ";
}

std::string frontend_match(core::Protocol protocol, const core::IpAddress& address,
                           std::uint16_t port) {
  return protocol_match(protocol) + "-d " + core::to_string(address) + " --dport " +
         std::to_string(port) + " ";
}

std::string pod_local_match(const core::LocalDetector& detector, bool negate) {
  using Kind = core::LocalDetector::Kind;
  const std::string no = negate ? "! " : "";
  switch (detector.kind) {
    case Kind::kNone:
      break;
    case Kind::kCidr:
      return no + "-s " + core::to_string(detector.cidr) + " ";
    case Kind::kBridge:
      return no + "-i " + detector.interface + " ";
    case Kind::kInterfacePrefix:
      return no + "-i " + detector.interface + "+ ";
  }
  return {};
}

std::string mark_text(std::uint32_t bit) {
  std::array<char, 16> out{};
  std::snprintf(out.data(), out.size(), "0x%x", bit);
  return out.data();
}

bool owns(const core::ForwardingTable& table, core::ServiceSlot slot, const core::FrontendKey& key,
          core::FrontendKind kind) {
  const auto found = table.find_frontend(key);
  return found && found->slot == slot && found->kind == kind;
}

}  // namespace sluice::kni::ipt
