// Local-traffic detection: rules Q-5, Q-6 (section 11).
#include "control/compile/detector.h"

#include <optional>

namespace sluice::compile {
namespace {

using Kind = core::LocalDetector::Kind;

// Only the first CIDR of each family counts.
std::optional<core::Cidr> first_cidr(const NodeConfig& config, const model::Node* node,
                                     core::Family family) {
  if (config.detect_local == NodeConfig::DetectLocal::kClusterCidr) {
    for (const core::Cidr& cidr : config.cluster_cidrs) {
      if (cidr.family() == family) {
        return cidr;
      }
    }
    return std::nullopt;
  }
  if (node != nullptr) {
    for (const std::string& text : node->pod_cidrs) {
      const auto cidr = core::parse_cidr(text);
      if (cidr && cidr->family() == family) {
        return cidr;
      }
    }
  }
  return std::nullopt;
}

}  // namespace

core::LocalDetector resolve_detector(const NodeConfig& config, const model::Node* node,
                                     core::Family family) {
  switch (config.detect_local) {
    case NodeConfig::DetectLocal::kClusterCidr:
    case NodeConfig::DetectLocal::kNodeCidr:
      if (const auto cidr = first_cidr(config, node, family)) {
        return {Kind::kCidr, *cidr, ""};
      }
      return {};
    case NodeConfig::DetectLocal::kBridgeInterface:
      if (!config.bridge_interface.empty()) {
        return {Kind::kBridge, {}, config.bridge_interface};
      }
      return {};
    case NodeConfig::DetectLocal::kInterfaceNamePrefix:
      if (!config.interface_name_prefix.empty()) {
        return {Kind::kInterfacePrefix, {}, config.interface_name_prefix};
      }
      return {};
  }
  return {};
}

}  // namespace sluice::compile
