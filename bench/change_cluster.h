#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "bench/change_rig.h"
#include "sluice/v1/cluster.pb.h"

namespace sluice::bench {

/// Services of `endpoints` endpoints each, whose first endpoint has a revision: raising it is one
/// endpoint change. Thread: one.
class ChangeCluster {
 public:
  ChangeCluster(std::size_t services, std::size_t endpoints)
      : endpoints_(endpoints), revisions_(services) {}

  [[nodiscard]] std::size_t services() const { return revisions_.size(); }
  [[nodiscard]] std::size_t endpoints() const { return endpoints_; }
  /// The first endpoint of Service i becomes another.
  void change(std::size_t i) { ++revisions_[i]; }
  void change_all();

  /// The upsert that makes the last change() of Service i.
  [[nodiscard]] v1::UpdateRequest update_of(std::size_t i) const;
  /// The whole cluster in pages.
  [[nodiscard]] std::vector<v1::ReplaceSnapshotRequest> snapshot() const;
  /// A flow that only reaches the first endpoint of Service i as it is now.
  [[nodiscard]] Probe probe(std::size_t i) const;

 private:
  [[nodiscard]] std::string address(std::size_t i, std::size_t endpoint) const;
  void fill_slice(std::size_t i, v1::EndpointSlice& slice) const;

  std::size_t endpoints_;
  std::vector<std::size_t> revisions_;
};

}  // namespace sluice::bench
