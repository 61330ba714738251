// One entry of `ports`: device forms, addresses and routes of the tap, queue sizes, RSS key.

#include <algorithm>
#include <cctype>

#include "conf/loader.h"

namespace sluice::conf {
namespace {

bool all_of(std::string_view text, bool (*is)(char)) {
  return std::all_of(text.begin(), text.end(), is);
}
bool is_hex(char c) {
  return std::isxdigit(static_cast<unsigned char>(c)) != 0;
}
bool is_name_char(char c) {
  return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
}
bool is_driver_char(char c) {
  return is_name_char(c) || c == '_';
}

/// "0000:03:00.0" or "03:00.0".
bool is_pci_address(std::string_view text) {
  if (text.size() == 12 && text[4] == ':' && all_of(text.substr(0, 4), is_hex)) {
    text.remove_prefix(5);
  }
  return text.size() == 7 && text[2] == ':' && text[5] == '.' &&
         all_of(text.substr(0, 2), is_hex) && all_of(text.substr(3, 2), is_hex) && text[6] >= '0' &&
         text[6] <= '7';
}

/// A DPDK network device: "net_NAME" with optional arguments.
bool is_vdev(std::string_view text) {
  const std::string_view driver = text.substr(0, text.find(','));
  return driver.size() > 4 && driver.substr(0, 4) == "net_" && all_of(driver, is_driver_char) &&
         all_of(text, [](char c) { return c > ' ' && c < 0x7f; });
}

bool is_interface_name(std::string_view text) {
  constexpr std::size_t kMaxName = 15;  // IFNAMSIZ without the final NUL
  return !text.empty() && text.size() <= kMaxName && text != "." && text != ".." &&
         all_of(text, [](char c) { return c > ' ' && c < 0x7f && c != '/' && c != ':'; });
}

std::optional<InterfaceAddress> parse_interface_address(std::string_view text) {
  const std::size_t slash = text.find('/');
  if (slash == std::string_view::npos) {
    return std::nullopt;
  }
  const auto address = core::parse_address(text.substr(0, slash));
  const auto length = parse_number(text.substr(slash + 1));
  if (!address.has_value() || !length.has_value() || *length > address->size() * 8) {
    return std::nullopt;
  }
  return InterfaceAddress{*address, static_cast<std::uint8_t>(*length)};
}

std::optional<std::vector<std::uint8_t>> parse_hex(std::string_view text) {
  std::vector<std::uint8_t> bytes;
  if (text.size() % 2 != 0 || !all_of(text, is_hex)) {
    return std::nullopt;
  }
  const auto digit = [](char c) { return c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10; };
  for (std::size_t i = 0; i < text.size(); i += 2) {
    bytes.push_back(static_cast<std::uint8_t>(digit(text[i]) * 16 + digit(text[i + 1])));
  }
  return bytes;
}

void read_routes(Section& section, Reader& reader, std::vector<Route>& routes) {
  section.list("routes", [&](const YamlTree& node, const std::string& path) {
    Section entry(reader, &node, path);
    std::string to;
    std::string via;
    entry.text("to", to);
    entry.text("via", via);
    entry.done();
    const auto gateway = core::parse_address(via);
    if (!gateway.has_value()) {
      entry.fail("via", "an IP address is expected, such as 192.0.2.1");
      return;
    }
    const auto prefix = to == "default" ? core::parse_cidr(gateway->is_v4() ? "0.0.0.0/0" : "::/0")
                                        : core::parse_cidr(to);
    if (!prefix.has_value() || prefix->family() != gateway->family()) {
      entry.fail("to", "default or a CIDR of the family of `via` is expected");
      return;
    }
    routes.push_back({*prefix, *gateway});
  });
}

void read_descriptors(Section& section, std::string_view key, std::uint16_t& out) {
  section.number(key, {64, 32768}, out);
  if ((out & (out - 1)) != 0) {
    section.fail(key, "a power of two in 64..32768 is expected, not " + std::to_string(out));
  }
}

void read_rss_key(Section& section, std::vector<std::uint8_t>& key) {
  std::string text = "auto";
  section.text("rss-key", text);
  if (text == "auto") {
    return;
  }
  const auto bytes = parse_hex(text);
  if (!bytes.has_value() || (bytes->size() != 40 && bytes->size() != 52)) {
    section.fail("rss-key", "auto, or 40 or 52 bytes as hexadecimal digits are expected");
    return;
  }
  key = *bytes;
}

}  // namespace

bool parse_device(PortConfig& port) {
  const std::string_view device = port.device;
  const auto interface = [&](std::string_view prefix, DeviceKind kind) {
    if (device.substr(0, prefix.size()) != prefix) {
      return false;
    }
    port.kind = kind;
    port.target = device.substr(prefix.size());
    return is_interface_name(port.target);
  };
  if (is_pci_address(device)) {
    port.kind = DeviceKind::kPci;
    port.target = device.size() == 7 ? "0000:" + port.device : port.device;
    return true;
  }
  if (is_vdev(device)) {
    port.kind = DeviceKind::kVdev;
    port.target = port.device;
    return true;
  }
  return interface("af_xdp:", DeviceKind::kAfXdp) ||
         interface("af_packet:", DeviceKind::kAfPacket) || interface("auto:", DeviceKind::kAuto);
}

void read_port(Reader& reader, const YamlTree& node, const std::string& path, PortConfig& port) {
  constexpr std::size_t kMaxPortName = 11;
  Section section(reader, &node, path);
  section.text("name", port.name);
  section.text("device", port.device);
  section.values("addresses", "an address with its prefix length, such as 192.0.2.2/24,",
                 parse_interface_address, port.addresses);
  read_routes(section, reader, port.routes);
  section.number("mtu", {1280, 9600}, port.mtu);
  section.number_or_auto("queues", {1, 128}, port.queues);
  read_descriptors(section, "rx-descriptors", port.rx_descriptors);
  read_descriptors(section, "tx-descriptors", port.tx_descriptors);
  read_rss_key(section, port.rss_key);
  section.done();
  if (port.name.empty() || port.name.size() > kMaxPortName || !all_of(port.name, is_name_char)) {
    section.fail("name", "1 to 11 characters of a-z, 0-9 and - are expected");
  }
  if (!parse_device(port)) {
    section.fail("device",
                 "a PCI address (0000:03:00.0), a vdev (net_memif0,role=client), or "
                 "af_xdp:IFNAME, af_packet:IFNAME or auto:IFNAME is expected");
  }
}

}  // namespace sluice::conf
