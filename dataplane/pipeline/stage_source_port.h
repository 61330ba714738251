#pragma once

// Stage: source translation of a new flow: an address and a port of this worker's share of the pool
// (core/conn/snat_ports.h). Included by worker.h.

#include "dataplane/pipeline/worker.h"

namespace sluice::pipeline {

/// Completes conn.reply and its flags. Addresses of the pool are tried in turn from a place that
/// the flow's hash gives; without a pool it is the address of the egress port (P-9).
/// @return false: no free port to this backend.
template <PacketIo Io, class I4, class I6, WorkerClock C>
template <class F>
bool Worker<Io, I4, I6, C>::choose_source(core::NewConn<F>& conn, PortIndex egress) noexcept {
  const auto& pool = tables_->table->node().of(F::kFamily).snat_addresses;
  const core::IpAddress* own = own_address(*tables_, egress, F::kFamily);
  const std::span<const core::IpAddress> addresses =
      !pool.empty()    ? std::span<const core::IpAddress>(pool)
      : own != nullptr ? std::span<const core::IpAddress>(own, 1)
                       : std::span<const core::IpAddress>();
  core::SnatPorts& ports = tables_->source_pool->of_worker(config_.index);
  for (std::size_t n = 0; n < addresses.size(); ++n) {
    const auto& address = addresses[(conn.forward_hash + n) % addresses.size()];
    conn.reply.dst = address_as<F>(address);
    const core::PortChoice choice =
        ports.choose(conns<F>(), conn.reply, conn.forward_hash, *tables_->excluded, now_);
    if (choice.result != core::PortResult::kExhausted) {
      counters_.add(Counter::kConnSnatReused,
                    choice.result == core::PortResult::kReusedHeld ? 1 : 0);
      conn.reply.dport = choice.port;
      conn.flags |= core::kEntrySnatPort;
      return true;
    }
  }
  return false;
}

}  // namespace sluice::pipeline
