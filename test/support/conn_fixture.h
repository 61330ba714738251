#pragma once

#include <cstdint>
#include <cstdlib>
#include <map>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "dataplane/core/conn/conn_table.h"

namespace sluice::test {

/// Aligned memory for the entry arrays, filled with rubbish: a table must not count on zeros.
class EntryArena {
 public:
  explicit EntryArena(std::size_t bytes)
      : size_(bytes),
        data_(static_cast<std::byte*>(std::aligned_alloc(64, (bytes + 63) / 64 * 64))) {
    std::memset(data_.get(), 0xa5, bytes);
  }
  [[nodiscard]] std::span<std::byte> span() const { return {data_.get(), size_}; }

 private:
  struct Free {
    void operator()(std::byte* p) const { std::free(p); }
  };
  std::size_t size_;
  std::unique_ptr<std::byte, Free> data_;
};

/// Remembers what a table released.
class ReleaseLog {
 public:
  template <class Hot>
  void released(core::EntryIndex i, const Hot& hot, const core::ColdEntry&,
                core::ReleaseReason why) noexcept {
    log_.emplace_back(i, why);
    ++by_endpoint_[hot.endpoint];
  }
  [[nodiscard]] std::size_t count() const { return log_.size(); }
  [[nodiscard]] std::size_t count(core::ReleaseReason why) const {
    std::size_t n = 0;
    for (const auto& [i, reason] : log_) {
      n += reason == why ? 1 : 0;
    }
    return n;
  }
  [[nodiscard]] std::size_t of(core::EndpointId id) const {
    const auto it = by_endpoint_.find(id);
    return it == by_endpoint_.end() ? 0 : it->second;
  }
  [[nodiscard]] const auto& log() const { return log_; }

 private:
  std::vector<std::pair<core::EntryIndex, core::ReleaseReason>> log_;
  std::map<core::EndpointId, std::size_t> by_endpoint_;
};

template <class F>
typename F::Address numbered_address(std::uint32_t number);
template <>
inline core::Ipv4Address numbered_address<core::Ipv4>(std::uint32_t number) {
  return core::Be32::from_host(number);
}
template <>
inline core::Ipv6Address numbered_address<core::Ipv6>(std::uint32_t number) {
  core::Ipv6Address a;
  a.bytes[0] = 0xfd;
  core::Be32::from_host(number).store(&a.bytes[12]);
  return a;
}

inline constexpr std::uint8_t kTcp = static_cast<std::uint8_t>(core::Protocol::kTcp);
inline constexpr std::uint8_t kUdp = static_cast<std::uint8_t>(core::Protocol::kUdp);
inline constexpr std::uint8_t kSctp = static_cast<std::uint8_t>(core::Protocol::kSctp);

/// Flow number `n`: client 10.0.0.0 + n / 50000, port 10000 + n % 50000 to 203.0.113.10:80, backend
/// 10.244.1.21:8080, client address kept.
template <class F>
core::NewConn<F> nat_flow(std::uint32_t n, std::uint8_t proto = kTcp,
                          std::uint32_t backend = 0x0af40115) {
  core::NewConn<F> c;
  const auto client = numbered_address<F>(0x0a000000 + n / 50000);
  const auto port = core::Be16::from_host(static_cast<std::uint16_t>(10000 + n % 50000));
  c.forward = {client, numbered_address<F>(0xcb00710a), port, core::Be16::from_host(80), proto, {}};
  c.reply = {numbered_address<F>(backend), client, core::Be16::from_host(8080), port, proto, {}};
  c.endpoint = static_cast<core::EndpointId>(backend & 0xff);
  return c;
}

/// A source-translated flow: reply goes to 192.0.2.11:`port`.
template <class F>
core::NewConn<F> fullnat_flow(std::uint32_t n, std::uint16_t port, std::uint8_t proto = kTcp) {
  core::NewConn<F> c = nat_flow<F>(n, proto);
  c.mode = core::ForwardingMode::kFullNat;
  c.flags = core::kEntrySnatPort;
  c.reply.dst = numbered_address<F>(0xc000020b);
  c.reply.dport = core::Be16::from_host(port);
  return c;
}

/// A table with its memory and a clock that tests set.
template <class F, class Index>
class TableUnderTest {
 public:
  using Table = core::ConnTable<F, Index>;

  explicit TableUnderTest(Index index, const core::ConnTableConfig& config)
      : arena_(Table::memory_bytes(config.capacity)),
        table_(config, std::move(index), arena_.span()) {}

  core::CreateOutcome create(core::NewConn<F> conn) {
    conn.forward_hash = table_.hash(conn.forward);
    return table_.create(conn, now_ns, log);
  }
  core::EntryIndex created(const core::NewConn<F>& conn) {
    const auto outcome = create(conn);
    const bool done = outcome.result() == core::CreateResult::kCreated;
    return done ? outcome.index() : core::EntryIndex::kNone;
  }
  /// SYN-ACK and ACK of the entry's handshake.
  void establish(core::EntryIndex i) {
    table_.on_packet(i, core::Direction::kReply, core::kTcpSyn | core::kTcpAck, now());
    table_.on_packet(i, core::Direction::kForward, core::kTcpAck, now());
  }
  void packet(core::EntryIndex i, core::Direction direction, std::uint8_t flags) {
    table_.on_packet(i, direction, flags, now());
  }
  [[nodiscard]] core::Tick now() const { return core::tick_of_ns(now_ns); }
  void advance_ms(std::uint64_t ms) { now_ns += ms * 1'000'000; }
  /// Polls until nothing is left to do at this time.
  void settle() {
    for (int i = 0; i < 64; ++i) {
      table_.expire(now(), log);
    }
  }
  /// Moves the clock by `ms` in steps of 100 ms, polling like a worker.
  void run_ms(std::uint64_t ms) {
    for (std::uint64_t done = 0; done < ms; done += 100) {
      advance_ms(100);
      settle();
    }
  }
  Table& table() { return table_; }

  std::uint64_t now_ns = 1'000'000'000'000;
  ReleaseLog log;

 private:
  EntryArena arena_;
  Table table_;
};

}  // namespace sluice::test
