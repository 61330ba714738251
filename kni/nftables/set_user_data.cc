#include "kni/nftables/set_user_data.h"

#include <libnftnl/udata.h>
#include <linux/netfilter/nf_tables.h>

#include <cstring>
#include <string_view>

#include "kni/nftables/encode_rule.h"

namespace sluice::kni::nft {
namespace {

// nft's numbers for expressions and their parts, as it stores them with `typeof` sets.
constexpr std::uint32_t kConcatExpression = 13;
constexpr std::uint32_t kPayloadExpression = 7;
constexpr std::uint32_t kMetaExpression = 9;
constexpr std::uint32_t kNumgenExpression = 23;
constexpr std::uint32_t kIp4Header = 12;
constexpr std::uint32_t kIp6Header = 13;
constexpr std::uint32_t kTransportHeader = 11;
constexpr std::uint32_t kIp4Saddr = 11;
constexpr std::uint32_t kIp4Daddr = 12;
constexpr std::uint32_t kIp6Saddr = 8;
constexpr std::uint32_t kIp6Daddr = 9;
constexpr std::uint32_t kTransportSport = 1;
constexpr std::uint32_t kTransportDport = 2;
constexpr std::uint32_t kBigEndian = 2;

void put(std::string& out, std::uint8_t type, std::string_view bytes) {
  out += static_cast<char>(type);
  out += static_cast<char>(bytes.size());
  out += bytes;
}

void put_u32(std::string& out, std::uint8_t type, std::uint32_t value) {
  char bytes[sizeof(value)];
  std::memcpy(bytes, &value, sizeof(value));
  put(out, type, std::string_view(bytes, sizeof(bytes)));
}

/// An expression: its kind and what belongs to that kind.
std::string expression(std::uint32_t kind, std::initializer_list<std::uint32_t> parts) {
  std::string inner;
  std::uint8_t type = 0;
  for (const std::uint32_t part : parts) {
    put_u32(inner, type++, part);
  }
  std::string out;
  put_u32(out, NFTNL_UDATA_SET_TYPEOF_EXPR, kind);
  put(out, NFTNL_UDATA_SET_TYPEOF_DATA, inner);
  return out;
}

std::string field_expression(Field field, core::Family family) {
  const bool v4 = family == core::Family::kIpv4;
  switch (field) {
    case Field::kSaddr:
      return expression(kPayloadExpression,
                        {v4 ? kIp4Header : kIp6Header, v4 ? kIp4Saddr : kIp6Saddr});
    case Field::kDaddr:
      return expression(kPayloadExpression,
                        {v4 ? kIp4Header : kIp6Header, v4 ? kIp4Daddr : kIp6Daddr});
    case Field::kProtocol:
      return expression(kMetaExpression, {NFT_META_L4PROTO});
    case Field::kSport:
      return expression(kPayloadExpression, {kTransportHeader, kTransportSport});
    case Field::kDport:
      return expression(kPayloadExpression, {kTransportHeader, kTransportDport});
    case Field::kSlot:
      break;
  }
  return expression(kNumgenExpression, {NFT_NG_RANDOM, 2, 0});
}

std::string concat_expression(const std::vector<Field>& key, core::Family family) {
  std::string parts;
  std::uint8_t index = 0;
  for (const Field field : key) {
    put(parts, index++, field_expression(field, family));
  }
  std::string out;
  put_u32(out, NFTNL_UDATA_SET_TYPEOF_EXPR, kConcatExpression);
  put(out, NFTNL_UDATA_SET_TYPEOF_DATA, parts);
  return out;
}

/// The value of the first entry of `type`; empty: there is none.
std::string_view find(std::string_view user_data, std::uint8_t type) {
  while (user_data.size() >= 2) {
    const auto length = static_cast<std::uint8_t>(user_data[1]);
    if (static_cast<std::uint8_t>(user_data[0]) == type) {
      return user_data.substr(2, length);
    }
    user_data.remove_prefix(std::min<std::size_t>(user_data.size(), 2u + length));
  }
  return {};
}

}  // namespace

std::string set_user_data(const SetSpec& spec, core::Family family) {
  const bool map =
      spec.kind == SetSpec::Kind::kVerdictMap || spec.kind == SetSpec::Kind::kEndpointMap;
  std::string out;
  put_u32(out, NFTNL_UDATA_SET_KEYBYTEORDER, spec.key.size() == 1 ? kBigEndian : 0);
  if (map) {
    put_u32(out, NFTNL_UDATA_SET_DATABYTEORDER, 0);
  }
  if (spec.kind == SetSpec::Kind::kEndpointMap) {
    put(out, NFTNL_UDATA_SET_KEY_TYPEOF, concat_expression(spec.key, family));
    put(out, NFTNL_UDATA_SET_DATA_TYPEOF,
        concat_expression({Field::kDaddr, Field::kDport}, family));
  } else if (spec.kind == SetSpec::Kind::kTimeoutSet) {
    put(out, NFTNL_UDATA_SET_KEY_TYPEOF, concat_expression(spec.key, family));
  }
  return out;
}

std::string comment_user_data(const std::string& comment) {
  std::string out;
  put(out, NFTNL_UDATA_SET_ELEM_COMMENT, std::string_view(comment.c_str(), comment.size() + 1));
  return out;
}

std::string read_comment(std::string_view user_data) {
  const std::string_view text = find(user_data, NFTNL_UDATA_SET_ELEM_COMMENT);
  return std::string(text.substr(0, text.find('\0')));
}

std::uint64_t read_digest(std::string_view user_data) {
  const std::string_view bytes = find(user_data, kDigestUserData);
  std::uint64_t digest = 0;
  if (bytes.size() == sizeof(digest)) {
    std::memcpy(&digest, bytes.data(), sizeof(digest));
  }
  return digest;
}

}  // namespace sluice::kni::nft
