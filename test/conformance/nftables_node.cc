#include "test/conformance/nftables_node.h"

#include <linux/netfilter/nf_tables.h>
#include <yaml-cpp/yaml.h>

#include <cstdio>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>

#include "kni/conntrack/conntrack_sink.h"
#include "kni/nftables/kernel.h"
#include "kni/nftables/nftables_sink.h"
#include "kni/nftables/render.h"
#include "kni/nftables/socket.h"
#include "test/support/kernel_rules.h"

namespace sluice::conformance {
namespace {

using core::Family;
using kni::nft::Attributes;

/// Output of a program, and what it complains of; nullopt when it failed.
std::optional<std::string> output_of(const std::string& command) {
  std::FILE* pipe = popen((command + " 2>&1").c_str(), "r");
  if (pipe == nullptr) {
    return std::nullopt;
  }
  std::string text;
  char buffer[4096];
  for (std::size_t n = 0; (n = std::fread(buffer, 1, sizeof(buffer), pipe)) != 0;) {
    text.append(buffer, n);
  }
  return pclose(pipe) == 0 ? std::optional(text) : std::nullopt;
}

/// Chains with their rules and sets with their elements, counted by nft.
void check_json(const kni::nft::Ruleset& wanted, std::vector<std::string>& failures) {
  const std::string table = wanted.family == Family::kIpv4 ? "ip sluice" : "ip6 sluice";
  const auto text = output_of("nft -j list table " + table);
  if (!text) {
    failures.push_back("nft -j list table " + table + " fails");
    return;
  }
  std::map<std::string, std::size_t> got;
  for (const YAML::Node& item : YAML::Load(*text)["nftables"]) {
    const auto kind = item.begin()->first.as<std::string>();
    const YAML::Node value = item.begin()->second;
    if (kind == "chain") {
      got["chain " + value["name"].as<std::string>()];
    } else if (kind == "rule") {
      ++got["chain " + value["chain"].as<std::string>()];
    } else if (kind == "set" || kind == "map") {
      const auto name = value["name"].as<std::string>();
      const bool filled_by_rules = name.starts_with("affinity-");
      got["set " + name] = filled_by_rules || !value["elem"] ? 0 : value["elem"].size();
    }
  }
  std::map<std::string, std::size_t> want;
  for (const auto& [name, chain] : wanted.chains) {
    want["chain " + name] = chain.rules.size();
  }
  for (const auto& [name, spec] : wanted.sets) {
    const auto elements = wanted.elements.find(name);
    want["set " + name] = elements == wanted.elements.end() ? 0 : elements->second.size();
  }
  if (got != want) {
    failures.push_back("nft -j sees other chains or sets in table " + table);
  }
}

/// The adapter and what tests ask its kernel.
class NftablesNode : public KernelNode {
 public:
  NftablesNode();

  /// The kernel behind it is read back, listed by nft as JSON and as text.
  std::vector<std::string> apply(const core::TablePtr& table) override;
  [[nodiscard]] SocketNet::Refusals refusals(Family family) override;
  [[nodiscard]] std::vector<std::uint32_t> remembered(const core::IpAddress& source) override;
  void wipe() override;

 private:
  std::vector<std::string> remembering_sets(Family family);
  void check_read_back(const kni::nft::Rendered& wanted, std::vector<std::string>& failures);

  std::unique_ptr<kni::nft::Kernel> reader_;
  kni::nft::Socket socket_;
  std::unique_ptr<kni::NftablesSink> nftables_;
  std::unique_ptr<kni::ConntrackSink> sink_;  ///< the adapter and the removal of stale flows
};

NftablesNode::NftablesNode()
    : reader_(or_throw(kni::nft::open_kernel())),
      socket_(or_throw(kni::nft::Socket::open())),
      nftables_(std::make_unique<kni::NftablesSink>(or_throw(kni::nft::open_kernel()),
                                                    kni::NftablesSink::Options{})),
      sink_(std::make_unique<kni::ConntrackSink>(*nftables_, or_throw(kni::open_conntrack()),
                                                 nullptr)) {}

std::vector<std::string> NftablesNode::apply(const core::TablePtr& table) {
  std::vector<std::string> failures;
  if (const auto applied = sink_->apply(table); !applied) {
    return {applied.error().message};
  }
  kni::nft::Rendered wanted = kni::nft::render(*table);
  kni::nft::add_unused(wanted.rulesets, nftables_->shares(), table->node());
  check_read_back(wanted, failures);
  check_json(wanted.rulesets.v4, failures);
  check_json(wanted.rulesets.v6, failures);
  if (!output_of("nft list ruleset")) {
    failures.emplace_back("nft list ruleset fails");
  }
  return failures;
}

void NftablesNode::check_read_back(const kni::nft::Rendered& wanted,
                                   std::vector<std::string>& failures) {
  const std::string difference = sluice::test::difference_in_kernel(*reader_, wanted);
  if (!difference.empty()) {
    failures.push_back(difference);
  }
}

SocketNet::Refusals NftablesNode::refusals(Family) {
  const auto counted = or_throw(reader_->refusals());
  return {counted.rejected, counted.dropped};
}

std::vector<std::string> NftablesNode::remembering_sets(Family family) {
  std::vector<std::string> sets;
  (void)socket_.request(NFT_MSG_GETSET, kni::nft::family_number(family), NLM_F_DUMP,
                        kni::nft::text_attribute(NFTA_SET_TABLE, kni::nft::kTable),
                        [&](std::uint8_t, const Attributes& a) {
                          const std::string name = a.text(NFTA_SET_NAME);
                          if (name.starts_with("affinity-")) {
                            sets.push_back(name);
                          }
                        });
  return sets;
}

void NftablesNode::wipe() {
  kni::nft::Batch batch(std::nullopt);
  for (const Family family : {Family::kIpv4, Family::kIpv6}) {
    for (const std::string& set : remembering_sets(family)) {
      batch.begin(NFT_MSG_DELSETELEM, family, 0, set);
      batch.put_text(NFTA_SET_ELEM_LIST_TABLE, kni::nft::kTable);
      batch.put_text(NFTA_SET_ELEM_LIST_SET, set);
      batch.end();
    }
  }
  batch.finish();
  if (const auto done = socket_.commit(batch); done.error != 0) {
    throw std::runtime_error(kni::nft::describe(done));
  }
}

std::vector<std::uint32_t> NftablesNode::remembered(const core::IpAddress& source) {
  std::vector<std::uint32_t> seconds;
  const std::string key = kni::nft::KeyBytes().address(source).take();
  for (const std::string& set : remembering_sets(source.family())) {
    const std::string which = kni::nft::text_attribute(NFTA_SET_ELEM_LIST_TABLE, kni::nft::kTable) +
                              kni::nft::text_attribute(NFTA_SET_ELEM_LIST_SET, set);
    const auto element = [&](std::uint16_t, std::string_view bytes) {
      const Attributes a(bytes);
      if (a.nest(NFTA_SET_ELEM_KEY).find(NFTA_DATA_VALUE).starts_with(key)) {
        seconds.push_back(static_cast<std::uint32_t>(a.u64(NFTA_SET_ELEM_TIMEOUT) / 1000));
      }
    };
    (void)socket_.request(NFT_MSG_GETSETELEM, kni::nft::family_number(source.family()), NLM_F_DUMP,
                          which, [&](std::uint8_t, const Attributes& a) {
                            a.nest(NFTA_SET_ELEM_LIST_ELEMENTS).for_each(element);
                          });
  }
  return seconds;
}

}  // namespace

KernelAdapter nftables_adapter() {
  return {"nftables", compile::Profile::kNftables,
          [](const NodeSetup&) -> std::unique_ptr<KernelNode> {
            return std::make_unique<NftablesNode>();
          }};
}

}  // namespace sluice::conformance
