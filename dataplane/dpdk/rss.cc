#include "dataplane/dpdk/rss.h"

#include <algorithm>
#include <cstring>

#include <rte_ethdev.h>

namespace sluice::dpdk {
namespace {

struct HashName {
  std::uint64_t bit;
  const char* name;
};
// Wanted in this order; addresses alone still spread clients.
constexpr HashName kWanted[] = {
    {RTE_ETH_RSS_NONFRAG_IPV4_TCP, "ipv4-tcp"}, {RTE_ETH_RSS_NONFRAG_IPV4_UDP, "ipv4-udp"},
    {RTE_ETH_RSS_NONFRAG_IPV6_TCP, "ipv6-tcp"}, {RTE_ETH_RSS_NONFRAG_IPV6_UDP, "ipv6-udp"},
    {RTE_ETH_RSS_IPV4, "ipv4"},                 {RTE_ETH_RSS_IPV6, "ipv6"},
};

std::uint64_t wanted_bits() {
  std::uint64_t bits = 0;
  for (const HashName& hash : kWanted) {
    bits |= hash.bit;
  }
  return bits;
}

std::string names(std::uint64_t bits) {
  std::string text;
  for (const HashName& hash : kWanted) {
    if ((bits & hash.bit) != 0) {
      text += (text.empty() ? "" : " ") + std::string(hash.name);
    }
  }
  return text.empty() ? "nothing" : text;
}

std::uint32_t spread_reta(std::uint16_t device, std::uint16_t size, std::uint32_t queues) {
  std::vector<rte_eth_rss_reta_entry64> table((size + RTE_ETH_RETA_GROUP_SIZE - 1) /
                                              RTE_ETH_RETA_GROUP_SIZE);
  for (std::uint32_t i = 0; i < size; ++i) {
    rte_eth_rss_reta_entry64& group = table[i / RTE_ETH_RETA_GROUP_SIZE];
    group.mask |= std::uint64_t{1} << (i % RTE_ETH_RETA_GROUP_SIZE);
    group.reta[i % RTE_ETH_RETA_GROUP_SIZE] = static_cast<std::uint16_t>(i % queues);
  }
  return rte_eth_dev_rss_reta_update(device, table.data(), size) == 0 ? size : 0;
}

}  // namespace

RssOutcome ask_rss(const rte_eth_dev_info& info, std::uint16_t queues,
                   std::vector<std::uint8_t>& key, rte_eth_conf& conf) {
  RssOutcome outcome;
  outcome.asked = wanted_bits();
  outcome.queues = queues;
  if (queues > 1 && info.flow_type_rss_offloads != 0) {
    outcome.granted = outcome.asked & info.flow_type_rss_offloads;
    if (outcome.granted != 0) {
      conf.rxmode.mq_mode = RTE_ETH_MQ_RX_RSS;
      conf.rx_adv_conf.rss_conf.rss_hf = outcome.granted;
      if (info.hash_key_size != 0 && info.hash_key_size <= key.size()) {
        conf.rx_adv_conf.rss_conf.rss_key = key.data();
        conf.rx_adv_conf.rss_conf.rss_key_len = info.hash_key_size;
      }
    }
  }
  return outcome;
}

void settle_rss(std::uint16_t device, const rte_eth_dev_info& info,
                std::span<const std::uint8_t> key, RssOutcome& outcome) {
  if (outcome.granted == 0) {
    return;
  }
  if (info.reta_size != 0) {
    outcome.reta = spread_reta(device, info.reta_size, outcome.queues);
  }
  std::vector<std::uint8_t> there(std::max<std::size_t>(key.size(), 64));
  rte_eth_rss_conf conf = {};
  conf.rss_key = there.data();
  conf.rss_key_len = static_cast<std::uint8_t>(there.size());
  if (rte_eth_dev_rss_hash_conf_get(device, &conf) == 0) {
    outcome.granted &= conf.rss_hf;
    const std::size_t length = std::min<std::size_t>(info.hash_key_size, key.size());
    outcome.key_taken = length != 0 && std::memcmp(there.data(), key.data(), length) == 0;
  }
}

bool rss_hashes_replies(const RssOutcome& outcome) noexcept {
  constexpr std::uint32_t kMostEntries = 512;
  constexpr std::uint64_t kPorts = RTE_ETH_RSS_NONFRAG_IPV4_TCP;
  return outcome.queues > 1 && (outcome.granted & kPorts) != 0 && outcome.key_taken &&
         outcome.reta >= outcome.queues && outcome.reta <= kMostEntries;
}

std::string describe_rss(const RssOutcome& outcome) {
  if (outcome.queues <= 1) {
    return "one queue a device";
  }
  std::string text = "asked " + names(outcome.asked) + "; granted " + names(outcome.granted);
  if (outcome.granted != 0) {
    text += outcome.key_taken ? ", our key" : ", the device's key";
    text += outcome.reta != 0 ? ", table of " + std::to_string(outcome.reta) : ", fixed table";
  }
  return text;
}

}  // namespace sluice::dpdk
