#include "control/server/flow_question.h"

#include <algorithm>
#include <array>
#include <string_view>

namespace sluice::server {
namespace {

constexpr std::size_t kMaxInterfaceName = 15;  // IFNAMSIZ - 1
constexpr std::size_t kMaxQuoted = 64;         // longer than any address or interface name

bool printable(char c) {
  return c >= ' ' && c <= '~';
}

/// The text in quotes, on one line and not endless.
std::string quoted(const std::string& text) {
  std::string out = text.substr(0, kMaxQuoted);
  std::replace_if(
      out.begin(), out.end(), [](char c) { return !printable(c); }, '?');
  return "\"" + out + (text.size() > kMaxQuoted ? "...\"" : "\"");
}

tl::unexpected<core::Error> wrong(const std::string& what) {
  return tl::make_unexpected(core::Error{what});
}

std::optional<core::Protocol> protocol_named(const std::string& text) {
  constexpr std::array kAll = {core::Protocol::kTcp, core::Protocol::kUdp, core::Protocol::kSctp};
  const auto at = std::find_if(kAll.begin(), kAll.end(),
                               [&](core::Protocol p) { return core::protocol_name(p) == text; });
  return at == kAll.end() ? std::nullopt : std::optional(*at);
}

bool is_interface_name(const std::string& text) {
  return text.size() <= kMaxInterfaceName && std::all_of(text.begin(), text.end(), [](char c) {
           return printable(c) && c != ' ' && c != '/';
         });
}

}  // namespace

core::Result<FlowQuestion> read_question(const v1::ExplainRequest& request) {
  const auto from = core::parse_address(request.from());
  if (!from) {
    return wrong("from: " + quoted(request.from()) + " is no IP address");
  }
  const auto to = core::parse_address(request.to());
  if (!to) {
    return wrong("to: " + quoted(request.to()) + " is no IP address");
  }
  if (from->family() != to->family()) {
    return wrong("from and to are of different families: " + core::to_string(*from) + " and " +
                 core::to_string(*to));
  }
  if (request.from_port() > 65535) {
    return wrong("from: port " + std::to_string(request.from_port()) + " is not in 1 to 65535");
  }
  if (request.to_port() == 0 || request.to_port() > 65535) {
    return wrong("to: port " + std::to_string(request.to_port()) + " is not in 1 to 65535");
  }
  const auto protocol = protocol_named(request.protocol());
  if (!protocol) {
    return wrong("protocol: " + quoted(request.protocol()) + " is not one of tcp, udp, sctp");
  }
  if (!is_interface_name(request.interface())) {
    return wrong("interface: " + quoted(request.interface()) + " is no interface name");
  }
  if (request.from_host() && !request.interface().empty()) {
    return wrong("interface: what a process of the host sends arrives by none");
  }
  return FlowQuestion{{*from, *to, static_cast<std::uint16_t>(request.from_port()),
                       static_cast<std::uint16_t>(request.to_port()), *protocol},
                      request.interface(),
                      request.from_host()};
}

std::string ingress_of(const FlowQuestion& question, const core::ForwardingTable& table) {
  if (question.from_host) {
    return "";
  }
  if (!question.interface.empty()) {
    return question.interface;
  }
  const core::IpAddress& source = question.tuple.src;
  const auto& local = table.node().of(source.family()).local_addresses;
  const bool own = source.is_loopback() || std::binary_search(local.begin(), local.end(), source);
  return own ? "" : "any interface";
}

}  // namespace sluice::server
