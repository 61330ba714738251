#include "test/conformance/iptables_node.h"

#include <array>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <sstream>
#include <utility>

#include "kni/conntrack/conntrack_sink.h"
#include "kni/iptables/iptables_sink.h"
#include "kni/iptables/names.h"
#include "kni/iptables/programs.h"
#include "kni/iptables/render.h"
#include "kni/iptables/restore_text.h"
#include "kni/iptables/runner.h"
#include "test/conformance/iptables_judge.h"
#include "test/conformance/iptables_text.h"

namespace sluice::conformance {
namespace {

using core::Family;
using kni::ipt::Variant;

constexpr std::array kFamilies = {Family::kIpv4, Family::kIpv6};
/// Lists of sources by which endpoints remember, of the network namespace of the thread.
constexpr const char* kRecent = "/proc/thread-self/net/xt_recent";
constexpr const char* kRouteLocalnet = "/proc/sys/net/ipv4/conf/all/route_localnet";

using Calls = std::map<Family, std::vector<RestoreCall>>;

/// The command as the rule book has it: without the folder and the variant.
std::string command_text(const std::vector<std::string>& words) {
  std::string out = words.front().substr(words.front().rfind('/') + 1);
  for (const char* variant : {"-nft", "-legacy"}) {
    if (const auto at = out.find(variant); at != std::string::npos) {
      out.erase(at, std::string_view(variant).size());
    }
  }
  for (std::size_t i = 1; i < words.size(); ++i) {
    out += " " + words[i];
  }
  return out;
}

/// Runs programs and keeps what iptables-restore was told, whatever came of it.
class RecordingRunner : public kni::ipt::Runner {
 public:
  explicit RecordingRunner(Calls& calls) : inner_(kni::ipt::make_runner()), calls_(calls) {}

  core::Result<kni::ipt::Outcome> run(const kni::ipt::Command& command,
                                      const kni::ipt::LineTaker& take) override {
    const std::string text = command_text(command.words);
    if (text.find("tables-restore ") != std::string::npos) {
      const Family family = text.starts_with("ip6") ? Family::kIpv6 : Family::kIpv4;
      calls_[family].push_back({text, parse_restore(command.input)});
    }
    return inner_->run(command, take);
  }

 private:
  std::unique_ptr<kni::ipt::Runner> inner_;
  Calls& calls_;
};

/// A first load of everything.
std::string whole_text(const kni::ipt::Ruleset& rules, const std::vector<kni::ipt::Hook>& hooks) {
  kni::ipt::RestoreText text;
  for (const kni::ipt::Table table : kni::ipt::kTables) {
    text.begin(table);
    text.declare(kni::ipt::kCanaryChain);
    if (table != kni::ipt::Table::kMangle) {
      const auto& chains = table == kni::ipt::Table::kNat ? rules.nat : rules.filter;
      text.declare(chains);
      text.append(chains);
    }
    for (const kni::ipt::Hook& hook : hooks) {
      if (hook.table == table) {
        text.insert(hook);
      }
    }
    text.commit();
  }
  return text.take();
}

/// The adapter and what tests ask its kernel.
class IptablesNode : public KernelNode {
 public:
  IptablesNode(Variant variant, bool localhost_node_ports);

  /// iptables-save prints what it prints where all that was rendered is loaded at once.
  std::vector<std::string> apply(const core::TablePtr& table) override;
  [[nodiscard]] SocketNet::Refusals refusals(Family family) override;
  [[nodiscard]] std::vector<std::uint32_t> remembered(const core::IpAddress& source) override;
  void wipe() override;
  [[nodiscard]] std::optional<std::vector<std::string>> judge(const std::string& kind,
                                                              const YAML::Node& value) override;

 private:
  [[nodiscard]] std::string program(Family family, const char* what) const;
  [[nodiscard]] std::string output(const kni::ipt::Command& command);
  [[nodiscard]] IptablesText saved(Family family);
  void check_saved(const core::ForwardingTable& table, Family family,
                   std::vector<std::string>& failures);

  const Variant variant_;
  std::unique_ptr<kni::ipt::Runner> runner_ = kni::ipt::make_runner();
  Calls calls_;                              ///< of the last apply
  std::map<Family, IptablesText> written_;  ///< by all of them
  std::unique_ptr<kni::IptablesSink> iptables_;
  std::unique_ptr<kni::ConntrackSink> sink_;  ///< the adapter and the removal of stale flows
};

IptablesNode::IptablesNode(Variant variant, bool localhost_node_ports)
    : variant_(variant) {
  std::ofstream(kRouteLocalnet) << 0;  // a new namespace has that of the machine
  kni::IptablesSink::Options options;
  options.variant = variant;
  options.render.localhost_node_ports = localhost_node_ports;
  iptables_ = or_throw(kni::IptablesSink::open(std::make_unique<RecordingRunner>(calls_), options));
  sink_ = std::make_unique<kni::ConntrackSink>(*iptables_, or_throw(kni::open_conntrack()),
                                               nullptr);
}

std::vector<std::string> IptablesNode::apply(const core::TablePtr& table) {
  calls_.clear();
  const auto applied = sink_->apply(table);
  std::vector<std::string> failures;
  if (!applied) {
    return {applied.error().message};
  }
  for (const auto& [family, calls] : calls_) {
    for (const RestoreCall& call : calls) {
      play_restore(call.input, written_[family]);
    }
  }
  for (const Family family : kFamilies) {
    check_saved(*table, family, failures);
  }
  return failures;
}

std::string IptablesNode::program(Family family, const char* what) const {
  return std::string(family == Family::kIpv4 ? "iptables" : "ip6tables") +
         (variant_ == Variant::kLegacy ? "-legacy-" : "-nft-") + what;
}

std::string IptablesNode::output(const kni::ipt::Command& command) {
  std::string text;
  const auto ended = or_throw(
      runner_->run(command, [&](std::string_view line) { text.append(line) += '\n'; }));
  if (!ended.good()) {
    throw std::runtime_error(kni::ipt::describe(command, ended));
  }
  return text;
}

IptablesText IptablesNode::saved(Family family) {
  return parse_save(output({.words = {program(family, "save"), "-c"}, .input = {}}));
}

void IptablesNode::check_saved(const core::ForwardingTable& table, Family family,
                               std::vector<std::string>& failures) {
  const kni::ipt::RenderOptions& options = iptables_->render_options(family);
  const std::string whole = whole_text(kni::ipt::render(table, family, options),
                                       kni::ipt::render_hooks(table.node(), family, options));
  const std::string load = program(family, "restore") + " && " + program(family, "save");
  IptablesText wanted = parse_save(
      output({.words = {"unshare", "--net", "sh", "-c", load}, .input = whole}));
  IptablesText got = saved(family);
  for (const kni::ipt::Table name : kni::ipt::kTables) {
    const IptablesTable& want = wanted[kni::ipt::name_of(name)];
    const IptablesTable& have = got[kni::ipt::name_of(name)];
    for (const auto& [chain, rules] : have.chains) {
      if (!want.chains.contains(chain)) {
        failures.push_back("iptables-save has a chain " + chain + " that was not rendered");
      }
    }
    for (const auto& [chain, rules] : want.chains) {
      if (!have.chains.contains(chain) || have.rules_of(chain) != want.rules_of(chain)) {
        failures.push_back("iptables-save has not the rendered rules of chain " + chain);
      }
    }
  }
}

SocketNet::Refusals IptablesNode::refusals(Family family) {
  SocketNet::Refusals refusals;
  IptablesText text = saved(family);
  for (const auto& [chain, rules] : text["filter"].chains) {
    for (const IptablesTable::Rule& rule : rules) {
      if (rule.text.find("-j DROP") != std::string::npos) {
        refusals.dropped += rule.packets;
      } else if (rule.text.find("-j REJECT") != std::string::npos) {
        refusals.rejected += rule.packets;
      }
    }
  }
  return refusals;
}

/// Lists hold the time of the last packet of a source; for how long it counts says the rule.
std::vector<std::uint32_t> IptablesNode::remembered(const core::IpAddress& source) {
  std::vector<std::uint32_t> seconds;
  std::string rules;
  IptablesText text = saved(source.family());
  for (const auto& [chain, there] : text["nat"].chains) {
    for (const IptablesTable::Rule& rule : there) {
      rules += rule.text + "\n";
    }
  }
  for (const auto& list : std::filesystem::directory_iterator(kRecent)) {
    std::ifstream lines(list.path());
    for (std::string line; std::getline(lines, line);) {
      const std::string address = line.substr(4, line.find(' ') - 4);  // src=ADDRESS ttl: ...
      const auto rule = rules.find(" --reap --name " + list.path().filename().string() + " ");
      const auto since = rules.rfind("--seconds ", rule);
      if (core::parse_address(address) == source && rule != std::string::npos) {
        seconds.push_back(static_cast<std::uint32_t>(std::stoul(rules.substr(since + 10))));
      }
    }
  }
  return seconds;
}

void IptablesNode::wipe() {
  for (const auto& list : std::filesystem::directory_iterator(kRecent)) {
    std::ofstream(list.path()) << "/\n";
  }
}

std::optional<std::vector<std::string>> IptablesNode::judge(const std::string& kind,
                                                            const YAML::Node& value) {
  if (kind == "restore") {
    return judge_restore(value, calls_[Family::kIpv4]);
  }
  if (value["adapter"].as<std::string>() != "iptables") {
    return std::nullopt;
  }
  const Family family =
      value["family"].as<std::string>() == "IPv6" ? Family::kIpv6 : Family::kIpv4;
  return judge_rendered(value, written_[family], saved(family));
}

template <Variant kVariant>
std::unique_ptr<KernelNode> make_node(const NodeSetup& setup) {
  return std::make_unique<IptablesNode>(kVariant, setup.localhost_node_ports);
}

}  // namespace

KernelAdapter iptables_adapter() {
  return {"iptables", compile::Profile::kIptables, make_node<Variant::kNft>};
}

KernelAdapter iptables_legacy_adapter() {
  return {"iptables", compile::Profile::kIptables, make_node<Variant::kLegacy>};
}

}  // namespace sluice::conformance
