#include "proto/known_fields.h"

#include <algorithm>
#include <array>

namespace sluice::codec {
namespace {

struct Known {
  std::string_view message;
  std::string_view fields;  // separated by blanks
};

// Kubernetes 1.36 API: core/v1, discovery/v1, networking/v1, meta/v1.
constexpr std::array kKnown = {
    Known{"ObjectMeta",
          "uid resourceVersion generation generateName selfLink ownerReferences finalizers "
          "managedFields deletionGracePeriodSeconds clusterName"},
    Known{"Service", "apiVersion kind"},
    Known{"EndpointSlice", "apiVersion kind"},
    Known{"NodeObject", "apiVersion kind"},
    Known{"ServiceCIDR", "apiVersion kind status"},
    Known{"ServiceSpec",
          "selector loadBalancerIP externalName publishNotReadyAddresses ipFamilyPolicy ipFamily "
          "allocateLoadBalancerNodePorts loadBalancerClass topologyKeys"},
    Known{"ServiceStatus", "conditions"},
    Known{"LoadBalancerIngress", "ports"},
    Known{"Endpoint", "targetRef hostname deprecatedTopology"},
    Known{"Taint", "timeAdded"},
};

bool has_word(std::string_view words, std::string_view word) {
  while (!words.empty()) {
    const auto blank = words.find(' ');
    if (words.substr(0, blank) == word) {
      return true;
    }
    words = blank == words.npos ? std::string_view{} : words.substr(blank + 1);
  }
  return false;
}

}  // namespace

bool is_ignored_field(std::string_view message, std::string_view key) {
  if (message == "NodeSpec" || message == "NodeStatus") {
    return true;
  }
  return std::any_of(kKnown.begin(), kKnown.end(), [&](const Known& known) {
    return known.message == message && has_word(known.fields, key);
  });
}

}  // namespace sluice::codec
