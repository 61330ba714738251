#pragma once

#include <cstdint>
#include <map>
#include <unordered_map>
#include <vector>

#include "control/compile/compile.h"
#include "dataplane/core/fwd/table_builder.h"

namespace sluice::compile {

/// One service port that wants a frontend.
struct Claim {
  core::ServiceSlot slot = core::ServiceSlot::kNone;
  core::FrontendKind kind = core::FrontendKind::kClusterIp;
  bool dispatches = false;        ///< has something to send to (P-4, P-5)
  std::int64_t created = 0;       ///< creationTimestamp, absent = INT64_MAX
  std::uint16_t port = 0;         ///< service port number: order within one Service
  const model::ObjectName* service = nullptr;  ///< owned by the caller, outlives the claim
};

/// Who gets a frontend that several claim (24.5): of those that have something to send to the older
/// Service (then by namespace/name); only if none has, the oldest. The losers are reported.
class FrontendContest {
 public:
  void add(const core::FrontendKey& key, const Claim& claim);
  void remove(const core::FrontendKey& key, core::ServiceSlot slot, core::FrontendKind kind);
  /// Writes the winners of all keys touched since the last call into the builder.
  /// @return whether the report may be another.
  bool settle(core::TableBuilder& builder);
  [[nodiscard]] bool claimed(const core::FrontendKey& key) const {
    const auto at = contests_.find(key);
    return at != contests_.end() && !at->second.claims.empty();
  }
  /// So many more will be claimed.
  void expect(std::size_t frontends) { contests_.reserve(contests_.size() + frontends); }
  /// Lines about every contested frontend, in the order of the keys.
  void append_report(std::vector<ReportLine>& lines) const;
  void clear();

 private:
  struct Hash {
    std::size_t operator()(const core::FrontendKey& key) const noexcept { return key.hash(); }
  };
  struct Contest {
    std::vector<Claim> claims;  ///< empty: to be forgotten by settle()
    bool touched = false;       ///< since the last settle()
  };
  using Contests = std::unordered_map<core::FrontendKey, Contest, Hash>;
  void touch(Contests::value_type& contest);

  Contests contests_;
  std::vector<Contests::value_type*> touched_;
  std::map<core::FrontendKey, std::vector<ReportLine>> lost_;
};

}  // namespace sluice::compile
