#pragma once

#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "dataplane/pipeline/next_hop.h"
#include "dataplane/pipeline/spsc_ring.h"

namespace sluice::pipeline {

// How a worker gets from an address to a MAC
//
//   address --RouteTable--> (port, on-link address or gateway) --NextHopDirectory--> index
//   index --NextHopTable--> word {MAC, port, state}
//
// The first two steps happen once per new flow (the entry keeps the index), the last per packet. An
// address the directory does not know yet is asked for over the worker's request ring; the
// rtnetlink thread lets the kernel resolve it, adds it (next_hop_places.h) and writes the word.
// Until then up to 8 packets wait in the worker (hop_queue.h).

/// The word that says "the host knows the way".
inline constexpr NextHopIndex kHostHop{0};

/// Where packets for one address go. `port` and `via` are meaningless for kHostHop.
struct ResolvedHop {
  NextHopIndex index = NextHopIndex::kNone;  ///< kNone: the directory does not know it yet
  PortIndex port = PortIndex::kNone;
  core::IpAddress via;   ///< on-link address or gateway
  bool vouched = false;  ///< a backend or a gateway: no sender of packets can make it up
};

/// A worker asks for the neighbour `address` on `port`.
struct NeighbourRequest {
  PortIndex port = PortIndex::kNone;
  core::IpAddress address;
  bool vouched = false;  ///< as in ResolvedHop
  bool seen = false;     ///< it has just shown itself on the link: nobody far away made it up
};
using NeighbourRequestRing = SpscRing<NeighbourRequest>;

/// (port, address) -> index of its word. Limit: `size` addresses (at most 65534), index 0 is the
/// host.
///
/// Entries keep the index, so it goes to another address in three steps only: forget() marks it,
/// add() of the same address takes that back; retire() makes find() blind for all that are marked;
/// recycle() lets them be used again, once every worker has read a view of a later epoch, after
/// which no entry uses an index without having asked find() anew.
///
/// Thread: find() by the workers and the one thread that mirrors neighbours, read() by any, the
/// rest by that one. A name is written before the cell that leads to it is stored with release;
/// what find() looks through is freed, and a name written anew, only when no worker can see it any
/// more.
class NextHopDirectory {
 public:
  explicit NextHopDirectory(std::size_t size);

  /// @return NextHopIndex::kNone: not known (yet).
  [[nodiscard]] NextHopIndex find(PortIndex port, const core::IpAddress& address) const noexcept;
  [[nodiscard]] NextHopWord read(NextHopIndex i) const noexcept { return words_.read(i); }

  /// Finds or makes the index of an address; a new one starts kUnresolved.
  /// @param leave  a new one is made only if more than so many places are free.
  /// @return NextHopIndex::kNone: no place.
  NextHopIndex add(PortIndex port, const core::IpAddress& address, std::size_t leave = 0);
  void write(NextHopIndex i, NextHopWord word) noexcept { words_.write(i, word); }

  /// Nobody wants the address any more.
  void forget(PortIndex port, const core::IpAddress& address);
  /// True when it is worth the while: an eighth of all is forgotten, and nothing is retired.
  [[nodiscard]] bool should_retire() const noexcept {
    return retired_.empty() && forgotten_ != 0 && forgotten_ * 8 >= words_.size();
  }
  [[nodiscard]] bool has_retired() const noexcept { return !retired_.empty(); }
  /// Precondition: !has_retired().
  void retire();
  void recycle();

  /// What index i stands for; i in [1, used()).
  [[nodiscard]] NeighbourRequest name(NextHopIndex i) const noexcept {
    const Name& n = names_[static_cast<std::uint16_t>(i)];
    return {n.port, n.address, false, false};
  }
  [[nodiscard]] std::size_t used() const noexcept { return used_; }
  [[nodiscard]] std::size_t size() const noexcept { return words_.size(); }
  /// Places that add() can give.
  [[nodiscard]] std::size_t available() const noexcept {
    return words_.size() - used_ + free_.size();
  }

 private:
  struct Name {
    PortIndex port = PortIndex::kNone;
    bool listed = false;     ///< find() leads to it
    bool forgotten = false;  ///< and nobody wants it
    core::IpAddress address;
  };
  using Cells = std::vector<std::atomic<std::uint32_t>>;  // open addressing, load <= 1/2; 0: empty
  void insert(Cells& cells, std::uint32_t index);

  NextHopTable words_;
  std::vector<Name> names_;
  std::unique_ptr<Cells> cells_;
  std::unique_ptr<Cells> old_cells_;  ///< until recycle(): a worker may look at them
  std::atomic<const Cells*> current_;
  std::size_t used_ = 1;
  std::size_t forgotten_ = 0;
  std::vector<std::uint32_t> retired_;
  std::vector<std::uint32_t> free_;
};

}  // namespace sluice::pipeline
