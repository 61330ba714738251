#pragma once

#include <arpa/inet.h>
#include <endian.h>
#include <linux/netlink.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace sluice::kni::nft {

/// A netlink attribute's bytes, and those inside it. Nothing is read beyond them, whatever lengths
/// they claim.
class Attributes {
 public:
  explicit Attributes(std::string_view bytes) : bytes_(bytes) {}

  /// Calls `visit(type, bytes)` for each.
  template <class Visit>
  void for_each(Visit visit) const {
    std::string_view left = bytes_;
    while (left.size() >= sizeof(nlattr)) {
      nlattr a{};
      std::memcpy(&a, left.data(), sizeof(a));
      if (a.nla_len < sizeof(a) || a.nla_len > left.size()) {
        return;
      }
      visit(static_cast<std::uint16_t>(a.nla_type & NLA_TYPE_MASK),
            left.substr(sizeof(a), a.nla_len - sizeof(a)));
      left.remove_prefix(std::min<std::size_t>(left.size(), (a.nla_len + 3u) / 4 * 4));
    }
  }
  /// Bytes of the last attribute of `type`; empty when there is none.
  [[nodiscard]] std::string_view find(std::uint16_t type) const {
    std::string_view found;
    for_each([&](std::uint16_t t, std::string_view bytes) { found = t == type ? bytes : found; });
    return found;
  }
  [[nodiscard]] Attributes nest(std::uint16_t type) const { return Attributes(find(type)); }
  [[nodiscard]] std::string text(std::uint16_t type) const {
    const std::string_view bytes = find(type);
    return std::string(bytes.substr(0, bytes.find('\0')));
  }
  [[nodiscard]] std::uint32_t u32(std::uint16_t type) const {
    std::uint32_t value = 0;
    copy(type, &value, sizeof(value));
    return ntohl(value);
  }
  [[nodiscard]] std::uint64_t u64(std::uint16_t type) const {
    std::uint64_t value = 0;
    copy(type, &value, sizeof(value));
    return be64toh(value);
  }

 private:
  void copy(std::uint16_t type, void* to, std::size_t size) const {
    const std::string_view bytes = find(type);
    if (bytes.size() == size) {
      std::memcpy(to, bytes.data(), size);
    }
  }
  std::string_view bytes_;
};

}  // namespace sluice::kni::nft
