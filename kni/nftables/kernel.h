#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "dataplane/core/sink.h"
#include "kni/nftables/batch.h"
#include "kni/nftables/render.h"

namespace sluice::kni::nft {

/// A commit, as events tell of it.
struct Commit {
  std::uint32_t generation = 0;
  std::uint32_t pid = 0;
  std::string process;
  bool ours = false;  ///< it was about one of our tables, and not only about what rules remember
};

/// What happened since the last look.
struct Events {
  std::vector<Commit> foreign;  ///< commits of others
  bool lost = false;            ///< some could not be delivered
  std::uint32_t refused = 0;    ///< times that the kernel would not let us listen again
};

/// How a transaction ended. All of it is in force or nothing.
struct CommitResult {
  int error = 0;       ///< 0 or errno
  std::string object;  ///< what the first refused message was about
};

/// Numbers of our tables; 0: absent. A table that was made anew has another number.
struct TableHandles {
  std::uint64_t v4 = 0;
  std::uint64_t v6 = 0;
  bool operator==(const TableHandles&) const = default;
};

/// What the rules refused since they were written: of the counters beside reject and drop.
struct Refusals {
  std::uint64_t rejected = 0;
  std::uint64_t dropped = 0;
};

/// The kernel's nftables as the sink needs it; tests put another in its place. Thread: one.
class Kernel {
 public:
  virtual ~Kernel() = default;
  /// Number of the rule set of this network namespace; grows with every commit of anyone.
  virtual core::Result<std::uint32_t> generation() = 0;
  virtual core::Result<TableHandles> handles() = 0;
  /// How much of our tables is read. The kernel walks a set anew for every 32 KiB of an answer, so
  /// reading elements costs the square of their number: that is for those who check.
  enum class Depth : std::uint8_t { kFrame, kElements };
  /// What our tables hold, with rules as digests and without what rules remember. Objects that are
  /// not ours appear as something that no rule set of ours has.
  virtual core::Result<Rulesets> read(Depth depth) = 0;
  virtual core::Result<Refusals> refusals() = 0;
  /// Commits of others during one may go without an event; the generation shows them.
  virtual CommitResult commit(const Batch& batch) = 0;
  /// Removes what is remembered under numbers that are `gone`. @return whether that was a commit.
  virtual core::Result<bool> forget(const std::function<bool(std::uint32_t)>& gone) = 0;
  virtual Events take_events() = 0;
};

/// By netlink, in the network namespace of the calling thread.
/// Errors: no right, or a kernel without nftables.
[[nodiscard]] core::Result<std::unique_ptr<Kernel>> open_kernel();
/// False: this kernel surely has no nftables. True also where nobody may ask. Thread: any.
[[nodiscard]] bool is_in_kernel();

/// A failed transaction as one line that says what to do.
[[nodiscard]] std::string describe(const CommitResult& result);

}  // namespace sluice::kni::nft
