#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <type_traits>
#include <utility>

#include "dataplane/core/conn/conn_table.h"
#include "dataplane/core/fwd/decide.h"
#include "dataplane/core/net/encapsulate.h"
#include "dataplane/core/net/icmp.h"
#include "dataplane/core/net/parse_fast.h"
#include "dataplane/core/sched/pick.h"
#include "dataplane/core/sched/scheduler_state.h"
#include "dataplane/pipeline/affinity_pins.h"
#include "dataplane/pipeline/announcement.h"
#include "dataplane/pipeline/batch.h"
#include "dataplane/pipeline/candidates.h"
#include "dataplane/pipeline/connection_counts.h"
#include "dataplane/pipeline/counters.h"
#include "dataplane/pipeline/dump.h"
#include "dataplane/pipeline/family.h"
#include "dataplane/pipeline/fast_port.h"
#include "dataplane/pipeline/fragment_table.h"
#include "dataplane/pipeline/handover.h"
#include "dataplane/pipeline/hop_cache.h"
#include "dataplane/pipeline/hop_queue.h"
#include "dataplane/pipeline/idle.h"
#include "dataplane/pipeline/load_watch.h"
#include "dataplane/pipeline/next_hop_directory.h"
#include "dataplane/pipeline/owner.h"
#include "dataplane/pipeline/packet.h"
#include "dataplane/pipeline/path_mtu.h"
#include "dataplane/pipeline/pending_flows.h"
#include "dataplane/pipeline/planned_flows.h"
#include "dataplane/pipeline/rate_limit.h"
#include "dataplane/pipeline/service_addresses.h"
#include "dataplane/pipeline/steering_cache.h"
#include "dataplane/pipeline/translation.h"
#include "dataplane/pipeline/tunnel_source.h"
#include "dataplane/pipeline/ways.h"
#include "dataplane/pipeline/worker_links.h"
#include "dataplane/pipeline/worker_tables.h"

namespace sluice::pipeline {

/// One worker: the ports' queues it polls, its connections, its counters. poll_once() is the table
/// of contents of the fast path; each stage is in the header named beside it. README.md tells the
/// walk of a packet.
///
/// Thread: the one that calls poll_once(); request and status objects (WorkerLinks) say for
/// themselves who else may touch them. No call allocates, locks or throws.
template <PacketIo Io, class Index4, class Index6, WorkerClock Clock>
class Worker {
 public:
  using Conns4 = core::ConnTable<core::Ipv4, Index4>;
  using Conns6 = core::ConnTable<core::Ipv6, Index6>;
  template <class F>
  using Conns = std::conditional_t<F::kFamily == core::Family::kIpv4, Conns4, Conns6>;

  Worker(const WorkerConfig& config, const WorkerLinks& links, Io& io, Conns4 conns4, Conns6 conns6,
         Clock clock)
      : config_(config),
        links_(links),
        io_(io),
        clock_(std::move(clock)),
        conns4_(std::move(conns4)),
        conns6_(std::move(conns6)),
        counters_(links.counters),
        releaser_{links.counts, links.counters, config.index},
        scheduler_(config.service_slots, static_cast<std::uint32_t>(config.index),
                   static_cast<std::uint32_t>(config.workers), config.seed,
                   links.counts.view(config.index)),
        pins_(config.affinity_pins, config.service_slots, config.seed),
        steering_(config.index, config.workers, config.steering_memory),
        elsewhere_(config.steering_window),
        load_(config.overload_bursts, config.flood_bursts) {}
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  /// One turn: everything that has come since the last one. @return true: there was work.
  bool poll_once() noexcept {
    std::size_t frames = receive();  // stage_receive.h
    open_poll();                     // the tables, after the frames; the clock, once
    serve_batch();
    while (receive_handed_over()) {  // emptied, at most kRingBursts bursts
      frames += batch_.size;
      open_tables();
      serve_batch();
      serve_answered();  // stage_affinity.h: what waited behind a packet that is back
    }
    while (receive_from_host()) {
      frames += batch_.size;
      serve_batch();
    }
    upkeep();  // stage_upkeep.h: waiting packets, expiry, dumps
    flush();
    counters_.add(frames != 0 ? Counter::kPolls : Counter::kPollsEmpty);
    return frames != 0;
  }

  /// Polls until `stop`; `act(IdleAction)` does what the idle strategy asks for.
  template <class Act>
  void run(const std::atomic<bool>& stop, IdleStrategy strategy, Act&& act) {
    Idle idle(strategy);
    while (!stop.load(std::memory_order_relaxed)) {
      act(idle.after_poll(poll_once()));
    }
    links_.tables.park(config_.index);
  }

  /// Drops what waits here and on the rings to this worker. To be called once all workers of the
  /// group have left run(). Thread: any, alone.
  void drain() noexcept;

  // For status and tests. Thread: the worker's, or any when it stands still.
  [[nodiscard]] const Conns4& conns4() const noexcept { return conns4_; }
  [[nodiscard]] const Conns6& conns6() const noexcept { return conns6_; }
  [[nodiscard]] const WorkerGauges& gauges() const noexcept { return gauges_; }

 private:
  using Hop = ResolvedHop;
  static constexpr std::uint32_t kRingBursts = 4;
  static constexpr std::uint32_t kFragmentsPerTick = 64;  ///< all of them in 8 ticks
  static constexpr std::uint32_t kAnnounceRounds = 3, kAnnounceBurst = 16;
  static constexpr std::size_t kAnnouncements = 4;

  void serve_batch() noexcept {
    if (batch_.size == 0) {
      return;
    }
    if (tables_ == nullptr) [[unlikely]] {
      give_all_to_host();
      return;
    }
    parse_batch();              // stage_parse.h
    serve_flows<core::Ipv4>();  // stage_lookup.h: bulk lookup, hits
    serve_flows<core::Ipv6>();
    serve_others();  // stage_parse.h: ICMP, ARP, fragments, ...
    serve_misses();  // stage_miss.h: after every hit
  }

  // stage_receive.h
  std::size_t receive() noexcept;
  bool receive_handed_over() noexcept;
  void take_message(const HandoverMessage& message, BatchSizes& sizes) noexcept;
  bool receive_from_host() noexcept;
  void open_poll() noexcept;
  void open_tables() noexcept;
  void take_over_tables() noexcept;
  void give_all_to_host() noexcept;
  void flush() noexcept;

  // stage_parse.h
  void parse_batch() noexcept;
  void parse_in_groups() noexcept;
  void parse_and_sort(std::uint32_t i, bool ask, BatchSizes& sizes) noexcept;
  void hash_and_sort(std::uint32_t i, bool ask, BatchSizes& sizes) noexcept;
  [[nodiscard]] bool parse(std::uint32_t i) noexcept;
  void sort_parsed(std::uint32_t i, std::uint32_t hash, BatchSizes& sizes) noexcept;
  template <class F>
  void add_flow(std::uint32_t i, std::uint32_t hash, BatchSizes& sizes) noexcept;
  void complete_checksums() noexcept;
  void complete_checksum(std::uint32_t i) noexcept;
  void serve_others() noexcept;
  void serve_other(std::uint32_t i) noexcept;

  // stage_steer.h: packets known to belong to another worker
  void parse_and_steer() noexcept;
  [[nodiscard]] std::uint32_t known_worker(const SteeringCache& memory, std::uint32_t i,
                                           std::uint32_t hash) const noexcept;
  void steer(const SteeringCache&, std::span<const std::uint8_t> flows, BatchSizes&) noexcept;
  void see_returned(std::uint32_t hash) noexcept;

  // stage_lookup.h
  template <class F>
  void serve_flows() noexcept;
  template <class F>
  bool forward_plain(std::uint32_t i, core::KeyData hit) noexcept;
  template <class Entry>
  [[nodiscard]] bool is_current(Entry& entry) const noexcept;
  template <class F>
  bool serve_hit(std::uint32_t i, core::KeyData hit) noexcept;

  // stage_hit.h: everything but the plain established packet
  enum class Judgement : std::uint8_t { kGoOn, kDecideAnew };
  template <class F>
  Judgement judge(core::EntryIndex at, core::Direction d, std::uint8_t signal) noexcept;
  template <class Entry>
  [[nodiscard]] const core::Endpoint* endpoint_of(const Entry& entry) const noexcept;
  template <class F>
  Judgement judge_destination(core::EntryIndex at, core::Direction d) noexcept;
  template <class F>
  void advance(core::EntryIndex at, core::Direction d, std::uint8_t signal) noexcept;
  template <class F>
  void forward_by_entry(std::uint32_t i, core::EntryIndex at, core::Direction d,
                        bool opens = false) noexcept;

  // stage_miss.h
  void serve_misses() noexcept;
  template <class F>
  void serve_miss(std::uint32_t i) noexcept;
  template <class F>
  bool serve_as_hit(std::uint32_t i) noexcept;
  template <class F>
  void serve_request(std::uint32_t i, const core::FlowTuple& tuple,
                     const std::optional<core::Frontend>& exact) noexcept;
  template <class F>
  void give_back(std::uint32_t i, const core::FlowTuple& tuple) noexcept;
  template <class F>
  void clear_direct(const typename F::Key& key) noexcept;

  // stage_flood.h: too much to serve
  [[nodiscard]] bool is_over_budget() const noexcept;
  void parse_at_door() noexcept;
  [[nodiscard]] bool ends_at_door(std::uint32_t i, bool& let_in) noexcept;
  template <class F>
  [[nodiscard]] bool opens_here(std::uint32_t i) noexcept;
  template <class F>
  [[nodiscard]] bool find_service(std::uint32_t i, ServiceAddresses::Word word) noexcept;
  template <class F>
  bool drops_early(std::uint32_t i) noexcept;

  // stage_open.h: what a new flow gets
  template <class F>
  bool settle(std::uint32_t i) noexcept;
  template <class F>
  bool is_planned(std::uint32_t i) noexcept;
  void make_planned() noexcept;
  template <class F>
  void make_planned_of(PlannedFlows<F>& plans) noexcept;
  template <class F>
  void choose_and_open(std::uint32_t i, const core::Flow& flow,
                       const core::Decision& decision) noexcept;
  template <class F>
  void open_flow(std::uint32_t i, const core::Flow& flow, const core::Decision& decision,
                 core::EndpointIndex first) noexcept;
  template <class F>
  void conclude_open(std::uint32_t i, const core::Flow& flow, const core::Decision& decision,
                     core::EndpointIndex first, core::CreateOutcome outcome,
                     Obstacle obstacle) noexcept;
  template <class F>
  core::CreateOutcome try_candidate(std::uint32_t i, const core::Flow& flow,
                                    const core::Decision& decision, const core::Endpoint& chosen,
                                    bool translate_source, Obstacle& obstacle) noexcept;
  template <class F>
  PortIndex propose(std::uint32_t i, const core::Flow& flow, const core::Decision& decision,
                    const core::Endpoint& chosen, bool translate_source,
                    core::NewConn<F>& conn) noexcept;
  template <class F>
  core::CreateOutcome make_chosen(std::uint32_t i, core::NewConn<F>& conn, PortIndex egress,
                                  Obstacle& obstacle) noexcept;
  template <class F>
  core::CreateOutcome make_entry(std::uint32_t i, core::NewConn<F>& conn) noexcept;
  void note_created(std::uint32_t i, core::EndpointId id) noexcept;
  void refuse_obstructed(std::uint32_t i, const core::Decision& decision,
                         const core::Endpoint& first, Obstacle obstacle) noexcept;
  void refuse(std::uint32_t i, const core::Decision& decision) noexcept;
  bool hand_over(std::uint32_t i, std::size_t worker, Stage stage) noexcept;
  void write_message(std::uint32_t i, Stage stage, HandoverMessage& message) const noexcept;
  [[nodiscard]] core::Flow flow_of(std::uint32_t i, const core::FlowTuple& tuple) const noexcept {
    const Packet& p = batch_.packets[i];
    return {tuple, p.origin == Origin::kHost ? std::string_view{} : port_info(p.port).ingress};
  }

  // stage_affinity.h
  template <class F>
  void open_pinned_flow(std::uint32_t i, const core::Flow& flow,
                        const core::Decision& decision) noexcept;
  [[nodiscard]] core::EndpointIndex pinned_endpoint(const core::Decision& decision,
                                                    const core::FlowTuple& tuple) noexcept;
  [[nodiscard]] core::EndpointIndex picked_endpoint(const core::Decision& decision,
                                                    const core::FlowTuple& tuple,
                                                    const AffinityAnswer& answer) noexcept;
  void ask_home(std::uint32_t i, const core::FlowTuple& tuple, std::size_t home) noexcept;
  void answer_owner(std::uint32_t i, const core::FlowTuple& tuple) noexcept;
  bool waits_for_answer(std::uint32_t i, const core::FlowTuple& tuple) noexcept;
  void serve_answered() noexcept;
  void expire_pending() noexcept;

  // stage_direct_return.h: modes dr and ipip
  void send_on(const Packet& packet, const Way& way) noexcept;
  template <class F>
  core::CreateOutcome try_untouched(std::uint32_t i, const core::Decision& decision,
                                    const core::Endpoint& chosen,
                                    core::ForwardingMode mode) noexcept;
  template <class F>
  bool forward_one_way(std::uint32_t i, core::KeyData hit) noexcept;
  template <class F>
  bool forward_tunnelled(std::uint32_t i, const typename Conns<F>::Hot& entry,
                         NextHopWord word) noexcept;
  template <class F>
  void forward_untouched(std::uint32_t i, core::EntryIndex at) noexcept;
  template <class F>
  void note_untouched(std::uint32_t i, core::EntryIndex at) noexcept;
  [[nodiscard]] HashedWay way_by_hash(const core::Decision& decision,
                                      core::EndpointIndex first) noexcept;
  [[nodiscard]] HashedWay way_without_entry(std::uint32_t i, const core::FlowTuple& tuple) noexcept;
  template <class F>
  void forward_without_entry(std::uint32_t i, const core::Decision& decision,
                             core::EndpointIndex first) noexcept;
  template <class F>
  void send_by_hash(std::uint32_t i, const typename F::Key& key, const HashedWay& to) noexcept;
  template <class F>
  void send_untouched(std::uint32_t i, const Untouched<F>& flow, const Way& way) noexcept;
  template <class F>
  void send_through_tunnel(std::uint32_t i, const Untouched<F>& flow, const Way& way,
                           std::uint16_t link) noexcept;
  template <class F, class Outer>
  bool encapsulate(std::uint32_t i, const Untouched<F>& flow, const Way& way,
                   std::uint16_t path) noexcept;
  bool serve_tunnel_error(std::uint32_t i) noexcept;
  template <class F>
  bool serve_tunnel_error_of(std::uint32_t i, const core::TunnelError& error) noexcept;
  template <class F>
  bool serve_tunnel_error_by_hash(std::uint32_t i, const typename F::Key& key,
                                  const core::TunnelError& error) noexcept;
  template <class F>
  void tell_client(std::uint32_t i, const core::TunnelError& error,
                   const core::IpAddress& client) noexcept;
  void learn_path_mtu(const core::TunnelError& error) noexcept;
  void take_path_mtus() noexcept;

  // stage_source_port.h
  template <class F>
  bool choose_source(core::NewConn<F>& conn, PortIndex egress) noexcept;
  template <class F>
  [[nodiscard]] core::PortChoice steered_choice(const core::SnatPorts& ports,
                                                typename F::Key reply, std::uint32_t hash,
                                                PortIndex egress) noexcept;
  [[nodiscard]] std::span<const core::IpAddress> source_addresses(core::Family family,
                                                                  PortIndex egress) const noexcept;
  void note_exhausted(const core::Decision& decision, const core::IpAddress& backend) noexcept;

  // stage_forward.h
  [[nodiscard]] Hop resolve(const core::IpAddress& to, bool backend) noexcept;
  [[nodiscard]] Hop look_up_hop(const core::IpAddress& to, bool backend) const noexcept;
  void send(const Packet& packet, const Hop& hop) noexcept;
  void wait_for_neighbour(const Packet& packet, const Hop& hop) noexcept;
  void put_on_wire(const Packet& packet, NextHopWord word) noexcept;
  bool ask_for(const NeighbourRequest& wanted) noexcept;
  void ask_again(HopQueue::Waiting& waits) noexcept;
  void give_to_host(const Packet& packet, Counter why) noexcept;
  void leave_to_host(const Packet& packet) noexcept;
  void pass(std::uint32_t i, Counter why) noexcept;
  void drop(const Packet& packet, Counter why) noexcept;

  // stage_refuse.h: resets and ICMP errors we make
  void reject(std::uint32_t i) noexcept;
  void answer_ttl_expired(std::uint32_t i) noexcept;
  void answer_too_big(std::uint32_t i, std::uint16_t mtu) noexcept;
  struct AnswerCounters {
    Counter answered;
    Counter not_allowed;
    Counter limited;
  };
  void answer_with_error(std::uint32_t i, core::IcmpErrorKind kind, std::uint32_t mtu,
                         const AnswerCounters& count) noexcept;
  bool send_back(std::uint32_t i, std::span<const std::uint8_t> frame) noexcept;
  void return_to_sender(std::uint32_t i) noexcept;

  // stage_icmp.h
  void serve_icmp(std::uint32_t i) noexcept;
  template <class F>
  void serve_icmp_error(std::uint32_t i, const core::QuotedPacket& quoted) noexcept;
  template <class F>
  void forward_icmp_error(std::uint32_t i, const core::QuotedPacket& quoted, core::EntryIndex at,
                          core::Direction d) noexcept;

  // stage_neighbour.h
  void serve_arp(std::uint32_t i) noexcept;
  void serve_nd(std::uint32_t i) noexcept;
  void note_asker(PortIndex port, const core::IpAddress& asker) noexcept;
  void plan_announcements() noexcept;
  void announce() noexcept;
  std::uint32_t announce_some(Announcement& a, std::uint32_t limit) noexcept;
  void announce_address(const core::IpAddress& address, std::uint32_t round) noexcept;
  void announce_on(PortIndex port, const core::IpAddress& address, std::uint32_t round) noexcept;

  // stage_fragment.h
  void serve_fragment(std::uint32_t i) noexcept;
  void serve_piece_of(std::uint32_t i, FragmentTable::Datagram& datagram) noexcept;
  void serve_piece(std::uint32_t i, const FragmentPorts& ports) noexcept;
  void expire_fragments() noexcept;

  // stage_upkeep.h
  void upkeep() noexcept;
  void release_waiting() noexcept;
  void serve_dump() noexcept;
  template <class F>
  void fill_page(DumpMailbox::Page& page) noexcept;

  template <class F>
  [[nodiscard]] auto& conns() noexcept {
    if constexpr (F::kFamily == core::Family::kIpv4) {
      return conns4_;
    } else {
      return conns6_;
    }
  }
  template <class F>
  [[nodiscard]] const TunnelSources<F>& tunnel_sources() const noexcept {
    if constexpr (F::kFamily == core::Family::kIpv4) {
      return tunnel_sources4_;
    } else {
      return tunnel_sources6_;
    }
  }
  template <class F>
  [[nodiscard]] const typename F::Key* const* batch_keys() const noexcept {
    if constexpr (F::kFamily == core::Family::kIpv4) {
      return batch_.keys4.data();
    } else {
      return batch_.keys6.data();
    }
  }
  template <class F>
  [[nodiscard]] const typename F::Key& key_of(std::uint32_t i) const noexcept {
    if constexpr (F::kFamily == core::Family::kIpv4) {
      return batch_.parsed[i].key4;
    } else {
      return batch_.parsed[i].key6;
    }
  }
  [[nodiscard]] const PortInfo& port_info(PortIndex p) const noexcept { return tables_->port(p); }

  template <class F>
  [[nodiscard]] PlannedFlows<F>& planned() noexcept {
    if constexpr (F::kFamily == core::Family::kIpv4) {
      return planned4_;
    } else {
      return planned6_;
    }
  }
  [[nodiscard]] const FastPort& fast_port(PortIndex p) const noexcept {
    return fast_[static_cast<std::size_t>(p) % kMaxPorts];
  }

  const WorkerConfig config_;
  const WorkerLinks links_;
  Io& io_;
  Clock clock_;
  Conns4 conns4_;
  Conns6 conns6_;
  CounterBlock& counters_;
  ConnReleaser releaser_;
  core::SchedulerState scheduler_;
  AffinityPins pins_;  ///< of the clients whose home this worker is
  SteeringCache steering_;  ///< workers of flows that come here and live elsewhere
  SteeringShare elsewhere_;

  const WorkerTables* tables_ = nullptr;  ///< valid until the next open_tables()
  std::uint64_t sequence_ = 0;
  std::uint32_t epoch_ = 0;
  const Departures* departures_ = nullptr;  ///< of tables_
  std::uint64_t now_ns_ = 0;
  core::Tick now_ = 0;
  LoadWatch load_;
  std::uint32_t opened_in_poll_ = 0;
  std::uint32_t queued_ = 0;        ///< frames given to the I/O layer since the last flush
  bool changed_ = false;            ///< connections came or went since the batch was looked up
  std::uint32_t partial_csum_ = 0;  ///< bit p: port p may deliver unfinished checksums
  std::array<FastPort, kMaxPorts> fast_{};

  PacketBatch batch_;
  std::array<core::KeyData, kBurst> hits_;
  std::uint32_t misses_size_ = 0;
  std::array<std::uint8_t, kBurst> misses_{};
  std::size_t ring_turn_ = 0;
  std::uint32_t ring_bursts_ = 0;  ///< of this poll
  bool host_asked_ = false;        ///< in this poll

  bool may_plan_ = false;  ///< in serve_misses()
  PlannedFlows<core::Ipv4> planned4_;
  PlannedFlows<core::Ipv6> planned6_;

  HopCache backend_hops_;
  ServiceAddresses service_addresses_;
  HopQueue waiting_;
  FragmentTable fragments_;
  PendingFlows pending_;
  PathMtus path_mtus_;
  TunnelSources<core::Ipv4> tunnel_sources4_;
  TunnelSources<core::Ipv6> tunnel_sources6_;
  std::uint16_t tunnel_id_ = 0;  ///< of outer packets that may be fragmented
  core::Tick upkeep_at_ = 0;
  core::Tick failed_asked_at_ = 0;
  RateLimit errors_{1, 256};  ///< ICMP errors: about 950 a second, burst 256
  std::array<Announcement, kAnnouncements> announcements_{};
  std::uint64_t announced_upto_ = 0;  ///< view up to which addresses are among them, or were
  WorkerGauges gauges_;
};

}  // namespace sluice::pipeline

#include "dataplane/pipeline/stages.h"
