#include "test/conformance/wire_node.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "test/conformance/rte_indexes.h"

namespace sluice::conformance {
namespace {

test::SteppedGroupConfig group_config(const WireNode::Config& config) {
  test::SteppedGroupConfig c;
  c.workers = WireNode::kWorkers;
  c.ports = config.interfaces.size();
  c.connections = config.connections;
  c.frames = 128;  // one is served at a time
  c.seed = config.seed;
  c.indexes = rte_indexes();
  return c;
}

}  // namespace

WireNode::WireNode(const Config& config)
    : interfaces_(config.interfaces),
      group_(std::make_unique<test::SteppedGroup>(group_config(config))) {
  set_addresses({});
}

WireNode::~WireNode() = default;

void WireNode::set_addresses(const std::vector<core::IpAddress>& addresses) {
  addresses_ = addresses;
  auto ports = group_->default_ports();
  for (std::size_t p = 0; p < ports.size(); ++p) {
    ports[p].ingress = interfaces_[p];
    ports[p].addresses = p == 0 ? addresses : std::vector<core::IpAddress>{};
  }
  group_->publisher().set_ports(std::move(ports));
}

bool WireNode::has_address(const core::IpAddress& address) const {
  return std::find(addresses_.begin(), addresses_.end(), address) != addresses_.end();
}

void WireNode::apply(core::TablePtr table) {
  group_->publisher().apply(std::move(table));
}

void WireNode::advance(double seconds) {
  constexpr std::uint64_t kSteps = 16;
  const auto ms = static_cast<std::uint64_t>(std::llround(seconds * 1000));
  for (std::uint64_t k = 0; k < kSteps; ++k) {
    group_->advance_ms(ms * (k + 1) / kSteps - ms * k / kSteps);
    group_->settle();
  }
  group_->publisher().collect();
}

WireNode::Seen WireNode::offer(const test::Bytes& frame, std::size_t port,
                               pipeline::Origin origin) {
  group_->inject(turn_++ % kWorkers, frame, port, origin);
  group_->settle();
  return {group_->take_sent(), group_->take_to_host()};
}

std::size_t WireNode::port_of(const std::string& interface) const {
  const auto at = std::find(interfaces_.begin(), interfaces_.end(), interface);
  return at == interfaces_.end() ? 0 : static_cast<std::size_t>(at - interfaces_.begin());
}

std::string WireNode::mac_of(std::size_t port) {
  std::string mac = test::kOwnMac;
  mac[13] = static_cast<char>('0' + port);  // as SteppedGroup::default_ports() has them
  return mac;
}

}  // namespace sluice::conformance
