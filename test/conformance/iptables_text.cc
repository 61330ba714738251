#include "test/conformance/iptables_text.h"

#include <algorithm>
#include <cstdlib>
#include <sstream>
#include <stdexcept>
#include <utility>

namespace sluice::conformance {
namespace {

/// First word of a line, which it loses.
std::string take_word(std::string_view& line) {
  const auto end = std::min(line.find(' '), line.size());
  const std::string word(line.substr(0, end));
  line.remove_prefix(std::min(end + 1, line.size()));
  return word;
}

/// Reads the lines between "*TABLE" and "COMMIT".
void read_line(std::string_view line, IptablesTable& table) {
  std::uint64_t packets = 0;
  if (line.front() == '[') {
    packets = std::strtoull(take_word(line).c_str() + 1, nullptr, 10);
  }
  const std::string command = take_word(line);
  const std::string chain =
      command.front() == ':' ? command.substr(1) : take_word(line);
  if (command.front() == ':') {
    table.declared.push_back(chain);
    table.chains[chain];
  } else if (command == "-A") {
    table.chains[chain].push_back({std::string(line), packets});
  } else if (command == "-I") {
    if (!line.empty() && line.front() >= '0' && line.front() <= '9') {
      (void)take_word(line);  // a place; hooks go to the top
    }
    auto& rules = table.chains[chain];
    rules.insert(rules.begin(), {std::string(line), packets});
  } else if (command == "-X") {
    table.deleted.push_back(chain);
  } else if (command != "-D" && command != "-F") {
    throw std::runtime_error("iptables: what is the line '" + command + " " + chain + "'?");
  }
}

/// Words as a shell splits them.
std::vector<std::string> words_of(std::string_view rule) {
  std::vector<std::string> words;
  std::string word;
  bool quoted = false;
  bool any = false;
  for (const char c : rule) {
    if (c == '"' || c == '\'') {
      quoted = !quoted;
      any = true;
    } else if (c == ' ' && !quoted) {
      if (any) {
        words.push_back(std::exchange(word, {}));
      }
      any = false;
    } else {
      word += c;
      any = true;
    }
  }
  if (any) {
    words.push_back(word);
  }
  return words;
}

/// "0x00004000/0x4000" as "0x4000/0x4000".
std::string without_leading_zeros(const std::string& word) {
  std::string out;
  for (std::size_t i = 0; i < word.size(); ++i) {
    if (word[i] == '0' && out.ends_with("0x") && i + 1 < word.size() && word[i + 1] != '/') {
      continue;
    }
    out += word[i];
  }
  return out;
}

std::string canonical_word(const std::string& word) {
  if (word.starts_with("0x")) {
    return without_leading_zeros(word);
  }
  for (const std::string_view length : {"/32", "/128"}) {
    const bool v6 = word.find(':') != std::string::npos;
    if (word.ends_with(length) && v6 == (length == "/128") &&
        word.find_first_not_of("0123456789abcdef.:/") == std::string::npos) {
      return word.substr(0, word.size() - length.size());
    }
  }
  return word.find(' ') == std::string::npos ? word : '"' + word + '"';
}

}  // namespace

std::vector<std::string> IptablesTable::rules_of(const std::string& chain) const {
  std::vector<std::string> out;
  if (const auto found = chains.find(chain); found != chains.end()) {
    for (const Rule& rule : found->second) {
      out.push_back(rule.text);
    }
  }
  return out;
}

IptablesInput parse_restore(std::string_view text) {
  IptablesInput out;
  bool open = false;
  std::istringstream lines{std::string(text)};
  for (std::string line; std::getline(lines, line);) {
    if (line.empty() || line.front() == '#') {
      continue;
    }
    if (line.front() == '*') {
      out.emplace_back(line.substr(1), IptablesTable{});
      open = true;
    } else if (line == "COMMIT") {
      open = false;
    } else if (!open) {
      throw std::runtime_error("iptables: a line outside of a table: " + line);
    } else {
      read_line(line, out.back().second);
    }
  }
  return out;
}

IptablesText parse_save(std::string_view text) {
  IptablesText out;
  for (auto& [name, table] : parse_restore(text)) {
    out[name] = std::move(table);
  }
  return out;
}

void play_restore(const IptablesInput& input, IptablesText& chains) {
  for (const auto& [name, section] : input) {
    IptablesTable& into = chains[name];
    for (const std::string& chain : section.declared) {
      into.chains[chain].clear();
    }
    for (const auto& [chain, rules] : section.chains) {
      auto& there = into.chains[chain];
      there.insert(there.end(), rules.begin(), rules.end());
    }
    for (const std::string& chain : section.deleted) {
      into.chains.erase(chain);
    }
  }
}

std::string canonical_rule(std::string_view rule) {
  std::string out;
  for (const std::string& word : words_of(rule)) {
    out += (out.empty() ? "" : " ") + canonical_word(word);
  }
  return out;
}

}  // namespace sluice::conformance
