#pragma once

#include <functional>

#include "control/http/health_server.h"
#include "control/publish/publisher.h"
#include "dataplane/core/metrics.h"

namespace sluice::http {

/// What the publisher and the health server know, by kube-proxy's names (AD-2), and of each sink by
/// ours. Thread: any.
class PublisherMetrics : public core::MetricSource {
 public:
  /// @param answers  of the health server. All borrowed; outlive the object.
  PublisherMetrics(const publish::Publisher& publisher, std::function<AnswerCounts()> answers)
      : publisher_(publisher), answers_(std::move(answers)) {}

  void collect(core::MetricVisitor& out) const override;

 private:
  const publish::Publisher& publisher_;
  const std::function<AnswerCounts()> answers_;
};

/// Service ports that have endpoints, but for a Local policy none here (N-5).
void collect_no_local_endpoints(const core::ForwardingTable& table, core::MetricVisitor& out);

}  // namespace sluice::http
