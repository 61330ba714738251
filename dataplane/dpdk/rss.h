#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "dataplane/core/sink.h"

struct rte_eth_conf;
struct rte_eth_dev_info;

namespace sluice::dpdk {

// Steering by the NIC only makes hand-overs rare; owners are computed in software (design section
// 5). So every outcome here is usable, and what was granted is told in status (F94).

/// What one device was asked for and gave.
struct RssOutcome {
  std::uint64_t asked = 0;    ///< RTE_ETH_RSS_* bits
  std::uint64_t granted = 0;
  bool key_taken = false;     ///< the device uses our Toeplitz key
  std::uint32_t reta = 0;     ///< size of the redirection table, 0: none
  std::uint32_t queues = 1;
};

/// Puts into `conf` what the device can do of address-and-port hashing with `key`.
[[nodiscard]] RssOutcome ask_rss(const rte_eth_dev_info& info, std::uint16_t queues,
                                 std::vector<std::uint8_t>& key, rte_eth_conf& conf);
/// After start: spreads the redirection table evenly over the queues and reads back the key.
void settle_rss(std::uint16_t device, const rte_eth_dev_info& info,
                std::span<const std::uint8_t> key, RssOutcome& outcome);
/// True when the low bits of the hash over addresses and ports, by our key, choose the queue: entry
/// i of the table is queue i modulo queues, and it has at most 512 entries (ReplySteering).
[[nodiscard]] bool rss_hashes_replies(const RssOutcome& outcome) noexcept;
/// One line for status: "asked ipv4-tcp ..., granted ...".
[[nodiscard]] std::string describe_rss(const RssOutcome& outcome);

}  // namespace sluice::dpdk
