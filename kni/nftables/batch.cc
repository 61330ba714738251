#include "kni/nftables/batch.h"

#include <arpa/inet.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nfnetlink.h>

#include <cstring>

namespace sluice::kni::nft {
namespace {

constexpr std::size_t align4(std::size_t size) {
  return (size + 3) / 4 * 4;
}
constexpr std::uint16_t kGenerationAttribute = 1;  // NFNL_BATCH_GENID

}  // namespace

std::uint8_t family_number(core::Family family) noexcept {
  return family == core::Family::kIpv4 ? NFPROTO_IPV4 : NFPROTO_IPV6;
}

Batch::Batch(std::optional<std::uint32_t> generation) {
  what_.emplace_back("the transaction");
  header(NFNL_MSG_BATCH_BEGIN, NLM_F_REQUEST, AF_UNSPEC, NFNL_SUBSYS_NFTABLES);
  if (generation) {
    put_be32(kGenerationAttribute, *generation);
  }
  end();
}

void Batch::append_bytes(const void* at, std::size_t size) {
  if (size == 0) {
    return;
  }
  const std::size_t begin = bytes_.size();
  bytes_.resize(begin + align4(size));
  std::memcpy(bytes_.data() + begin, at, size);
}

void Batch::header(std::uint16_t type, std::uint16_t flags, std::uint8_t family,
                   std::uint16_t resource) {
  message_ = bytes_.size();
  nlmsghdr h{};
  h.nlmsg_type = type;
  h.nlmsg_flags = flags;
  h.nlmsg_seq = static_cast<std::uint32_t>(what_.size());
  append_bytes(&h, sizeof(h));
  nfgenmsg g{};
  g.nfgen_family = family;
  g.version = NFNETLINK_V0;
  g.res_id = htons(resource);
  append_bytes(&g, sizeof(g));
}

void Batch::begin(std::uint16_t type, core::Family family, std::uint16_t flags, std::string what) {
  what_.push_back(std::move(what));
  header(static_cast<std::uint16_t>(NFNL_SUBSYS_NFTABLES << 8 | type),
         static_cast<std::uint16_t>(NLM_F_REQUEST | flags), family_number(family), 0);
}

void Batch::put(std::uint16_t attribute, std::string_view bytes) {
  const nlattr a{static_cast<std::uint16_t>(sizeof(nlattr) + bytes.size()), attribute};
  append_bytes(&a, sizeof(a));
  append_bytes(bytes.data(), bytes.size());
}

void Batch::put_text(std::uint16_t attribute, const std::string& text) {
  put(attribute, std::string_view(text.c_str(), text.size() + 1));
}

void Batch::put_be32(std::uint16_t attribute, std::uint32_t value) {
  const std::uint32_t big = htonl(value);
  put(attribute, std::string_view(reinterpret_cast<const char*>(&big), sizeof(big)));
}

std::size_t Batch::open(std::uint16_t attribute) {
  const std::size_t nest = bytes_.size();
  put(static_cast<std::uint16_t>(attribute | NLA_F_NESTED), {});
  return nest;
}

void Batch::close(std::size_t nest) {
  const auto length = static_cast<std::uint16_t>(bytes_.size() - nest);
  std::memcpy(bytes_.data() + nest, &length, sizeof(length));
}

void Batch::end() {
  const auto length = static_cast<std::uint32_t>(bytes_.size() - message_);
  std::memcpy(bytes_.data() + message_, &length, sizeof(length));
}

void Batch::append(const nlmsghdr& message, std::string what) {
  message_ = bytes_.size();
  what_.push_back(std::move(what));
  append_bytes(&message, message.nlmsg_len);
  const auto number = static_cast<std::uint32_t>(what_.size() - 1);
  std::memcpy(bytes_.data() + message_ + offsetof(nlmsghdr, nlmsg_seq), &number, sizeof(number));
}

void Batch::finish() {
  what_.emplace_back("the end of the transaction");
  header(NFNL_MSG_BATCH_END, NLM_F_REQUEST, AF_UNSPEC, NFNL_SUBSYS_NFTABLES);
  end();
}

const std::string& Batch::what(std::uint32_t number) const {
  static const std::string kUnknown = "an unknown message";
  return number < what_.size() ? what_[number] : kUnknown;
}

}  // namespace sluice::kni::nft
