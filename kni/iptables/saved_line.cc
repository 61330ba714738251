#include "kni/iptables/saved_line.h"

#include <algorithm>
#include <charconv>
#include <vector>

namespace sluice::kni::ipt {
namespace {

/// Takes the first word off.
std::string_view take_word(std::string_view& text) {
  const std::size_t end = std::min(text.find(' '), text.size());
  const std::string_view word = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return word;
}

SavedLine::Kind kind_of(std::string_view command) {
  using Kind = SavedLine::Kind;
  return command == "-A"   ? Kind::kAppend
         : command == "-I" ? Kind::kInsert
         : command == "-D" ? Kind::kTakeOut
         : command == "-X" ? Kind::kDelete
         : command == "-F" ? Kind::kFlush
                           : Kind::kUnknown;
}

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

}  // namespace

SavedLine read_saved_line(std::string_view line) {
  using Kind = SavedLine::Kind;
  if (line.empty() || line.front() == '#') {
    return {};
  }
  if (line == "COMMIT") {
    return {Kind::kCommit, {}, {}, 0};
  }
  if (line.front() == '*') {
    return {Kind::kTable, line.substr(1), {}, 0};
  }
  if (line.front() == ':') {
    line.remove_prefix(1);
    return {Kind::kChain, take_word(line), {}, 0};
  }
  SavedLine out;
  std::string_view rest = line;
  if (rest.front() == '[') {
    const std::string_view counters = take_word(rest).substr(1);
    std::from_chars(counters.data(), counters.data() + counters.size(), out.packets);
  }
  out.kind = kind_of(take_word(rest));
  if (out.kind == Kind::kUnknown) {
    out.name = line;
    return out;
  }
  out.name = take_word(rest);
  if (out.kind == Kind::kInsert && !rest.empty() && is_digit(rest.front())) {
    take_word(rest);
  }
  out.rule = rest;
  return out;
}

namespace {

/// Words of a rule. A quoted text stays one word with its quotes, so none of it reads as an option.
std::vector<std::string> words_of(std::string_view rule) {
  std::vector<std::string> words(1);
  bool quoted = false;
  for (std::size_t i = 0; i < rule.size(); ++i) {
    const char c = rule[i];
    if (c == '\\' && quoted && i + 1 < rule.size()) {
      words.back() += rule[++i];
    } else if (c == '"') {
      quoted = !quoted;
      words.back() += c;
    } else if (c == ' ' && !quoted) {
      words.emplace_back();
    } else {
      words.back() += c;
    }
  }
  return words;
}

}  // namespace

std::string target_of(std::string_view rule) {
  const std::vector<std::string> words = words_of(rule);
  for (std::size_t i = 0; i + 1 < words.size(); ++i) {
    if (words[i] == "-j" || words[i] == "-g") {
      return words[i + 1];
    }
  }
  return {};
}

}  // namespace sluice::kni::ipt
