#include "test/conformance/kernel_conntrack.h"

#include <arpa/inet.h>
#include <libnetfilter_conntrack/libnetfilter_conntrack.h>
#include <libnetfilter_conntrack/libnetfilter_conntrack_tcp.h>

#include <cerrno>
#include <cstring>
#include <stdexcept>

#include "dataplane/core/net/address.h"

namespace sluice::conformance {
namespace {

constexpr std::uint32_t kSeconds = 600;  // longer than any case

core::IpAddress address_of(const YAML::Node& text) {
  return core::parse_address(text.as<std::string>()).value();
}

void set_address(nf_conntrack* flow, const core::IpAddress& a, nf_conntrack_attr a4,
                 nf_conntrack_attr a6) {
  nfct_set_attr(flow, a.is_v4() ? a4 : a6, a.data());
}

}  // namespace

void KernelConntrack::Free::operator()(nf_conntrack* flow) const noexcept {
  nfct_destroy(flow);
}

KernelConntrack::KernelConntrack() : handle_(nfct_open(CONNTRACK, 0)) {
  if (handle_ == nullptr) {
    throw std::runtime_error(std::string("conntrack: ") + std::strerror(errno));
  }
}

KernelConntrack::~KernelConntrack() {
  nfct_close(handle_);
}

std::vector<std::string> KernelConntrack::perform(const YAML::Node& step) {
  std::vector<std::string> failures;
  for (const YAML::Node& entry : step["entries"]) {
    install(entry, failures);
  }
  check(step["deleted"], false, failures);
  check(step["kept"], true, failures);
  return failures;
}

void KernelConntrack::install(const YAML::Node& entry, std::vector<std::string>& failures) {
  const auto id = entry["id"].as<std::string>();
  const auto protocol = entry["proto"].as<std::string>();
  const auto src = address_of(entry["src"]);
  const auto client_port =
      htons(static_cast<std::uint16_t>(entry["sport"].as<std::uint16_t>() + flows_.size()));
  std::unique_ptr<nf_conntrack, Free> flow(nfct_new());
  nf_conntrack* f = flow.get();
  nfct_set_attr_u8(f, ATTR_L3PROTO, src.is_v4() ? AF_INET : AF_INET6);
  nfct_set_attr_u8(f, ATTR_REPL_L3PROTO, src.is_v4() ? AF_INET : AF_INET6);
  const std::uint8_t number = protocol == "UDP" ? IPPROTO_UDP : IPPROTO_TCP;
  nfct_set_attr_u8(f, ATTR_L4PROTO, number);
  nfct_set_attr_u8(f, ATTR_REPL_L4PROTO, number);
  set_address(f, src, ATTR_IPV4_SRC, ATTR_IPV6_SRC);
  set_address(f, address_of(entry["dst"]), ATTR_IPV4_DST, ATTR_IPV6_DST);
  nfct_set_attr_u16(f, ATTR_PORT_SRC, client_port);
  nfct_set_attr_u16(f, ATTR_PORT_DST, htons(entry["dport"].as<std::uint16_t>()));
  set_address(f, address_of(entry["replySrc"]), ATTR_REPL_IPV4_SRC, ATTR_REPL_IPV6_SRC);
  set_address(f, src, ATTR_REPL_IPV4_DST, ATTR_REPL_IPV6_DST);
  nfct_set_attr_u16(f, ATTR_REPL_PORT_SRC, htons(entry["replySport"].as<std::uint16_t>()));
  nfct_set_attr_u16(f, ATTR_REPL_PORT_DST, client_port);
  nfct_set_attr_u32(f, ATTR_TIMEOUT, kSeconds);
  if (number == IPPROTO_TCP) {
    nfct_set_attr_u8(f, ATTR_TCP_STATE, TCP_CONNTRACK_ESTABLISHED);
  }
  if (nfct_query(handle_, NFCT_Q_CREATE, f) != 0) {
    failures.push_back("flow " + id + ": the kernel does not take it: " + std::strerror(errno));
  }
  flows_[id] = std::move(flow);
}

void KernelConntrack::check(const YAML::Node& ids, bool kept, std::vector<std::string>& failures) {
  for (const YAML::Node& item : ids) {
    const auto id = item.as<std::string>();
    const auto found = flows_.find(id);
    const bool there =
        found != flows_.end() && nfct_query(handle_, NFCT_Q_GET, found->second.get()) == 0;
    if (there != kept) {
      failures.push_back("flow " + id + ": expected " + (kept ? "kept" : "deleted") + ", got " +
                         (there ? "kept" : "deleted"));
    }
  }
}

}  // namespace sluice::conformance
