#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "control/model/model.h"
#include "dataplane/core/net/address.h"

namespace sluice::http {

/// Two clocks read together: ages are monotonic, printed times are not.
struct Moment {
  std::chrono::steady_clock::time_point steady;
  std::chrono::system_clock::time_point wall;
};

/// Where the state in force came from.
enum class DataSource : std::uint8_t { kNone, kRestored, kControlPlane };

/// What /healthz and /livez say at one moment (H-9..H-12).
struct HealthStatus {
  struct OfFamily {
    std::chrono::system_clock::time_point last_updated;
    bool healthy = true;
  };
  bool healthy = true;        ///< rules are in force, or about to be
  bool node_eligible = true;  ///< H-11
  std::string reason;         ///< why not healthy, one line; "" when healthy
  std::chrono::system_clock::time_point now;
  std::chrono::system_clock::time_point last_updated;  ///< newest of the families
  std::map<core::Family, OfFamily> families;
  DataSource source = DataSource::kNone;
  std::uint64_t applied_version = 0;
  std::chrono::seconds applied_age{0};  ///< since the last successful sync
};

// Decides whether this node's rules can be trusted (H-8..H-12, F87). Thread: any.
//
// Theory of operation: health follows the oldest change that is not in force, never the last try
// and never the mere passing of time. A request marks a family as pending unless it is marked
// already; a success takes the mark away. A family is unhealthy when its mark is two sync periods
// old. Before the first success the start counts as the mark, so a node that never gets a snapshot
// turns unhealthy too, after the same time, and says "no snapshot" until then.
class HealthTracker {
 public:
  struct Options {
    std::chrono::milliseconds sync_period{30000};  ///< the deadline is twice this
    std::vector<core::Family> families{core::Family::kIpv4, core::Family::kIpv6};
  };
  HealthTracker(const Options& options, const Moment& start);

  /// A change waits to be applied.
  void requested(const Moment& now);
  void requested(core::Family family, const Moment& now);
  /// A sync was successful: everything asked for before it began is in force.
  void succeeded(DataSource source, std::uint64_t version, const Moment& now);
  void succeeded(core::Family family, const Moment& now);
  /// nullptr: the Node object is unknown.
  void set_node(const model::Node* node);
  /// Something that no sync repairs: a worker stopped, a thread ended. "": all is well.
  void set_broken(std::string reason);

  [[nodiscard]] HealthStatus status(const Moment& now) const;
  /// H-9, over all families.
  [[nodiscard]] bool healthy(const Moment& now) const { return status(now).healthy; }

 private:
  struct State {
    std::optional<std::chrono::steady_clock::time_point> oldest_pending;
    std::chrono::system_clock::time_point last_updated;
    bool ever_updated = false;
  };
  void mark(State& state, const Moment& now) const;
  void clear(State& state, const Moment& now);

  const std::chrono::milliseconds deadline_;
  mutable std::mutex mutex_;
  std::map<core::Family, State> families_;
  std::chrono::steady_clock::time_point last_success_;
  bool node_eligible_ = false;  ///< the Node object is not known yet
  std::string broken_;
  DataSource source_ = DataSource::kNone;
  std::uint64_t version_ = 0;
};

/// H-11.
[[nodiscard]] bool is_eligible(const model::Node* node);

}  // namespace sluice::http
