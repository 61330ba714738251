#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "kni/iptables/present.h"
#include "kni/iptables/runner.h"

namespace sluice::kni::ipt {

/// The two kinds of iptables: each has rules of its own, and only one is right on a host.
enum class Variant : std::uint8_t { kAuto, kLegacy, kNft };

/// The programs of one family that write the rules this host uses.
struct Programs {
  core::Family family = core::Family::kIpv4;
  std::string stem;          ///< "iptables", "ip6tables-legacy", ...: `stem`, `stem`-save, ...
  bool nft = false;          ///< backed by nftables
  bool waits = true;         ///< knows -w 5 (1.6.2)
  bool random_fully = true;  ///< knows --random-fully (1.6.2)

  /// "iptables-nft", "ip6tables-legacy", ...: what the host calls this variant.
  [[nodiscard]] std::string variant_name() const;
  /// IT-3.
  [[nodiscard]] Command restore(std::string_view input) const;
  /// All tables.
  [[nodiscard]] Command save() const;
  /// The rules of one chain.
  [[nodiscard]] Command show(Table table, std::string_view chain) const;
};

/// Finds the programs of a family. Auto: the variant that has our chains, or chains by which a
/// kubelet hints, or more rules; else the host's default.
/// Errors: no such program, or it cannot list nat POSTROUTING (IT-7); one line.
[[nodiscard]] core::Result<Programs> find_programs(Runner& runner, core::Family family,
                                                   Variant wanted);

/// Something a variant may have.
using Has = std::function<bool(const Present&)>;

/// Gives all that is there to `take`, as the variant's save prints it. Errors: one line.
[[nodiscard]] core::Result<void> read_saved(Runner& runner, const Programs& programs,
                                            const LineTaker& take);
/// Reads what is there. Errors: one line.
[[nodiscard]] core::Result<Present> read_present(Runner& runner, const Programs& programs);

/// What a variant's restore is told; "": nothing. Errors: one line.
using MakeInput = std::function<core::Result<std::string>(const Programs&)>;
/// Runs a restore for every variant of both families that has it.
/// Errors: one line, of all variants that failed; the others were done.
[[nodiscard]] core::Result<void> restore_all_that(Runner& runner, const Has& has,
                                                  const MakeInput& make_input);

/// Why a run was no success, one line: program, reason, what to do.
[[nodiscard]] std::string describe(const Command& command, const Outcome& outcome);
/// Another program held the lock.
[[nodiscard]] bool is_lock_held(const Outcome& outcome) noexcept;

/// Of `--version`'s answer: "iptables v1.8.9 (nf_tables)".
struct Version {
  bool at_least_1_6_2 = true;
  bool nft = false;
};
[[nodiscard]] Version parse_version(std::string_view line);

}  // namespace sluice::kni::ipt
