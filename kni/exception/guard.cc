#include "kni/exception/guard.h"

#include <cerrno>
#include <cstring>
#include <ctime>
#include <fstream>
#include <vector>

#include <libnftnl/chain.h>
#include <libnftnl/common.h>
#include <libnftnl/table.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <unistd.h>

#include "kni/exception/records.h"

namespace sluice::kni {
namespace {

constexpr std::int32_t kBeforeAllOthers = -500;  // priority at ingress; tools use -300 and above

bool is_link_local(const core::IpAddress& address) {
  return !address.is_v4() && address.data()[0] == 0xfe && (address.data()[1] & 0xc0) == 0x80;
}

std::string sysctl_path(const std::string& interface) {
  return "/proc/sys/net/ipv6/conf/" + interface + "/disable_ipv6";
}

struct FreeTable {
  void operator()(nftnl_table* table) const noexcept { nftnl_table_free(table); }
};
struct FreeChain {
  void operator()(nftnl_chain* chain) const noexcept { nftnl_chain_free(chain); }
};

/// Name of the table: one per process and interface, because an owner table is one socket's.
std::string table_name(const std::string& interface) {
  return "sluice-guard-" + std::to_string(getpid()) + "-" + interface;
}

void put_table(mnl_nlmsg_batch* batch, std::uint32_t sequence, const std::string& name) {
  const std::unique_ptr<nftnl_table, FreeTable> table(nftnl_table_alloc());
  nftnl_table_set_str(table.get(), NFTNL_TABLE_NAME, name.c_str());
  nftnl_table_set_u32(table.get(), NFTNL_TABLE_FAMILY, NFPROTO_NETDEV);
  nftnl_table_set_u32(table.get(), NFTNL_TABLE_FLAGS, NFT_TABLE_F_OWNER);
  nlmsghdr* header = nftnl_nlmsg_build_hdr(
      static_cast<char*>(mnl_nlmsg_batch_current(batch)), NFT_MSG_NEWTABLE, NFPROTO_NETDEV,
      NLM_F_CREATE | NLM_F_EXCL | NLM_F_ACK, sequence);
  nftnl_table_nlmsg_build_payload(header, table.get());
  mnl_nlmsg_batch_next(batch);
}

void put_chain(mnl_nlmsg_batch* batch, std::uint32_t sequence, const std::string& table,
               const std::string& interface) {
  const std::unique_ptr<nftnl_chain, FreeChain> chain(nftnl_chain_alloc());
  nftnl_chain_set_str(chain.get(), NFTNL_CHAIN_TABLE, table.c_str());
  nftnl_chain_set_str(chain.get(), NFTNL_CHAIN_NAME, "ingress");
  nftnl_chain_set_str(chain.get(), NFTNL_CHAIN_TYPE, "filter");
  nftnl_chain_set_u32(chain.get(), NFTNL_CHAIN_HOOKNUM, NF_NETDEV_INGRESS);
  nftnl_chain_set_s32(chain.get(), NFTNL_CHAIN_PRIO, kBeforeAllOthers);
  nftnl_chain_set_u32(chain.get(), NFTNL_CHAIN_POLICY, NF_DROP);
  nftnl_chain_set_str(chain.get(), NFTNL_CHAIN_DEV, interface.c_str());
  nlmsghdr* header = nftnl_nlmsg_build_hdr(
      static_cast<char*>(mnl_nlmsg_batch_current(batch)), NFT_MSG_NEWCHAIN, NFPROTO_NETDEV,
      NLM_F_CREATE | NLM_F_EXCL | NLM_F_ACK, sequence);
  nftnl_chain_nlmsg_build_payload(header, chain.get());
  mnl_nlmsg_batch_next(batch);
}

/// Sends table and chain in one transaction and waits for both answers. @return 0 or errno.
int commit(Netlink& netlink, const std::string& table, const std::string& interface) {
  std::vector<char> buffer(MNL_SOCKET_BUFFER_SIZE * 2);
  mnl_nlmsg_batch* batch = mnl_nlmsg_batch_start(buffer.data(), MNL_SOCKET_BUFFER_SIZE);
  std::uint32_t sequence = static_cast<std::uint32_t>(std::time(nullptr));
  nftnl_batch_begin(static_cast<char*>(mnl_nlmsg_batch_current(batch)), sequence++);
  mnl_nlmsg_batch_next(batch);
  put_table(batch, sequence++, table);
  put_chain(batch, sequence++, table, interface);
  nftnl_batch_end(static_cast<char*>(mnl_nlmsg_batch_current(batch)), sequence);
  mnl_nlmsg_batch_next(batch);
  constexpr unsigned kAnswers = 2;
  const int rc =
      netlink.request_batch(mnl_nlmsg_batch_head(batch), mnl_nlmsg_batch_size(batch), kAnswers);
  mnl_nlmsg_batch_stop(batch);
  return rc;
}

}  // namespace

core::Result<std::string> addresses_on(const std::string& interface) {
  const std::uint32_t index = if_nametoindex(interface.c_str());
  if (index == 0) {
    return tl::make_unexpected(core::Error{"interface " + interface + ": no such interface"});
  }
  auto netlink = Netlink::open(NETLINK_ROUTE, {});
  if (!netlink) {
    return tl::make_unexpected(netlink.error());
  }
  std::string text;
  Message message(RTM_GETADDR, 0);
  message.extra<ifaddrmsg>();
  const int rc = netlink->dump(message, [&](const nlmsghdr& answer) {
    const Record record = read_record(answer);
    const auto* address = std::get_if<AddressRecord>(&record);
    if (address != nullptr && address->link == index && !is_link_local(address->address)) {
      text += (text.empty() ? "" : ", ") + core::to_string(address->address) + "/" +
              std::to_string(address->length);
    }
  });
  if (rc != 0) {
    return tl::make_unexpected(
        core::Error{"interface " + interface + ": reading its addresses: " + std::strerror(rc)});
  }
  return text;
}

core::Result<std::unique_ptr<InterfaceGuard>> InterfaceGuard::hold(const std::string& interface,
                                                                   bool drop_frames) {
  const auto addresses = addresses_on(interface);
  if (!addresses) {
    return tl::make_unexpected(addresses.error());
  }
  if (!addresses->empty()) {
    return tl::make_unexpected(core::Error{
        "interface " + interface + ": the kernel has the address " + *addresses +
        " on it; remove it (ip addr flush dev " + interface +
        ") and name it under the port's addresses, so that the port's tap gets it"});
  }
  std::unique_ptr<InterfaceGuard> guard(new InterfaceGuard);
  guard->interface_ = interface;
  if (auto done = guard->disable_ipv6(); !done) {
    return tl::make_unexpected(done.error());
  }
  if (drop_frames) {
    if (auto done = guard->drop_ingress(); !done) {
      return tl::make_unexpected(done.error());
    }
  }
  return guard;
}

core::Result<void> InterfaceGuard::disable_ipv6() {
  const std::string path = sysctl_path(interface_);
  std::ifstream in(path);
  std::string before;
  if (!(in >> before) || before == "1") {
    return {};  // a kernel without IPv6, or switched off already
  }
  std::ofstream out(path);
  if (!(out << "1\n" << std::flush)) {
    return tl::make_unexpected(
        core::Error{"interface " + interface_ + ": writing " + path + ": " + std::strerror(errno)});
  }
  ipv6_before_ = before;
  return {};
}

core::Result<void> InterfaceGuard::drop_ingress() {
  auto netlink = Netlink::open(NETLINK_NETFILTER, {});
  if (!netlink) {
    return tl::make_unexpected(netlink.error());
  }
  const int rc = commit(*netlink, table_name(interface_), interface_);
  if (rc != 0) {
    return tl::make_unexpected(core::Error{"interface " + interface_ +
                                           ": nftables does not take the guard table: " +
                                           std::strerror(rc)});
  }
  table_owner_.emplace(std::move(*netlink));
  return {};
}

InterfaceGuard::~InterfaceGuard() {
  table_owner_.reset();  // the kernel removes the table with its owner
  if (!ipv6_before_.empty()) {
    std::ofstream out(sysctl_path(interface_));
    out << ipv6_before_ << "\n" << std::flush;
  }
}

}  // namespace sluice::kni
