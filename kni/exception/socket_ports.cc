#include "kni/exception/socket_ports.h"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <sstream>

namespace sluice::kni {

std::vector<std::uint16_t> ports_in(const std::string& table) {
  std::vector<std::uint16_t> ports;
  std::istringstream lines(table);
  std::string line;
  while (std::getline(lines, line)) {
    // "  sl: ADDRESS:PORT REMOTE:PORT ...", hexadecimal; the heading has no colon in field two.
    std::istringstream fields(line);
    std::string slot;
    std::string local;
    fields >> slot >> local;
    const std::size_t colon = local.rfind(':');
    std::uint16_t port = 0;
    if (colon != std::string::npos &&
        std::from_chars(local.data() + colon + 1, local.data() + local.size(), port, 16).ec ==
            std::errc{}) {
      ports.push_back(port);
    }
  }
  return ports;
}

std::vector<std::uint16_t> used_ports(std::uint16_t first, std::uint16_t last) {
  std::vector<std::uint16_t> used;
  for (const char* path :
       {"/proc/net/tcp", "/proc/net/tcp6", "/proc/net/udp", "/proc/net/udp6"}) {
    std::ifstream file(path);
    std::ostringstream text;
    text << file.rdbuf();
    for (const std::uint16_t port : ports_in(text.str())) {
      if (port >= first && port <= last) {
        used.push_back(port);
      }
    }
  }
  std::sort(used.begin(), used.end());
  used.erase(std::unique(used.begin(), used.end()), used.end());
  return used;
}

}  // namespace sluice::kni
