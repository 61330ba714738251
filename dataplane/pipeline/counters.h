#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

// Counters of a worker
//
// Every frame a worker takes in ends in exactly one counter of class kOut, kDrop, kToHost, or is
// still held (kHeld is a gauge). So, at any moment between two polls:
//
//   in + generated = out + dropped + to host + held          (frame_balance())
//
// A frame on a hand-over ring is "out" for the sender and "in" for the receiver; over a whole group
// the difference of the two is what lies on rings (and is added to `held`). The names are part of
// the product: they appear in GetCounters and in the documentation as "<stage>_<what>".

namespace sluice::pipeline {

/// What a counter means in the frame balance.
enum class CounterClass : std::uint8_t {
  kIn,      ///< frames that entered this worker
  kOut,     ///< frames that left by a port or over a hand-over ring
  kDrop,    ///< frames thrown away; every reason has its own counter
  kToHost,  ///< frames given to the kernel
  kHeld,    ///< gauge: frames waiting now
  kInfo,    ///< events; no part of the balance
};

// X(enumerator, "name", class, "help")
#define SLUICE_COUNTERS(X)                                                                       \
  X(kRxFrames, "rx_frames", kIn, "frames received from ports")                                   \
  X(kRxHostFrames, "rx_host_frames", kIn, "frames the host sent into the taps")                  \
  X(kRxGenerated, "rx_generated", kIn, "frames this worker made itself")                         \
  X(kHandoverReceived, "handover_received", kIn, "frames other workers handed over")             \
  X(kHandoverSent, "handover_sent", kOut, "frames handed to the worker that owns them")          \
  X(kTxFrames, "tx_frames", kOut, "frames the ports took")                                       \
  X(kTxDropped, "tx_dropped", kDrop, "frames the ports did not take")                            \
  X(kHandoverRingFull, "handover_ring_full", kDrop, "the owner's ring was full")                 \
  X(kParseTruncatedEthernet, "parse_truncated_ethernet", kDrop, "shorter than Ethernet")         \
  X(kParseTruncatedIp, "parse_truncated_ip", kDrop, "IP header runs past the frame")             \
  X(kParseTruncatedL4, "parse_truncated_l4", kDrop, "L4 header runs past the IP length")         \
  X(kParseTruncatedFrame, "rx_truncated", kDrop,                                                 \
    "frame shorter than its IP length: turn generic receive offload off at the sender's peer")   \
  X(kParseBadIpVersion, "parse_bad_ip_version", kDrop, "version field and EtherType differ")     \
  X(kParseBadIpChecksum, "parse_bad_ip_checksum", kDrop, "IPv4 header checksum is wrong")        \
  X(kParseMartian, "parse_martian", kDrop, "source or destination that cannot be on a wire")     \
  X(kParseForbiddenHeader, "parse_forbidden_header", kDrop, "IPv6 header chain not allowed")     \
  X(kRxPartialCsumSegmented, "rx_partial_csum_segmented", kInfo,                                 \
    "unfinished checksum in a frame of several segments: left as it is")                         \
  X(kRuleSourceNotAllowed, "rule_source_not_allowed", kDrop, "outside the source ranges (P-1)")  \
  X(kRuleNoLocalEndpoints, "rule_no_local_endpoints", kDrop, "policy Local, none here (N-2)")    \
  X(kRuleNoEndpoints, "rule_no_endpoints", kDrop, "no endpoints and the rule says drop")         \
  X(kRuleStrayServiceCidr, "rule_stray_service_cidr", kDrop, "inside a ServiceCIDR (P-7)")       \
  X(kRuleMartianSource, "rule_martian_source", kDrop,                                            \
    "from the wire, with an address of a Service as its source")                                 \
  X(kRuleOther, "rule_other", kDrop, "dropped by another rule")                                  \
  X(kConnTableFull, "conn_table_full", kDrop, "no room for a new connection")                    \
  X(kConnNewFlowBudget, "conn_new_flow_budget", kDrop, "too many new flows under overload")      \
  X(kAffinityTimeout, "affinity_timeout", kDrop, "no answer from the client's home worker")      \
  X(kAffinityPendingFull, "affinity_pending_full", kDrop, "too many flows wait for an answer")   \
  X(kAffinityQueueFull, "affinity_queue_full", kDrop, "too many packets wait for one answer")    \
  X(kConnSnatExhausted, "conn_snat_exhausted", kDrop, "no free source port for this backend")    \
  X(kConnClashUnsolved, "conn_clash_unsolved", kDrop, "reply key held and no way around it")     \
  X(kConnNoCandidate, "conn_no_candidate", kDrop, "the scheduler found no endpoint")             \
  X(kConnModeLost, "conn_mode_lost", kDrop, "dr or ipip does not reach the endpoint any more")   \
  X(kTunnelTooNarrow, "tunnel_too_narrow", kDrop, "1280 bytes of IPv6 do not fit the link")      \
  X(kTunnelNoSource, "tunnel_no_source", kDrop, "no address or no room for an outer header")     \
  X(kTunnelErrorUseless, "tunnel_error_useless", kDrop, "ICMP about a tunnel, nobody to tell")   \
  X(kRejectNoAnswer, "reject_no_answer", kDrop, "refused, but this packet may not be answered")  \
  X(kRejectRateLimited, "reject_rate_limited", kDrop, "refused beyond the rate of answers")      \
  X(kTtlExpired, "ttl_expired", kDrop, "TTL ended here and no answer may be made")               \
  X(kTtlRateLimited, "ttl_rate_limited", kDrop, "TTL ended here, beyond the rate of answers")    \
  X(kHopQueueFull, "hop_queue_full", kDrop, "too many packets wait for one neighbour")           \
  X(kHopQueueEvicted, "hop_queue_evicted", kDrop, "gave way to a newer unknown neighbour")       \
  X(kHopTimeout, "hop_timeout", kDrop, "neighbour was not resolved in time")                     \
  X(kHopFailed, "hop_failed", kDrop, "neighbour does not answer")                                \
  X(kHopTooBig, "hop_too_big", kDrop, "larger than the MTU, fragmenting is not allowed here")    \
  X(kHopTooBigRateLimited, "hop_too_big_rate_limited", kDrop, "too big, beyond the answer rate") \
  X(kHostRingFull, "host_ring_full", kDrop, "the tap did not take the frame")                    \
  X(kIcmpBadQuote, "icmp_bad_quote", kDrop, "ICMP error that cannot be translated")              \
  X(kNdInvalid, "nd_invalid", kDrop, "neighbour discovery with a hop limit below 255")           \
  X(kFragmentTableFull, "fragment_table_full", kDrop, "no room for another datagram")            \
  X(kFragmentOverflow, "fragment_overflow", kDrop, "too many pieces or bytes of one datagram")   \
  X(kFragmentTimeout, "fragment_timeout", kDrop, "the first fragment did not come in time")      \
  X(kFragmentNoFlow, "fragment_no_flow", kDrop, "later fragment of a datagram that was refused") \
  X(kShutdownDropped, "shutdown_dropped", kDrop, "held frames at the end of the worker")         \
  X(kNoTable, "rule_no_table", kToHost, "before the first table every frame is the host's")      \
  X(kHostPass, "host_pass", kToHost, "not ours (P-8)")                                           \
  X(kHostNoEntry, "host_no_entry", kToHost, "TCP segment without a connection")                  \
  X(kHostArpNd, "host_arp_nd", kToHost, "ARP and neighbour discovery")                           \
  X(kHostIcmp, "host_icmp", kToHost, "ICMP that belongs to no flow of ours")                     \
  X(kHostOther, "host_other", kToHost, "neither TCP, UDP nor ICMP")                              \
  X(kHostFragment, "host_fragment", kToHost, "fragments that are not ours")                      \
  X(kHostForeignMac, "host_foreign_mac", kToHost, "sent to another Ethernet address")            \
  X(kHostNoRoute, "host_no_route", kToHost, "translated, and only the host knows the way")       \
  X(kHostAnswer, "host_answer", kToHost, "answers to frames the host sent")                      \
  X(kHeldNeighbour, "held_neighbour", kHeld, "frames that wait for a neighbour")                 \
  X(kHeldFragments, "held_fragments", kHeld, "fragments that wait for the first one")            \
  X(kHeldAffinity, "held_affinity", kHeld, "frames that wait for a home worker's answer")        \
  X(kPolls, "poll_total", kInfo, "polls")                                                        \
  X(kPollsEmpty, "poll_empty", kInfo, "polls without a frame")                                   \
  X(kBurstsFull, "rx_full_bursts", kInfo, "receive bursts that were full")                       \
  X(kRxPartialCsum, "rx_partial_csum", kInfo, "checksums a kernel left unfinished, completed")   \
  X(kConnHits, "conn_hits", kInfo, "packets that found their connection")                        \
  X(kConnMisses, "conn_misses", kInfo, "packets without a connection")                           \
  X(kConnCreated, "conn_created", kInfo, "connections created")                                  \
  X(kConnExpired, "conn_expired", kInfo, "connections ended by time")                            \
  X(kConnEvicted, "conn_evicted", kInfo, "connections that made room for new ones")              \
  X(kConnReplyClash, "conn_reply_clash", kInfo, "reply key was held by a live connection")       \
  X(kConnReused, "conn_reused", kInfo, "SYN on a closing connection: scheduled anew")            \
  X(kConnJudged, "conn_judged", kInfo, "connections looked at again after a change")             \
  X(kConnRedecided, "conn_redecided", kInfo, "connections whose endpoint had left")              \
  X(kConnDetached, "conn_detached", kInfo, "UDP flows whose Service or endpoint had left")       \
  X(kConnDirectCleared, "conn_direct_cleared", kInfo, "closing entry gave way to a direct flow") \
  X(kForwardedWithoutEntry, "forwarded_without_entry", kInfo,                                    \
    "packets of dr and ipip that hashing alone sent on: table full, or connection not known")    \
  X(kConnModeOutOfReach, "conn_mode_out_of_reach", kInfo,                                        \
    "flows refused: dr and no endpoint on the link, or only the host reaches it")                \
  X(kIcmpUntouched, "icmp_untouched", kInfo, "ICMP errors sent on to a backend of dr or ipip")   \
  X(kTunnelMtuLearned, "tunnel_mtu_learned", kInfo, "routers told what a tunnel's path carries") \
  X(kTunnelErrorTold, "tunnel_error_told", kInfo, "clients told of trouble in a tunnel")         \
  X(kConnSnatReused, "conn_snat_port_reused", kInfo, "held source port used again early")        \
  X(kAffinityAsked, "affinity_asked", kInfo, "new flows that another worker was asked about")    \
  X(kAffinityKept, "affinity_kept", kInfo, "new flows that went where their client had been")    \
  X(kAffinityPicked, "affinity_picked", kInfo, "new flows of clients without a usable pin")      \
  X(kAffinityEvicted, "affinity_evicted", kInfo, "pins that made room for other clients")        \
  X(kAffinityStale, "affinity_stale", kInfo, "answers that no longer held: picked anew")         \
  X(kRejectRst, "reject_rst", kInfo, "refused by TCP reset")                                     \
  X(kRejectIcmp, "reject_icmp", kInfo, "refused by ICMP port unreachable")                       \
  X(kTtlAnswered, "ttl_answered", kInfo, "ICMP time exceeded sent")                              \
  X(kTooBigAnswered, "hop_too_big_answered", kInfo, "ICMP fragmentation needed or too big sent") \
  X(kIcmpTranslated, "icmp_translated", kInfo, "ICMP errors translated")                         \
  X(kArpAnswered, "arp_answered", kInfo, "ARP requests answered")                                \
  X(kNdAnswered, "nd_answered", kInfo, "neighbour solicitations answered")                       \
  X(kEchoAnswered, "icmp_echo_answered", kInfo, "echo requests answered")                        \
  X(kAnnounced, "arp_gratuitous", kInfo, "gratuitous ARP and unsolicited advertisements sent")   \
  X(kAnnounceNoBuffer, "arp_gratuitous_no_buffer", kInfo, "no buffer for an announcement")       \
  X(kHopRequested, "hop_requested", kInfo, "neighbours the kernel was asked to resolve")         \
  X(kHopRequestLost, "hop_request_lost", kInfo, "request ring was full")                         \
  X(kTablesSeen, "table_changes", kInfo, "changes of the tables taken over")                     \
  X(kSteeringMisses, "steer_not_here", kInfo,                                                    \
    "packets that arrived at another worker than theirs")                                        \
  X(kSteeringKnown, "steer_known", kInfo,                                                        \
    "of these, handed over at once: their flow's worker was remembered")                         \
  X(kSteeringReturned, "steer_returned", kInfo,                                                  \
    "of these, sent back: their flow was not there, or they are another one's")

enum class Counter : std::uint8_t {
#define SLUICE_COUNTER_ENUM(id, name, cls, help) id,
  SLUICE_COUNTERS(SLUICE_COUNTER_ENUM)
#undef SLUICE_COUNTER_ENUM
};

struct CounterInfo {
  std::string_view name;
  std::string_view help;
  CounterClass cls;
};

inline constexpr std::array kCounterTable = {
#define SLUICE_COUNTER_INFO(id, name, cls, help) CounterInfo{name, help, CounterClass::cls},
    SLUICE_COUNTERS(SLUICE_COUNTER_INFO)
#undef SLUICE_COUNTER_INFO
};
inline constexpr std::size_t kCounters = kCounterTable.size();

/// Counters of one worker. Thread: add() and set() only by that worker (plain load and store, no
/// locked instruction); read() by any.
class alignas(64) CounterBlock {
 public:
  void add(Counter c, std::uint64_t n = 1) noexcept {
    auto& cell = cells_[static_cast<std::size_t>(c)];
    cell.store(cell.load(std::memory_order_relaxed) + n, std::memory_order_relaxed);
  }
  /// For gauges.
  void set(Counter c, std::uint64_t value) noexcept {
    cells_[static_cast<std::size_t>(c)].store(value, std::memory_order_relaxed);
  }
  [[nodiscard]] std::uint64_t read(Counter c) const noexcept {
    return cells_[static_cast<std::size_t>(c)].load(std::memory_order_relaxed);
  }

 private:
  std::array<std::atomic<std::uint64_t>, kCounters> cells_{};
};

/// The sums of the balance. Exact when no worker is inside a poll.
struct FrameBalance {
  std::uint64_t in = 0;   ///< with generated frames
  std::uint64_t out = 0;  ///< by ports and, for one worker, over rings
  std::uint64_t dropped = 0;
  std::uint64_t to_host = 0;
  std::uint64_t held = 0;  ///< waiting, or on a ring
  [[nodiscard]] bool holds() const noexcept { return in == out + dropped + to_host + held; }
};

/// Balance over one worker or a whole group. In a group a hand-over is no way in or out: what was
/// sent and not yet received counts as held.
[[nodiscard]] FrameBalance frame_balance(std::span<const CounterBlock* const> workers) noexcept;

}  // namespace sluice::pipeline
