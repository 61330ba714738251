#include "kni/nftables/ruleset.h"

#include <cstring>
#include <utility>

#include "kni/nftables/ruleset_text.h"

namespace sluice::kni::nft {
namespace {

constexpr std::size_t kRegister = 4;  // parts are padded to the kernel's 4-byte registers

std::uint64_t fnv1a(const std::string& text) noexcept {
  std::uint64_t hash = 0xcbf29ce484222325u;
  for (const char c : text) {
    hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  }
  return hash != 0 ? hash : 1;
}

}  // namespace

std::size_t field_size(Field field, core::Family family) noexcept {
  switch (field) {
    case Field::kSaddr:
    case Field::kDaddr:
      return family == core::Family::kIpv4 ? 4 : 16;
    case Field::kProtocol:
      return 1;
    case Field::kSport:
    case Field::kDport:
      return 2;
    case Field::kSlot:
      break;
  }
  return 4;
}

std::size_t padded_size(Field field, core::Family family) noexcept {
  return (field_size(field, family) + kRegister - 1) / kRegister * kRegister;
}

std::size_t key_size(const std::vector<Field>& key, core::Family family) noexcept {
  std::size_t size = 0;
  for (const Field field : key) {
    size += padded_size(field, family);
  }
  return size;
}

KeyBytes& KeyBytes::address(const core::IpAddress& a) {
  bytes_.append(reinterpret_cast<const char*>(a.data()), a.size());
  return *this;
}

KeyBytes& KeyBytes::protocol(core::Protocol p) {
  const char padded[kRegister] = {static_cast<char>(p), 0, 0, 0};
  bytes_.append(padded, kRegister);
  return *this;
}

KeyBytes& KeyBytes::port(std::uint16_t host_order) {
  const char padded[kRegister] = {static_cast<char>(host_order >> 8),
                                  static_cast<char>(host_order & 0xff), 0, 0};
  bytes_.append(padded, kRegister);
  return *this;
}

KeyBytes& KeyBytes::slot(std::uint32_t slot) {
  char host[kRegister];  // numgen writes host order
  std::memcpy(host, &slot, kRegister);
  bytes_.append(host, kRegister);
  return *this;
}

Rule make_rule(core::Family family, std::vector<Statement> statements) {
  Rule rule;
  rule.statements = std::move(statements);
  rule.digest = fnv1a(rule_text(family, rule));
  return rule;
}

}  // namespace sluice::kni::nft
