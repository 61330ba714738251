#include "kni/iptables/programs.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <tuple>

namespace sluice::kni::ipt {
namespace {

using core::Error;
using core::Family;
using core::Result;

constexpr std::chrono::minutes kRestoreDeadline{10};
constexpr std::chrono::minutes kReadDeadline{2};

std::string stem_of(Family family, const char* variant) {
  return std::string(family == Family::kIpv4 ? "iptables" : "ip6tables") + variant;
}

bool says(const Outcome& outcome, std::string_view text) {
  return outcome.errors.find(text) != std::string::npos;
}

/// What a variant holds; nothing: it is not there, or cannot say.
struct Look {
  std::optional<Present> present;
  std::string error;  ///< why it cannot say
};
Look look(Runner& runner, const std::string& stem) {
  Present present;
  const Command command{{stem + "-save"}, {}, kReadDeadline};
  const auto done = runner.run(command, [&](std::string_view line) { present.take(line); });
  if (!done) {
    return {};
  }
  // A kernel without the variant has no rules of it.
  if (says(*done, "Protocol not supported") || says(*done, "Table does not exist")) {
    return {};
  }
  if (!done->good()) {
    return {std::nullopt, describe(command, *done)};
  }
  return {std::move(present), {}};
}

std::string choose_stem(Runner& runner, Family family, Variant wanted) {
  const std::string nft = stem_of(family, "-nft");
  const std::string legacy = stem_of(family, "-legacy");
  if (wanted != Variant::kAuto) {
    return wanted == Variant::kNft ? nft : legacy;
  }
  const auto in_nft = look(runner, nft).present;
  const auto in_legacy = look(runner, legacy).present;
  if (!in_nft || !in_legacy) {
    return stem_of(family, "");  // there is no choice
  }
  const auto rank = [](const Present& p) {
    return std::tuple(p.has_ours(), p.has_hints(), p.rules());
  };
  if (rank(*in_nft) != rank(*in_legacy)) {
    return rank(*in_nft) > rank(*in_legacy) ? nft : legacy;
  }
  return stem_of(family, "");
}

/// A run that must be a success.
Result<void> run_well(Runner& runner, const Command& command, const LineTaker& take) {
  const auto done = runner.run(command, take);
  if (!done) {
    return tl::make_unexpected(done.error());
  }
  if (!done->good()) {
    return tl::make_unexpected(Error{describe(command, *done)});
  }
  return {};
}

Result<Programs> ask_version(Runner& runner, Family family, std::string stem) {
  Version version;
  const auto asked = run_well(runner, {{stem, "--version"}, {}, kReadDeadline},
                              [&](std::string_view line) { version = parse_version(line); });
  if (!asked) {
    return tl::make_unexpected(asked.error());
  }
  return Programs{family, std::move(stem), version.nft, version.at_least_1_6_2,
                  version.at_least_1_6_2};
}

/// The line of what a program said that tells most: the last one that is not a hint to help.
std::string last_words(std::string_view errors) {
  std::string best;
  while (!errors.empty()) {
    const std::size_t end = std::min(errors.find('\n'), errors.size());
    const std::string_view line = errors.substr(0, end);
    errors.remove_prefix(std::min(end + 1, errors.size()));
    const bool help = line.starts_with("Try `") || line.starts_with("Perhaps ") ||
                      line.starts_with("#") || line.empty();
    if (!help) {
      best += best.empty() ? line : "; " + std::string(line);
    }
  }
  constexpr std::size_t kMost = 300;
  return best.substr(0, kMost);
}

}  // namespace

std::string Programs::variant_name() const {
  return stem_of(family, nft ? "-nft" : "-legacy");
}

Command Programs::restore(std::string_view input) const {
  std::vector<std::string> words = {stem + "-restore"};
  if (waits) {
    words.insert(words.end(), {"-w", "5"});
  }
  words.insert(words.end(), {"--noflush", "--counters"});
  return {std::move(words), input, kRestoreDeadline};
}

Command Programs::save() const {
  return {{stem + "-save"}, {}, kReadDeadline};
}

Command Programs::show(Table table, std::string_view chain) const {
  std::vector<std::string> words = {stem};
  if (waits) {
    words.insert(words.end(), {"-w", "5"});
  }
  words.insert(words.end(), {"-t", name_of(table), "-S", std::string(chain)});
  return {std::move(words), {}, kReadDeadline};
}

Result<Programs> find_programs(Runner& runner, Family family, Variant wanted) {
  auto programs = ask_version(runner, family, choose_stem(runner, family, wanted));
  if (!programs) {
    return programs;
  }
  const auto probed = run_well(runner, programs->show(Table::kNat, "POSTROUTING"), nullptr);
  if (!probed) {
    return tl::make_unexpected(probed.error());
  }
  return programs;
}

namespace {

/// Every variant of a family that has it.
struct ProgramsThere {
  std::vector<Programs> programs;
  std::vector<std::string> errors;  ///< lines: variants that are there and could not be looked at
};

ProgramsThere programs_that(Runner& runner, Family family, const Has& has) {
  ProgramsThere out;
  for (const char* variant : {"-nft", "-legacy", ""}) {
    const bool other_name =
        *variant == '\0' && !(out.programs.empty() && out.errors.empty());
    const std::string stem = stem_of(family, variant);
    const Look there = other_name ? Look{} : look(runner, stem);
    if (!there.error.empty()) {
      out.errors.push_back(there.error);
    }
    if (!there.present || !has(*there.present)) {
      continue;
    }
    if (auto programs = ask_version(runner, family, stem)) {
      out.programs.push_back(std::move(*programs));
    } else {
      out.errors.push_back(programs.error().message);
    }
  }
  return out;
}

}  // namespace

Result<void> read_saved(Runner& runner, const Programs& programs, const LineTaker& take) {
  return run_well(runner, programs.save(), take);
}

Result<Present> read_present(Runner& runner, const Programs& programs) {
  Present present;
  const auto read =
      read_saved(runner, programs, [&](std::string_view line) { present.take(line); });
  if (!read) {
    return tl::make_unexpected(read.error());
  }
  return present;
}

Result<void> restore_all_that(Runner& runner, const Has& has, const MakeInput& make_input) {
  std::string errors;
  const auto fail = [&](const std::string& line) { errors += (errors.empty() ? "" : "; ") + line; };
  for (const Family family : {Family::kIpv4, Family::kIpv6}) {
    const ProgramsThere there = programs_that(runner, family, has);
    std::for_each(there.errors.begin(), there.errors.end(), fail);
    for (const Programs& programs : there.programs) {
      const auto input = make_input(programs);
      if (!input) {
        fail(input.error().message);
      } else if (!input->empty()) {
        const auto done = run_well(runner, programs.restore(*input), nullptr);
        if (!done) {
          fail(done.error().message);
        }
      }
    }
  }
  if (!errors.empty()) {
    return tl::make_unexpected(Error{errors});
  }
  return {};
}

bool is_lock_held(const Outcome& outcome) noexcept {
  return outcome.status == 4 && says(outcome, "xtables lock");
}

std::string describe(const Command& command, const Outcome& outcome) {
  const std::string& program = command.words.front();
  if (outcome.timed_out) {
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(command.deadline);
    return program + ": ended, because it was not done after " + std::to_string(seconds.count()) +
           " s";
  }
  if (is_lock_held(outcome)) {
    return program +
           ": another program holds the xtables lock (/run/xtables.lock) for longer than "
           "5 s; it is tried again";
  }
  if (says(outcome, "Permission denied") || says(outcome, "Operation not permitted")) {
    return program + ": not permitted; CAP_NET_ADMIN and CAP_NET_RAW are needed";
  }
  const std::string words = last_words(outcome.errors);
  return program + ": status " + std::to_string(outcome.status) +
         (words.empty() ? "" : ": " + words);
}

Version parse_version(std::string_view line) {
  Version version;
  version.nft = line.find("nf_tables") != std::string_view::npos;
  const std::size_t at = line.find(" v");
  if (at == std::string_view::npos) {
    return version;
  }
  std::array<unsigned, 3> parts{};
  const char* from = line.data() + at + 2;
  const char* const end = line.data() + line.size();
  for (unsigned& part : parts) {
    const auto [next, error] = std::from_chars(from, end, part);
    if (error != std::errc{} || next == end || *next != '.') {
      break;
    }
    from = next + 1;
  }
  version.at_least_1_6_2 = parts >= std::array<unsigned, 3>{1, 6, 2};
  return version;
}

}  // namespace sluice::kni::ipt
