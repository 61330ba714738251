#include "kni/takeover/iptables_rules.h"

#include <algorithm>
#include <string>

#include "kni/takeover/child.h"
#include "kni/takeover/removal.h"

namespace sluice::kni {
namespace {

constexpr std::chrono::seconds kDeadline{120};  // large rule sets take that long

core::Error error_of(const std::string& program, const ChildResult& child) {
  const std::string line = child.err.substr(0, child.err.find('\n'));
  return {program + ": " + (child.status < 0 ? "it did not end in time" : line)};
}

/// @param name  "iptables-legacy" or the like. Errors: as above.
core::Result<void> remove_of(const std::string& name) {
  const std::string save = name + "-save";
  const ChildResult saved = run_child({save}, "", kDeadline);
  if (saved.missing) {
    return {};
  }
  if (saved.status != 0) {
    return tl::make_unexpected(error_of(save, saved));
  }
  if (saved.cut) {
    return tl::make_unexpected(
        core::Error{save + ": the rule set is too large to be taken over; nothing was removed"});
  }
  const std::string removal = removal_of(saved.out);
  if (removal.empty()) {
    return {};
  }
  const std::string restore = name + "-restore";
  const ChildResult done =
      run_child({restore, "--wait", "5", "--noflush"}, removal, kDeadline);
  if (done.missing || done.status != 0) {
    return tl::make_unexpected(error_of(restore, done));
  }
  return {};
}

}  // namespace

core::Result<void> remove_kube_proxy_rules(const std::vector<std::string>& kept) {
  core::Result<void> result;
  for (const char* family : {"iptables", "ip6tables"}) {
    for (const char* variant : {"-nft", "-legacy"}) {
      const std::string name = std::string(family) + variant;
      if (std::find(kept.begin(), kept.end(), name) != kept.end()) {
        continue;
      }
      if (auto done = remove_of(name); !done && result) {
        result = done;
      }
    }
  }
  return result;
}

}  // namespace sluice::kni
