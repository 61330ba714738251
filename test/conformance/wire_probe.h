#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "test/conformance/case.h"
#include "test/conformance/wire_flow.h"

namespace sluice::conformance {

/// Judges probes by the frames of many flows each. Thread: one.
///
/// forward: without affinity the endpoints that take the flows are exactly the wanted ones, each
/// with its share. With affinity all flows go to one of them, and on a node of its own, without
/// memory, the client is pinned until just before its time is over, moves after it, and comes to
/// every endpoint in the course of time.
class ProbeJudge {
 public:
  /// A node like the one in use that has served nothing yet.
  using Fresh = std::function<std::unique_ptr<WireNode>()>;

  /// @param node     where the probes go
  /// @param thorough false: one flow per probe, for the runs that only gather choices
  ProbeJudge(WireNode& node, Fresh fresh, bool thorough);

  /// @return what is wrong, one line each.
  std::vector<std::string> judge(const Probe& probe);
  /// Endpoint of the last probe's first flow; "": not forwarded.
  [[nodiscard]] const std::string& chosen() const { return chosen_; }

  /// A flow as the probe's first packet makes it. @param sport 0: the next unused one.
  [[nodiscard]] WireFlow::Spec spec_of(const Probe& probe, std::uint16_t sport);

 private:
  void judge_refusals(const Probe& probe);
  void judge_forward(const Probe& probe);
  void judge_spread(const Probe& probe);
  void judge_one_endpoint(const Probe& probe);
  void judge_pins(const Probe& probe, std::uint32_t seconds);
  /// Sends one flow and judges all of it. @return its endpoint, "" when it was not forwarded.
  std::string send(WireNode& node, const Probe& probe, std::uint16_t sport);
  void judge_source(const Probe& probe, const WireFlow& flow);
  void judge_labels(const Probe& probe);
  void fail(const std::string& what);
  void expect(const std::string& what, const std::string& wanted, const std::string& got);

  WireNode& node_;
  Fresh fresh_;
  const bool thorough_;
  std::string what_;  ///< the probe in words
  std::string chosen_;
  std::map<std::string, std::string> labels_;  ///< pick -> endpoint
  std::vector<std::string> failures_;
  std::uint32_t flows_ = 0;  ///< so far
};

}  // namespace sluice::conformance
