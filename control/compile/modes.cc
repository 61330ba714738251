// What a forwarding mode cannot do (design section 5, "Forwarding modes"): dr and ipip map no port,
// and only ipip crosses families.
#include "control/compile/modes.h"

#include <algorithm>
#include <charconv>
#include <string>

#include "dataplane/core/fwd/text.h"

namespace sluice::compile {
namespace {

/// The Service says by number that its endpoints have another port. (What counts are the slices;
/// a named port says nothing.)
bool maps_by_number(const model::ServicePortSpec& port) {
  const std::string& text = port.target_port;
  std::int64_t target = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), target);
  return error == std::errc{} && end == text.data() + text.size() && target != 0 &&
         target != port.port;
}

std::string mode_field(const model::Service& service) {
  return service.annotations.contains("sluice.dev/forwarding-mode")
             ? "metadata.annotations[sluice.dev/forwarding-mode]"
             : "spec.forwardingMode";
}

const core::Endpoint* endpoint_of_other_port(const core::ServicePort& block, std::uint16_t port) {
  const auto at = std::find_if(block.endpoints.begin(), block.endpoints.end(),
                               [&](const core::Endpoint& e) { return e.port != port; });
  return at == block.endpoints.end() ? nullptr : &*at;
}

}  // namespace

bool maps_no_port(core::ForwardingMode mode) {
  return mode == core::ForwardingMode::kDr || mode == core::ForwardingMode::kIpip;
}

bool can_have_mode(const model::Service& service, core::ForwardingMode mode, Reporter& report) {
  if (!maps_no_port(mode)) {
    return true;
  }
  const std::string name(core::name_of(mode));
  const bool all_mapped = !service.ports.empty() &&
                          std::all_of(service.ports.begin(), service.ports.end(), maps_by_number);
  if (all_mapped) {
    const auto& first = service.ports.front();
    report.invalid(mode_field(service), "mode " + name +
                                            " maps no port, and this Service maps each, such as " +
                                            std::to_string(first.port) + " to targetPort " +
                                            first.target_port);
    return false;
  }
  if (service.type == "NodePort" && service.external_ips.empty() &&
      service.load_balancer_ingress.empty()) {
    report.invalid(mode_field(service),
                   "mode " + name + " needs an external address that the endpoints have, too; this "
                   "Service has node ports only");
    return false;
  }
  return true;
}

void borrow_endpoints(MergedPorts& own, const MergedPorts& other) {
  for (const auto& [key, endpoints] : other) {
    std::vector<MergedEndpoint>& mine = own[key];
    if (mine.empty()) {
      mine = endpoints;
    }
  }
}

void limit_by_mode(const NormalPort& port, core::ServicePort& block, Reporter& report) {
  if (block.crosses_families()) {
    block.has_internal = false;
    block.internal_when_empty = core::EmptyVerdict::kReject;  // as for no endpoint at all
  }
  if (!maps_no_port(block.mode)) {
    return;
  }
  const std::string mode(core::name_of(block.mode));
  const bool addresses = !block.external_ips.empty() || !block.load_balancer_vips.empty();
  if (const auto* other = endpoint_of_other_port(block, block.port); other != nullptr && addresses) {
    block.mode_refuses_addresses = true;
    report.invalid(indexed("spec.ports", port.index),
                   "mode " + mode + " maps no port: endpoint " +
                       core::to_string(other->address, other->port) + " of " + block.name +
                       " has another than " + std::to_string(block.port) +
                       ", so external traffic to this port is refused");
  }
  if (block.node_port != 0 && endpoint_of_other_port(block, block.node_port) != nullptr) {
    block.mode_refuses_node_port = true;
    report.warning(indexed("spec.ports", port.index, ".nodePort"),
                   "mode " + mode + " maps no port: traffic to node port " +
                       std::to_string(block.node_port) + " is refused");
  }
}

}  // namespace sluice::compile
