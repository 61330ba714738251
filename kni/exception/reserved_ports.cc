#include "kni/exception/reserved_ports.h"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <utility>

namespace sluice::kni {
namespace {

constexpr const char* kPath = "/proc/sys/net/ipv4/ip_local_reserved_ports";

std::string read_list() {
  std::ifstream file(kPath);
  std::string text;
  std::getline(file, text);
  return text;
}

bool write_list(const std::string& text) {
  std::ofstream file(kPath);
  file << text << "\n" << std::flush;  // an empty line empties the list
  return file.good();
}

}  // namespace

core::Result<ReservedPorts> ReservedPorts::reserve(std::uint16_t first, std::uint16_t last) {
  std::string before = read_list();
  const std::string range = std::to_string(first) + "-" + std::to_string(last);
  // The kernel merges ranges when it prints them.
  if (!write_list(before.empty() ? range : before + "," + range)) {
    return tl::make_unexpected(core::Error{
        std::string("reserving ports ") + range + " in " + kPath + ": " + std::strerror(errno)});
  }
  return ReservedPorts(std::move(before), read_list());
}

ReservedPorts::ReservedPorts(ReservedPorts&& other) noexcept
    : before_(std::move(other.before_)), ours_(std::exchange(other.ours_, {})) {}

ReservedPorts::~ReservedPorts() {
  if (!ours_.empty() && read_list() == ours_) {
    (void)write_list(before_);
  }
}

}  // namespace sluice::kni
