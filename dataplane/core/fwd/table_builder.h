#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "dataplane/core/fwd/forwarding_table.h"
#include "dataplane/core/fwd/parallel.h"
#include "dataplane/core/sink.h"

namespace sluice::core {

/// Builds generation g+1 from generation g: pages and shards that changed are copied, the rest is
/// shared. Cost grows with the change, not with the table (but for the vector of page pointers).
///
/// Example: `TableBuilder b(old); b.set_service(slot, block); auto table = b.freeze();`
///
/// Thread: one at a time; not on the fast path.
class TableBuilder {
 public:
  /// @param base nullptr: starts from an empty table of generation 0.
  explicit TableBuilder(TablePtr base);

  void set_node(NodePart node);
  /// Adds or replaces a block. Fills `by_address` and the plans of its scheduler. An equal block is
  /// no change.
  void set_service(ServiceSlot slot, ServicePort block);

  /// What set_service() does with a block alone.
  struct Prepared {
    ForwardingTable::BlockPtr block;  ///< nullptr: equal to the present one
  };
  /// For many blocks at once. Thread: any. @param present  the base's block in that slot.
  [[nodiscard]] static Prepared prepare(ServicePort block, const ServicePort* present);
  void set_service(ServiceSlot slot, Prepared block);
  void remove_service(ServiceSlot slot);
  void set_frontend(const FrontendKey& key, Frontend frontend);
  void remove_frontend(const FrontendKey& key);

  /// Checks the invariants of everything that changed and makes the table. `epoch` grows iff an
  /// endpoint left its block, stopped serving UDP (CT-2), or a service port left.
  /// Errors: a violated invariant; nothing was made and the base stays valid. Call once.
  /// @param parallel  how to check large changes; the result does not depend on it.
  [[nodiscard]] Result<TablePtr> freeze(const ParallelFor& parallel = one_after_another);

 private:
  struct ServiceChange {
    std::uint32_t slot = 0;
    ForwardingTable::BlockPtr block;  ///< nullptr: remove
  };
  struct FrontendChange {
    FrontendKey key;
    Frontend value;  ///< slot kNone: remove
  };
  using FrontendChanges = std::span<FrontendChange>;

  /// The base's block.
  [[nodiscard]] ForwardingTable::BlockPtr present(std::uint32_t slot) const;
  void settle_services();
  void apply_services(ForwardingTable& next);
  void apply_frontends(ForwardingTable& next, const ParallelFor& parallel);
  void sort_by_shard();
  void settle_shard(FrontendChanges& changes) const;
  [[nodiscard]] static std::shared_ptr<const ForwardingTable::Shard> rebuild(
      const ForwardingTable::Shard* old, FrontendChanges changes);
  [[nodiscard]] Result<void> check(const ForwardingTable& next, const ParallelFor& parallel) const;
  [[nodiscard]] Result<void> check_service(const ForwardingTable& next,
                                           const ServiceChange& change) const;

  TablePtr base_;
  std::shared_ptr<const NodePart> node_;  ///< nullptr: unchanged
  // In the order they were asked for; of one slot or key the last one holds. freeze() leaves what
  // really changes the base.
  std::vector<ServiceChange> services_;
  std::vector<FrontendChange> frontends_;
  std::vector<FrontendChanges> by_shard_;  ///< of `frontends_`, sorted by key; freeze() only
};

/// True when flows to an endpoint may have to leave (CT-2): it is gone or, for UDP, no longer
/// serves.
/// @param now  the endpoint by now; null: it is gone.
[[nodiscard]] inline bool endpoint_left(const Endpoint& was, const Endpoint* now,
                                        Protocol protocol) noexcept {
  return now == nullptr || (protocol == Protocol::kUdp && was.serving && !now->serving);
}
/// True when an endpoint of `before` left.
[[nodiscard]] bool destination_left(const ServicePort& before, const ServicePort& after) noexcept;

}  // namespace sluice::core
