#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "control/compile/empty.h"
#include "control/compile/select.h"
#include "test/support/small_cluster.h"

namespace sluice::compile {

/// An endpoint described by letters: R ready, S serving, T terminating, L local.
struct Spec {
  std::string address;
  std::string flags;
  std::vector<std::string> zones = {};
  std::vector<std::string> nodes = {};
};

/// Selects among endpoints on node "kestrel" in zone "west".
class Selecting : public testing::Test {
 protected:
  core::ServicePort& select(const std::vector<Spec>& specs) {
    sources_.resize(specs.size());
    std::vector<MergedEndpoint> merged;
    for (std::size_t i = 0; i < specs.size(); ++i) {
      const auto has = [&](char c) { return specs[i].flags.find(c) != std::string::npos; };
      sources_[i].for_zones = specs[i].zones;
      sources_[i].for_nodes = specs[i].nodes;
      MergedEndpoint m{test::ip(specs[i].address),
                       80,
                       {has('R'), has('S'), has('T')},
                       has('L'),
                       &sources_[i]};
      block_.endpoints.push_back(
          {m.address, 80, weight_of(specs[i]), {}, m.local, has('R'), has('S'), has('T')});
      merged.push_back(m);
    }
    select_endpoints(merged, node_, block_);
    set_empty_verdicts(node_.profile, block_);
    return block_;
  }
  static std::uint16_t weight_of(const Spec& s) {
    return s.flags.find('0') != std::string::npos ? 0 : 1;
  }
  void local_policy(bool internal, bool external) {
    block_.internal_policy = internal ? core::TrafficPolicy::kLocal : core::TrafficPolicy::kCluster;
    block_.external_policy = external ? core::TrafficPolicy::kLocal : core::TrafficPolicy::kCluster;
    block_.externally_accessible = external;
    block_.uses_cluster = !internal || external;
    block_.uses_local = internal || external;
  }

  NodeContext node_ = [] {
    NodeContext n;
    n.node_name = "kestrel";
    n.zone = "west";
    return n;
  }();
  core::ServicePort block_;
  std::vector<model::SliceEndpoint> sources_;
};

}  // namespace sluice::compile
