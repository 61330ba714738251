#include "conf/section.h"

#include <algorithm>
#include <charconv>
#include <cstddef>

namespace sluice::conf {
namespace {

std::string range_text(Range range) {
  return std::to_string(range.min) + ".." + std::to_string(range.max);
}

/// "ports[3].mtu" -> "ports.mtu".
std::string without_indices(const std::string& path) {
  std::string out;
  bool inside = false;
  for (const char c : path) {
    inside = inside || c == '[';
    if (!inside) {
      out += c;
    }
    inside = inside && c != ']';
  }
  return out;
}

}  // namespace

void Reader::fail(std::size_t line, const std::string& field, const std::string& what) {
  if (!error_.has_value()) {
    std::string message =
        file_ + ":" + std::to_string(line) + ": " + (field.empty() ? "" : field + ": ") + what;
    // Quoted YAML text may hold control characters; an error stays one line.
    std::replace_if(
        message.begin(), message.end(),
        [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; }, ' ');
    error_ = core::Error{std::move(message)};
  }
}

Section::Section(Reader& reader, const YamlTree* tree, std::string path)
    : reader_(&reader), tree_(tree), path_(std::move(path)) {
  if (tree_ != nullptr && tree_->kind == YamlTree::Kind::kNull) {
    tree_ = nullptr;
  }
  if (tree_ != nullptr && tree_->kind != YamlTree::Kind::kMap) {
    reader_->fail(tree_->line, path_,
                  "indented \"key: value\" lines are expected, not " + printed(*tree_));
    tree_ = nullptr;
  }
}

Section Section::section(std::string_view key) {
  return Section(*reader_, find(key), path_of(key));
}

const YamlTree* Section::find(std::string_view key) {
  known_.emplace_back(key);
  if (tree_ != nullptr) {
    const auto at = std::find(tree_->keys.begin(), tree_->keys.end(), key);
    if (at != tree_->keys.end()) {
      return &tree_->items[static_cast<std::size_t>(at - tree_->keys.begin())];
    }
  }
  reader_->note_absent(without_indices(path_of(key)));
  return nullptr;
}

std::size_t Section::line_of(std::string_view key) const {
  if (tree_ == nullptr) {
    return 1;
  }
  const auto at = std::find(tree_->keys.begin(), tree_->keys.end(), key);
  return at == tree_->keys.end()
             ? tree_->line
             : tree_->key_lines[static_cast<std::size_t>(at - tree_->keys.begin())];
}

std::string Section::path_of(std::string_view key) const {
  return path_.empty() ? std::string(key) : path_ + "." + std::string(key);
}

void Section::fail(std::string_view key, const std::string& what) {
  reader_->fail(line_of(key), path_of(key), what);
}

std::string Section::printed(const YamlTree& node) {
  constexpr std::size_t kShown = 60;
  switch (node.kind) {
    case YamlTree::Kind::kNull:
      return "nothing";
    case YamlTree::Kind::kList:
      return "a list";
    case YamlTree::Kind::kMap:
      return "\"key: value\" lines";
    case YamlTree::Kind::kScalar:
      break;
  }
  return "\"" + node.scalar.substr(0, kShown) + (node.scalar.size() > kShown ? "..." : "") + "\"";
}

const YamlTree* Section::scalar(std::string_view key, const std::string& what) {
  const YamlTree* node = find(key);
  if (node != nullptr && node->kind != YamlTree::Kind::kScalar) {
    fail(key, what + " is expected, not " + printed(*node));
    return nullptr;
  }
  return node;
}

void Section::read_number(std::string_view key, Range range, bool accept_auto, std::uint64_t& out) {
  const std::string what =
      "a whole number in " + range_text(range) + (accept_auto ? " or auto" : "");
  const YamlTree* node = scalar(key, what);
  if (node == nullptr) {
    return;
  }
  if (accept_auto && !node->quoted && node->scalar == "auto") {
    out = 0;
    return;
  }
  const auto value = node->quoted ? std::nullopt : parse_number(node->scalar);
  if (!value.has_value() || *value < range.min || *value > range.max) {
    reader_->fail(node->line, path_of(key), what + " is expected, not " + printed(*node));
    return;
  }
  out = *value;
}

void Section::number_or_auto(std::string_view key, Range range, std::optional<std::uint16_t>& out) {
  std::uint64_t value = out.value_or(0);
  read_number(key, range, true, value);
  out = value == 0 ? std::nullopt : std::optional(static_cast<std::uint16_t>(value));
}

void Section::boolean(std::string_view key, bool& out) {
  const YamlTree* node = scalar(key, "true or false");
  if (node == nullptr) {
    return;
  }
  if (node->quoted || (node->scalar != "true" && node->scalar != "false")) {
    reader_->fail(node->line, path_of(key), "true or false is expected, not " + printed(*node));
    return;
  }
  out = node->scalar == "true";
}

void Section::text(std::string_view key, std::string& out) {
  if (const YamlTree* node = scalar(key, "a text")) {
    out = node->scalar;
  }
}

void Section::duration(std::string_view key, std::chrono::seconds& out) {
  read_duration(key, 1, "a duration with a unit in 1s..24h, such as 30s or 15m,", out);
}

void Section::duration_or_zero(std::string_view key, std::chrono::seconds& out) {
  read_duration(key, 0, "a duration with a unit in 0s..24h, such as 30s or 15m,", out);
}

void Section::read_duration(std::string_view key, std::uint64_t least, const std::string& what,
                            std::chrono::seconds& out) {
  constexpr std::uint64_t kMaxSeconds = 24 * 3600;
  const YamlTree* node = scalar(key, what);
  if (node == nullptr) {
    return;
  }
  const std::string_view text = node->scalar;
  const char unit = text.empty() ? ' ' : text.back();
  const std::uint64_t scale = unit == 's' ? 1 : unit == 'm' ? 60 : unit == 'h' ? 3600 : 0;
  const auto value = scale == 0 ? std::nullopt : parse_number(text.substr(0, text.size() - 1));
  if (!value.has_value() || *value < least || *value > kMaxSeconds / scale) {
    reader_->fail(node->line, path_of(key), what + " is expected, not " + printed(*node));
    return;
  }
  out = std::chrono::seconds(*value * scale);
}

bool Section::list(std::string_view key,
                   const std::function<void(const YamlTree&, const std::string&)>& item) {
  const YamlTree* node = find(key);
  if (node == nullptr) {
    return false;
  }
  if (node->kind != YamlTree::Kind::kList) {
    const bool scalar_there = node->kind == YamlTree::Kind::kScalar;
    fail(key, "a list such as [" + (scalar_there ? node->scalar.substr(0, 60) : "") +
                  "] is expected, not " + printed(*node));
    return false;
  }
  for (std::size_t i = 0; i < node->items.size(); ++i) {
    item(node->items[i], path_of(key) + "[" + std::to_string(i) + "]");
  }
  return true;
}

void Section::done() {
  if (tree_ == nullptr) {
    return;
  }
  for (std::size_t i = 0; i < tree_->keys.size(); ++i) {
    if (std::find(known_.begin(), known_.end(), tree_->keys[i]) != known_.end()) {
      continue;
    }
    std::string all;
    for (const std::string& key : known_) {
      if (key.rfind("test-", 0) != 0) {
        all += (all.empty() ? "" : ", ") + key;
      }
    }
    reader_->fail(tree_->key_lines[i], path_of(tree_->keys[i].substr(0, 60)),
                  "unknown key; known here: " + all);
    return;
  }
}

std::optional<std::uint64_t> parse_number(std::string_view text) {
  if (text.empty() || text.size() > 19 || (text.size() > 1 && text.front() == '0')) {
    return std::nullopt;
  }
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) {
    return std::nullopt;
  }
  return value;
}

}  // namespace sluice::conf
