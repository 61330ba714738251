#pragma once

#include <map>
#include <span>
#include <tuple>

#include "dataplane/core/fwd/decide.h"

namespace sluice::conformance {

/// Session affinity by the letter of A-1..A-7, for the core subject: per client address and
/// endpoint the time of the last new flow. Time is the case's own.
class AffinityMemory {
 public:
  void advance(double seconds) { now_ += seconds; }

  /// the first candidate with an unexpired entry. @return kNone: no pin applies.
  [[nodiscard]] core::EndpointIndex find(const core::Decision& d, const core::IpAddress& client) {
    for (const core::EndpointIndex i : d.eligible) {
      const auto at = last_.find(key(d, client, i));
      if (at != last_.end() && now_ - at->second < d.affinity_seconds) {
        return i;
      }
    }
    return core::EndpointIndex::kNone;
  }

  /// every new flow refreshes the entry of its endpoint.
  void record(const core::Decision& d, const core::IpAddress& client, core::EndpointIndex i) {
    last_[key(d, client, i)] = now_;
  }

  /// an endpoint that left takes its memory along; so does a Service without affinity.
  void forget_departed(const core::ForwardingTable& table) {
    std::erase_if(last_, [&](const auto& item) {
      const auto& [slot, client, address, port] = item.first;
      const core::ServicePort* service = table.service(slot);
      return service == nullptr || service->affinity_seconds == 0 ||
             service->find_endpoint(address, port) == nullptr;
    });
  }

 private:
  using Key = std::tuple<core::ServiceSlot, core::IpAddress, core::IpAddress, std::uint16_t>;
  static Key key(const core::Decision& d, const core::IpAddress& client, core::EndpointIndex i) {
    const core::Endpoint& e = d.service->endpoint(i);
    return {d.slot, client, e.address, e.port};
  }
  std::map<Key, double> last_;
  double now_ = 0;
};

}  // namespace sluice::conformance
