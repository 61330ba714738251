#include "dataplane/dpdk/reply_steering.h"

#include <cstring>

#include <rte_errno.h>
#include <rte_thash.h>

namespace sluice::dpdk {
namespace {

constexpr const char* kContext = "sluice-replies";
constexpr const char* kPort4 = "port4";
constexpr const char* kPort6 = "port6";

/// What a NIC hashes of a packet with ports, in packet order.
template <class F>
constexpr std::uint32_t kTuple = 2 * sizeof(typename F::Address) + 4;
/// Where the low bits of the destination port lie in it.
template <class F>
constexpr std::uint32_t kPortOffset = kTuple<F> * 8 - ReplySteering::kBits;

template <class F>
std::uint16_t adjust_port(rte_thash_ctx* context, rte_thash_subtuple_helper* helper,
                          const typename F::Key& reply, std::uint16_t wanted) noexcept {
  std::uint8_t tuple[kTuple<F>];
  reply.src.store(tuple);
  reply.dst.store(tuple + sizeof reply.src);
  reply.sport.store(tuple + 2 * sizeof reply.src);
  reply.dport.store(tuple + 2 * sizeof reply.src + 2);
  if (rte_thash_adjust_tuple(context, helper, tuple, sizeof tuple, wanted, 1, nullptr, nullptr) !=
      0) {
    return 0;
  }
  return core::Be16::load(tuple + 2 * sizeof reply.src + 2).host();
}

}  // namespace

core::Result<std::unique_ptr<ReplySteering>> ReplySteering::create(
    std::span<const std::uint8_t> key) {
  std::unique_ptr<ReplySteering> made(new ReplySteering);
  made->key_.assign(key.begin(), key.end());
  made->context_ = rte_thash_init_ctx(kContext, static_cast<std::uint32_t>(key.size()), kBits,
                                      made->key_.data(), 0);
  if (made->context_ == nullptr) {
    return tl::make_unexpected(
        core::Error{"no context for source ports: " + std::string(rte_strerror(rte_errno))});
  }
  if (rte_thash_add_helper(made->context_, kPort4, kBits, kPortOffset<core::Ipv4>) != 0 ||
      rte_thash_add_helper(made->context_, kPort6, kBits, kPortOffset<core::Ipv6>) != 0) {
    return tl::make_unexpected(core::Error{"the hash key holds no room for source ports"});
  }
  made->port4_ = rte_thash_get_helper(made->context_, kPort4);
  made->port6_ = rte_thash_get_helper(made->context_, kPort6);
  std::memcpy(made->key_.data(), rte_thash_get_key(made->context_), made->key_.size());
  return made;
}

ReplySteering::~ReplySteering() {
  if (context_ != nullptr) {
    rte_thash_free_ctx(context_);
  }
}

std::uint16_t ReplySteering::adjust(const core::FlowKey4& reply,
                                    std::uint16_t wanted) const noexcept {
  return adjust_port<core::Ipv4>(context_, port4_, reply, wanted);
}

std::uint16_t ReplySteering::adjust(const core::FlowKey6& reply,
                                    std::uint16_t wanted) const noexcept {
  return adjust_port<core::Ipv6>(context_, port6_, reply, wanted);
}

}  // namespace sluice::dpdk
