#include "kni/conntrack/conntrack.h"

#include <arpa/inet.h>
#include <libnetfilter_conntrack/libnetfilter_conntrack.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <string>
#include <vector>

namespace sluice::kni {
namespace {

constexpr int kTries = 3;

struct CloseHandle {
  void operator()(nfct_handle* h) const noexcept { nfct_close(h); }
};
struct FreeFlow {
  void operator()(nf_conntrack* ct) const noexcept { nfct_destroy(ct); }
};
struct FreeFilter {
  void operator()(nfct_filter_dump* f) const noexcept { nfct_filter_dump_destroy(f); }
};
using Flow = std::unique_ptr<nf_conntrack, FreeFlow>;

core::IpAddress address_of(const nf_conntrack* ct, bool v4, nf_conntrack_attr a4,
                           nf_conntrack_attr a6) {
  const void* at = nfct_get_attr(ct, v4 ? a4 : a6);
  if (at == nullptr) {
    return {};
  }
  return v4 ? core::IpAddress(core::Ipv4Address::load(at))
            : core::IpAddress(core::Ipv6Address::load(at));
}

core::UdpFlow flow_of(const nf_conntrack* ct, bool v4) {
  core::UdpFlow flow;
  flow.source = address_of(ct, v4, ATTR_ORIG_IPV4_SRC, ATTR_ORIG_IPV6_SRC);
  flow.source_port = ntohs(nfct_get_attr_u16(ct, ATTR_ORIG_PORT_SRC));
  flow.destination = address_of(ct, v4, ATTR_ORIG_IPV4_DST, ATTR_ORIG_IPV6_DST);
  flow.destination_port = ntohs(nfct_get_attr_u16(ct, ATTR_ORIG_PORT_DST));
  flow.reply_source = address_of(ct, v4, ATTR_REPL_IPV4_SRC, ATTR_REPL_IPV6_SRC);
  flow.reply_source_port = ntohs(nfct_get_attr_u16(ct, ATTR_REPL_PORT_SRC));
  return flow;
}

/// One listing of one family.
struct Listing {
  const Conntrack::Wanted& wanted;
  bool v4;
  std::uint64_t seen = 0;
  std::vector<Flow> found;
};

int take_flow(nf_conntrack_msg_type, nf_conntrack* ct, void* data) {
  auto& listing = *static_cast<Listing*>(data);
  if (nfct_get_attr_u8(ct, ATTR_ORIG_L4PROTO) != IPPROTO_UDP) {
    return NFCT_CB_CONTINUE;
  }
  ++listing.seen;
  if (listing.wanted(flow_of(ct, listing.v4))) {
    listing.found.emplace_back(nfct_clone(ct));
  }
  return NFCT_CB_CONTINUE;
}

class NetlinkConntrack : public Conntrack {
 public:
  explicit NetlinkConntrack(nfct_handle* list, nfct_handle* change)
      : list_(list), change_(change) {}

  core::Result<SweepResult> remove_udp(const Wanted& wanted) override {
    SweepResult result;
    for (const bool v4 : {true, false}) {
      Listing listing{wanted, v4, 0, {}};
      if (auto listed = list(listing); !listed) {
        return tl::make_unexpected(listed.error());
      }
      result.seen += listing.seen;
      for (const Flow& flow : listing.found) {
        // ENOENT: it ended meanwhile.
        const bool gone =
            nfct_query(change_.get(), NFCT_Q_DESTROY, flow.get()) == 0 || errno == ENOENT;
        ++(!gone ? result.failed : v4 ? result.removed_v4 : result.removed_v6);
      }
    }
    return result;
  }

 private:
  core::Result<void> list(Listing& listing) {
    const std::unique_ptr<nfct_filter_dump, FreeFilter> filter(nfct_filter_dump_create());
    nfct_filter_dump_set_attr_u8(filter.get(), NFCT_FILTER_DUMP_L3NUM,
                                 listing.v4 ? AF_INET : AF_INET6);
    nfct_callback_register(list_.get(), NFCT_T_ALL, take_flow, &listing);
    int rc = -1;
    for (int i = 0; i < kTries && rc != 0; ++i) {
      errno = 0;
      rc = nfct_query(list_.get(), NFCT_Q_DUMP_FILTER, filter.get());
      if (rc != 0 && errno != EINTR) {
        break;
      }
    }
    nfct_callback_unregister(list_.get());
    if (rc != 0 && errno != EINTR) {
      return tl::make_unexpected(
          core::Error{std::string("conntrack: listing UDP flows: ") + std::strerror(errno)});
    }
    return {};
  }

  std::unique_ptr<nfct_handle, CloseHandle> list_;
  std::unique_ptr<nfct_handle, CloseHandle> change_;
};

std::uint64_t read_number(const char* path) {
  std::ifstream in(path);
  std::uint64_t value = 0;
  in >> value;
  return in ? value : 0;
}

}  // namespace

core::Result<std::unique_ptr<Conntrack>> open_conntrack() {
  nfct_handle* list = nfct_open(CONNTRACK, 0);
  nfct_handle* change = list == nullptr ? nullptr : nfct_open(CONNTRACK, 0);
  if (change == nullptr) {
    const core::Error error{std::string("conntrack: opening a netlink socket: ") +
                            std::strerror(errno)};
    if (list != nullptr) {
      nfct_close(list);
    }
    return tl::make_unexpected(error);
  }
  return std::unique_ptr<Conntrack>(std::make_unique<NetlinkConntrack>(list, change));
}

core::Result<ConntrackFill> read_conntrack_fill() {
  ConntrackFill fill;
  fill.entries = read_number("/proc/sys/net/netfilter/nf_conntrack_count");
  fill.max = read_number("/proc/sys/net/netfilter/nf_conntrack_max");
  std::ifstream in("/proc/net/stat/nf_conntrack");
  std::string line;
  if (fill.max == 0 || !std::getline(in, line)) {
    return tl::make_unexpected(core::Error{"conntrack: the kernel does not show its counters"});
  }
  // One line per CPU, in hexadecimal; the columns have had this order since Linux 2.6.
  while (std::getline(in, line)) {
    std::uint64_t c[17] = {};
    const char* at = line.c_str();
    for (std::uint64_t& value : c) {
      char* end = nullptr;
      value = std::strtoull(at, &end, 16);
      at = end;
    }
    fill.insert_failed += c[9];
    fill.drop += c[10];
    fill.early_drop += c[11];
  }
  return fill;
}

}  // namespace sluice::kni
