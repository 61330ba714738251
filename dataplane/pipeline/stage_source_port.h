#pragma once

// Stage: source translation of a new flow: an address and a port of this worker's share of the pool
// (core/conn/snat_ports.h). Included by worker.h.

#include "dataplane/pipeline/worker.h"

namespace sluice::pipeline {

template <PacketIo Io, class I4, class I6, WorkerClock C>
std::span<const core::IpAddress> Worker<Io, I4, I6, C>::source_addresses(
    core::Family family, PortIndex egress) const noexcept {
  const auto& pool = tables_->table->node().of(family).snat_addresses;
  if (!pool.empty()) {
    return pool;
  }
  const core::IpAddress* own = own_address(*tables_, egress, family);
  return own != nullptr ? std::span<const core::IpAddress>(own, 1)
                        : std::span<const core::IpAddress>();
}

/// A flow of this Service was refused: no address had a port to `backend` and the other candidates.
template <PacketIo Io, class I4, class I6, WorkerClock C>
void Worker<Io, I4, I6, C>::note_exhausted(const core::Decision& decision,
                                           const core::IpAddress& backend) noexcept {
  const std::uint32_t tag = tag_of(*decision.service);
  for (const core::IpAddress& address :
       source_addresses(backend.family(), resolve(backend, true).port)) {
    links_.counts.exhausted(config_.index, decision.slot, tag, address);
  }
}

/// The port by which the reply comes to this worker at once, where the I/O layer knows one and it is
/// free. A preference only: without it the reply is handed over.
template <PacketIo Io, class I4, class I6, WorkerClock C>
template <class F>
core::PortChoice Worker<Io, I4, I6, C>::steered_choice(const core::SnatPorts& ports,
                                                       typename F::Key reply, std::uint32_t hash,
                                                       PortIndex egress) noexcept {
  if constexpr (requires { io_.steered_port(egress, reply); }) {
    if (ports.size() != 0) {
      reply.dport = ports.first_port(hash);
      const std::uint16_t port = io_.steered_port(egress, reply);
      reply.dport = core::Be16::from_host(port);
      const bool ours = tables_->source_pool->owners().owner(port) == config_.index;
      if (port != 0 && ours && ports.is_free(conns<F>(), reply, *tables_->excluded, now_)) {
        return {core::PortResult::kFree, reply.dport, 0};
      }
    }
  }
  return {};
}

/// Completes conn.reply and its flags. Addresses of the pool are tried in turn from a place that
/// the flow's hash gives; without a pool it is the address of the egress port (P-9).
/// @return false: no free port to this backend.
template <PacketIo Io, class I4, class I6, WorkerClock C>
template <class F>
bool Worker<Io, I4, I6, C>::choose_source(core::NewConn<F>& conn, PortIndex egress) noexcept {
  const std::span<const core::IpAddress> addresses = source_addresses(F::kFamily, egress);
  core::SnatPorts& ports = tables_->source_pool->of_worker(config_.index);
  core::PortChoice best;
  for (std::size_t n = 0; n < addresses.size(); ++n) {
    const auto address = address_as<F>(addresses[(conn.forward_hash + n) % addresses.size()]);
    typename F::Key reply = conn.reply;
    reply.dst = address;
    core::PortChoice choice = steered_choice<F>(ports, reply, conn.forward_hash, egress);
    if (choice.result != core::PortResult::kFree) {
      choice = ports.choose(conns<F>(), reply, conn.forward_hash, *tables_->excluded, now_);
    }
    // A free port anywhere comes before a held one, and of these the longest held.
    const bool better =
        choice.result == core::PortResult::kFree ||
        (choice.result == core::PortResult::kReusedHeld &&
         (best.result == core::PortResult::kExhausted || choice.held_for < best.held_for));
    if (better) {
      best = choice;
      conn.reply.dst = address;
    }
    if (choice.result == core::PortResult::kFree) {
      break;
    }
  }
  if (best.result == core::PortResult::kExhausted) {
    return false;
  }
  counters_.add(Counter::kConnSnatReused, best.result == core::PortResult::kReusedHeld ? 1 : 0);
  conn.reply.dport = best.port;
  conn.flags |= core::kEntrySnatPort;
  return true;
}

}  // namespace sluice::pipeline
