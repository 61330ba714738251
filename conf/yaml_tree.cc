#include "conf/yaml_tree.h"

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <optional>
#include <sstream>
#include <unordered_set>
#include <utility>

namespace sluice::conf {
namespace {

constexpr std::size_t kMaxBytes = 256 * 1024;
constexpr std::size_t kMaxDepth = 16;

std::size_t line_of(const YAML::Mark& mark) {
  return mark.line < 0 ? 1 : static_cast<std::size_t>(mark.line) + 1;
}

/// Builds a tree from parser events and refuses what a configuration has no use for. Faults leave
/// as YAML::ParserException: it stops the parser at once and carries the place.
class TreeBuilder : public YAML::EventHandler {
 public:
  [[nodiscard]] YamlTree take() { return std::move(root_); }

  void OnDocumentStart(const YAML::Mark& /*mark*/) override {}
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    refuse_anchor(mark, anchor);
    add(mark, node_at(mark, YamlTree::Kind::kNull));
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t /*anchor*/) override {
    throw YAML::ParserException(mark, "aliases (*name) are not allowed here; write the value out");
  }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    refuse_anchor(mark, anchor);
    refuse_tag(mark, tag);
    YamlTree node = node_at(mark, YamlTree::Kind::kScalar);
    node.quoted = tag == "!";
    node.scalar = value;
    add(mark, std::move(node));
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value /*style*/) override {
    open(mark, tag, anchor, YamlTree::Kind::kList);
  }
  void OnSequenceEnd() override { close(); }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value /*style*/) override {
    open(mark, tag, anchor, YamlTree::Kind::kMap);
  }
  void OnMapEnd() override { close(); }

 private:
  struct Frame {
    YamlTree tree;
    std::unordered_set<std::string> seen;
  };

  static YamlTree node_at(const YAML::Mark& mark, YamlTree::Kind kind) {
    YamlTree node;
    node.kind = kind;
    node.line = line_of(mark);
    return node;
  }
  static void refuse_anchor(const YAML::Mark& mark, YAML::anchor_t anchor) {
    if (anchor != YAML::NullAnchor) {
      throw YAML::ParserException(mark, "anchors (&name) are not allowed here");
    }
  }
  static void refuse_tag(const YAML::Mark& mark, const std::string& tag) {
    if (!tag.empty() && tag != "?" && tag != "!") {
      throw YAML::ParserException(mark, "tags (" + tag + ") are not allowed here");
    }
  }
  /// True when the innermost map has a key that waits for its value, or there is no map.
  [[nodiscard]] bool wants_key() const {
    return !frames_.empty() && frames_.back().tree.kind == YamlTree::Kind::kMap &&
           frames_.back().tree.keys.size() == frames_.back().tree.items.size();
  }
  void open(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
            YamlTree::Kind kind) {
    refuse_anchor(mark, anchor);
    refuse_tag(mark, tag);
    if (wants_key()) {
      throw YAML::ParserException(mark, "a key must be a plain word");
    }
    if (frames_.size() == kMaxDepth) {
      throw YAML::ParserException(mark, "nested too deeply");
    }
    frames_.push_back({node_at(mark, kind), {}});
  }
  void close() {
    YamlTree done = std::move(frames_.back().tree);
    frames_.pop_back();
    place(std::move(done));
  }
  void add(const YAML::Mark& mark, YamlTree node) {
    if (!wants_key()) {
      place(std::move(node));
      return;
    }
    Frame& map = frames_.back();
    if (node.kind != YamlTree::Kind::kScalar) {
      throw YAML::ParserException(mark, "a key must be a plain word");
    }
    if (!map.seen.insert(node.scalar).second) {
      throw YAML::ParserException(mark, "duplicate key \"" + node.scalar + "\"");
    }
    map.tree.keys.push_back(std::move(node.scalar));
    map.tree.key_lines.push_back(node.line);
  }
  void place(YamlTree node) {
    if (frames_.empty()) {
      root_ = std::move(node);
    } else {
      frames_.back().tree.items.push_back(std::move(node));
    }
  }

  YamlTree root_;
  std::vector<Frame> frames_;
};

core::Error error_at(const std::string& file, std::size_t line, const std::string& what) {
  return core::Error{file + ":" + std::to_string(line) + ": " + what};
}

/// Bytes that no configuration file should hold, found before the parser sees them.
std::optional<core::Error> check_bytes(std::string_view text, const std::string& file) {
  const auto starts = [&](std::string_view mark) { return text.substr(0, mark.size()) == mark; };
  if (text.size() > kMaxBytes) {
    return error_at(file, 1, "larger than 256 KiB: this is no configuration file");
  }
  if (starts("\xef\xbb\xbf") || starts("\xff\xfe") || starts("\xfe\xff")) {
    return error_at(file, 1, "byte order mark; save the file as UTF-8 without it");
  }
  std::size_t line = 1;
  bool before_text = true;
  for (const char c : text) {
    if (c == '\n') {
      ++line;
      before_text = true;
    } else if (c == '\0') {
      return error_at(file, line, "NUL byte; the file must be UTF-8 text");
    } else if (c == '\t' && before_text) {
      return error_at(file, line, "tab; indent with spaces");
    } else if (c != ' ') {
      before_text = false;
    }
  }
  return std::nullopt;
}

}  // namespace

core::Result<YamlTree> parse_yaml(std::string_view text, const std::string& file) {
  if (auto error = check_bytes(text, file)) {
    return tl::make_unexpected(*std::move(error));
  }
  try {
    std::istringstream in{std::string(text)};
    YAML::Parser parser(in);
    TreeBuilder first;
    if (!parser.HandleNextDocument(first)) {
      return tl::make_unexpected(error_at(file, 1, "empty file; a configuration is expected"));
    }
    YamlTree tree = first.take();
    TreeBuilder second;
    if (parser.HandleNextDocument(second)) {
      return tl::make_unexpected(
          error_at(file, second.take().line, "second document; exactly one is expected"));
    }
    if (tree.kind == YamlTree::Kind::kNull) {
      return tl::make_unexpected(error_at(file, 1, "empty file; a configuration is expected"));
    }
    if (tree.kind != YamlTree::Kind::kMap) {
      return tl::make_unexpected(error_at(file, tree.line, "\"key: value\" lines are expected"));
    }
    return tree;
  } catch (const YAML::Exception& e) {
    return tl::make_unexpected(error_at(file, line_of(e.mark), e.msg));
  }
}

}  // namespace sluice::conf
