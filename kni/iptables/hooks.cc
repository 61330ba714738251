// How packets come to our chains (section 19.1).
#include <string_view>

#include "kni/iptables/names.h"
#include "kni/iptables/render.h"
#include "kni/iptables/words.h"

namespace sluice::kni::ipt {
namespace {

/// One line of 19.1.
struct HookLine {
  Table table;
  const char* chain;
  const char* target;
  const char* text;
  bool only_new;
};

Hook make_hook(const HookLine& line, const std::string& taps) {
  const std::string_view chain = line.chain;
  const bool arriving = chain == "PREROUTING" || chain == "INPUT" || chain == "FORWARD";
  std::string rule = arriving && !taps.empty() ? "! -i " + taps + "+ " : "";
  rule += line.only_new ? "-m conntrack --ctstate NEW " : "";
  rule += comment(line.text, *line.text != '\0');
  return {line.table, line.chain, line.target, rule + "-j " + line.target};
}

constexpr const char* kExternal = "kubernetes externally-visible service portals";
constexpr const char* kHealth = "kubernetes health check service ports";
constexpr const char* kPortals = "kubernetes service portals";
constexpr const char* kRules = "kubernetes forwarding rules";
constexpr const char* kLimits = "kubernetes load balancer firewall";
constexpr const char* kLast = "kubernetes postrouting rules";

/// 19.1, in its order.
constexpr HookLine kHooks[] = {
    {Table::kFilter, "INPUT", kExternalServicesChain, kExternal, true},
    {Table::kFilter, "FORWARD", kExternalServicesChain, kExternal, true},
    {Table::kFilter, "INPUT", kNodePortsChain, kHealth, false},
    {Table::kFilter, "FORWARD", kServicesChain, kPortals, true},
    {Table::kFilter, "OUTPUT", kServicesChain, kPortals, true},
    {Table::kFilter, "FORWARD", kForwardChain, kRules, false},
    {Table::kFilter, "INPUT", kFirewallChain, kLimits, true},
    {Table::kFilter, "OUTPUT", kFirewallChain, kLimits, true},
    {Table::kFilter, "FORWARD", kFirewallChain, kLimits, true},
    {Table::kNat, "OUTPUT", kServicesChain, kPortals, false},
    {Table::kNat, "PREROUTING", kServicesChain, kPortals, false},
    {Table::kNat, "POSTROUTING", kPostroutingChain, kLast, false},
};
/// With node ports on loopback; kubelet has the same.
constexpr HookLine kLocalhostHooks[] = {
    {Table::kFilter, "INPUT", kSharedFirewallChain, "", false},
    {Table::kFilter, "OUTPUT", kSharedFirewallChain, "", false},
};

}  // namespace

std::vector<Hook> render_hooks(const core::NodePart& node, core::Family family,
                               const RenderOptions& options) {
  std::vector<Hook> hooks;
  for (const HookLine& line : kHooks) {
    hooks.push_back(make_hook(line, options.taps));
  }
  if (has_localhost_node_ports(node, family, options)) {
    for (const HookLine& line : kLocalhostHooks) {
      hooks.push_back(make_hook(line, ""));
    }
  }
  return hooks;
}

}  // namespace sluice::kni::ipt
