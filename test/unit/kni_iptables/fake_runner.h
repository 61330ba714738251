#pragma once

#include <deque>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "kni/iptables/runner.h"

namespace sluice::kni::test {

/// Programs that answer as the test says.
class FakeRunner : public ipt::Runner {
 public:
  struct State {
    std::map<std::string, std::vector<std::string>> output;  ///< by program
    std::map<std::string, std::string> missing;              ///< programs, and why
    std::map<std::string, ipt::Outcome> outcome;             ///< of every run of a program
    std::deque<ipt::Outcome> restores;                       ///< of the next restores of IPv4
    std::vector<std::string> ran;                            ///< words of all runs
    std::vector<std::string> inputs;                         ///< of restores of IPv4
    std::map<std::string, std::string> told;                 ///< the last input of a restore
  };
  explicit FakeRunner(State& state) : s_(state) {}

  core::Result<ipt::Outcome> run(const ipt::Command& command, const ipt::LineTaker& take) override {
    std::string words;
    for (const std::string& word : command.words) {
      words += (words.empty() ? "" : " ") + word;
    }
    s_.ran.push_back(words);
    const std::string& program = command.words.front();
    if (s_.missing.contains(program)) {
      return tl::make_unexpected(core::Error{program + ": " + s_.missing[program]});
    }
    if (command.words.back() == "--version" && take) {
      const bool nft = program.find("-nft") != std::string::npos;
      take(nft ? "iptables v1.8.9 (nf_tables)" : "iptables v1.8.9 (legacy)");
    }
    for (const std::string& line : take ? s_.output[program] : std::vector<std::string>{}) {
      take(line);
    }
    if (program.ends_with("-restore")) {
      s_.told[program] = command.input;
    }
    if (program == "iptables-restore") {
      s_.inputs.emplace_back(command.input);
      if (!s_.restores.empty()) {
        ipt::Outcome outcome = s_.restores.front();
        s_.restores.pop_front();
        return outcome;
      }
    }
    const auto found = s_.outcome.find(words);
    return found == s_.outcome.end() ? ipt::Outcome{} : found->second;
  }

 private:
  State& s_;
};

inline ipt::Outcome refused(int status, std::string errors) {
  return {status, false, std::move(errors)};
}

}  // namespace sluice::kni::test
