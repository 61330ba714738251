#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "dataplane/core/metrics.h"
#include "dataplane/core/sink.h"
#include "kni/nftables/kernel.h"
#include "kni/nftables/plan.h"
#include "kni/nftables/render.h"
#include "kni/nftables/room.h"

namespace sluice::kni {

// Theory of operation
//
// apply() makes `ip sluice` and `ip6 sluice` what the table says, both in one transaction; only new
// chains go ahead in one of their own, without an effect (plan.h, take_first()). As long
// as nobody else touches them the kernel holds what the last apply wrote, so only the difference
// between the two tables is rendered and sent. Each transaction names the generation it was made
// for; the kernel refuses it when anyone committed since.
//
// The generation counts every table's commits. Each of another is heard as an event, and what it
// was about; one that was not heard shows by its number. Those about our tables, and those not
// heard, are a suspicion. Our tables' handles are looked at at once then (a flushed rule set shows
// there); when apply() is called without a change or `verify_within` has passed everything is
// written anew: sets, chains and rules are read and compared, elements are not, because to read
// them costs many times what it costs to flush and fill every set in the same transaction. The
// same happens at the start and after a failure. After two refusals in a row the transaction goes
// without the generation, and all is written once more behind it.

/// Reads by any thread.
struct NftablesCounters {
  std::atomic<std::uint64_t> full_syncs{0};  ///< everything was written
  std::atomic<std::uint64_t> partial_syncs{0};
  std::atomic<std::uint64_t> sync_failures{0};
  std::atomic<std::uint64_t> conflicts{0};  ///< others committed between our look and commit
  std::atomic<std::uint64_t> foreign_commits{0};
  std::atomic<std::uint64_t> repairs{0};  ///< our tables had been changed from outside
  std::atomic<std::uint64_t> listen_failures{0};  ///< the kernel would not tell of others again
};

/// Removes tables, by name, in both families, if they are there. Errors: one line.
[[nodiscard]] core::Result<void> remove_tables(nft::Kernel& kernel,
                                               const std::vector<std::string>& names);

/// Writes tables into the kernel's nftables. Thread: one, but counters.
class NftablesSink : public core::TableSink, public core::MetricSource {
 public:
  using Clock = std::chrono::steady_clock;
  struct Options {
    /// Longest time after which a foreign commit is followed by a look at our tables.
    std::chrono::milliseconds verify_within{30000};
    nft::Scope scope;
    /// Tables of another proxy, by name, in both families: they go in the transaction that brings
    /// ours into effect for the first time. They may be absent.
    std::vector<std::string> replaces;
    std::function<void(const std::string&)> warn;  ///< takes a line for the log; may be empty
    std::function<Clock::time_point()> clock = [] { return Clock::now(); };
  };

  NftablesSink(std::unique_ptr<nft::Kernel> kernel, Options options);

  [[nodiscard]] core::Capabilities capabilities() const override;
  /// Errors: one line; nothing was changed, the next apply() is a full one.
  core::Result<core::ApplyReport> apply(const core::TablePtr& table) override;
  /// Removes our tables, if they are there.
  core::Result<void> cleanup() override;

  /// What service ports share in the tables in force, for those who check the kernel.
  [[nodiscard]] const nft::SharesOfBoth& shares() const noexcept { return shares_; }
  [[nodiscard]] const NftablesCounters& counters() const noexcept { return counters_; }
  /// Thread: any.
  void collect(core::MetricVisitor& out) const override;

 private:
  core::Result<void> sync(const core::ForwardingTable& table);
  core::Result<void> look_around(const core::ForwardingTable* wanted);
  void hear(const nft::Events& events);
  void tell_of_repair();
  core::Result<void> sync_all(const core::ForwardingTable& table);
  core::Result<void> sync_change(const core::ForwardingTable& table);
  core::Result<bool> write_all(const nft::Rendered& wanted, bool with_generation);
  core::Result<bool> write_change(const nft::RenderedChange& change);
  core::Result<bool> commit(const nft::Batch& batch, std::uint32_t generation);
  core::Result<bool> send(nft::Plan v4, nft::Plan v6, bool with_generation);
  [[nodiscard]] nft::Batch make_batch(const nft::Plan& v4, const nft::Plan& v6,
                                      bool with_generation, bool last) const;
  void forget(const std::function<bool(std::uint32_t)>& gone);
  void warn(const std::string& line) const;
  void tell(const std::vector<core::Unsupported>& before,
            const std::vector<core::Unsupported>& now) const;
  [[nodiscard]] core::ApplyReport report(const core::ForwardingTable& table) const;

  std::unique_ptr<nft::Kernel> kernel_;
  Options options_;
  NftablesCounters counters_;
  core::SyncDurations durations_;
  core::TablePtr in_force_;  ///< null: unknown
  nft::SharesOfBoth shares_;
  nft::UnsupportedBySlot unsupported_;
  nft::TableHandles handles_;
  nft::Rooms rooms_v4_;
  nft::Rooms rooms_v6_;
  std::uint32_t generation_ = 0;  ///< up to which all commits are ours or known of
  bool was_full_ = false;         ///< the last sync was a full one, or became one
  bool partly_sent_ = false;      ///< new chains of the change that was refused then are in force
  bool touched_ = false;          ///< others changed our tables
  bool missed_ = false;           ///< others may have, we could not hear
  std::optional<Clock::time_point> suspect_since_;
  nft::Commit last_foreign_;
};

}  // namespace sluice::kni
