#include "test/conformance/iptables_text.h"

#include <sstream>
#include <stdexcept>
#include <utility>

#include "kni/iptables/saved_line.h"

namespace sluice::conformance {
namespace {

using kni::ipt::SavedLine;

/// Takes a line between "*TABLE" and "COMMIT".
void take_line(const SavedLine& line, IptablesTable& table) {
  const std::string chain(line.name);
  auto& rules = table.chains;
  switch (line.kind) {
    case SavedLine::Kind::kChain:
      table.declared.push_back(chain);
      rules[chain];
      break;
    case SavedLine::Kind::kAppend:
      rules[chain].push_back({std::string(line.rule), line.packets});
      break;
    case SavedLine::Kind::kInsert:  // hooks go to the top
      rules[chain].insert(rules[chain].begin(), {std::string(line.rule), line.packets});
      break;
    case SavedLine::Kind::kDelete:
      table.deleted.push_back(chain);
      break;
    case SavedLine::Kind::kTakeOut:
    case SavedLine::Kind::kFlush:
      break;
    default:
      throw std::runtime_error("iptables: what is the line '" + chain + "'?");
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
  for (std::string read; std::getline(lines, read);) {
    const SavedLine line = kni::ipt::read_saved_line(read);
    if (line.kind == SavedLine::Kind::kNothing) {
      continue;
    }
    if (line.kind == SavedLine::Kind::kTable) {
      out.emplace_back(line.name, IptablesTable{});
      open = true;
    } else if (line.kind == SavedLine::Kind::kCommit) {
      open = false;
    } else if (!open) {
      throw std::runtime_error("iptables: a line outside of a table: " + read);
    } else {
      take_line(line, out.back().second);
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
