#pragma once

#include <chrono>
#include <concepts>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <limits>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "conf/yaml_tree.h"
#include "dataplane/core/net/address.h"

namespace sluice::conf {

// Theory of operation
//
// Reader holds the file's name and the first fault; after a fault every call does nothing, so the
// code of a section reads like a list of its keys. A Section is one map of the file: each typed
// call names a key, its range and where the value goes; absent keys keep the default. done() then
// refuses what nobody asked for. Example:
//
//   Section s = top.section("tables");
//   s.number("services", {1, 1 << 20}, c.services);
//   s.done();

/// State of one load. Thread: one.
class Reader {
 public:
  explicit Reader(std::string file) : file_(std::move(file)) {}

  /// Records the fault unless there is one already.
  void fail(std::size_t line, const std::string& field, const std::string& what);
  [[nodiscard]] bool failed() const noexcept { return error_.has_value(); }
  [[nodiscard]] const std::optional<core::Error>& error() const noexcept { return error_; }

  /// Paths of keys that were asked for and not there; list indices left out. For tests that prove
  /// that sluiced.yaml names every key.
  void note_absent(const std::string& path) { absent_.insert(path); }
  [[nodiscard]] const std::set<std::string>& absent() const noexcept { return absent_; }

 private:
  std::string file_;
  std::optional<core::Error> error_;
  std::set<std::string> absent_;
};

struct Range {
  std::uint64_t min = 0;
  std::uint64_t max = 0;
};

/// A word of the file and the value it stands for.
template <class T>
struct Word {
  std::string_view word;
  T value;
};

/// One map of the file.
class Section {
 public:
  /// @param tree  a map or null (all defaults); anything else is a fault.
  Section(Reader& reader, const YamlTree* tree, std::string path);

  [[nodiscard]] Section section(std::string_view key);

  /// A whole number.
  template <std::unsigned_integral T>
  void number(std::string_view key, Range range, T& out) {
    std::uint64_t value = out;
    read_number(key, range, false, value);
    out = static_cast<T>(value);
  }
  /// The same, or the word "auto", which reads as 0.
  template <std::unsigned_integral T>
  void number_or_auto(std::string_view key, Range range, T& out) {
    std::uint64_t value = out;
    read_number(key, range, true, value);
    out = static_cast<T>(value);
  }
  /// The same; "auto" reads as nullopt.
  void number_or_auto(std::string_view key, Range range, std::optional<std::uint16_t>& out);

  void boolean(std::string_view key, bool& out);
  void text(std::string_view key, std::string& out);
  /// Whole seconds written with a unit: "30s", "15m", "24h". Range 1 s .. 24 h.
  void duration(std::string_view key, std::chrono::seconds& out);
  /// The same from 0 s.
  void duration_or_zero(std::string_view key, std::chrono::seconds& out);

  template <class T>
  void word(std::string_view key, std::initializer_list<Word<T>> words, T& out) {
    if (const YamlTree* node = scalar(key, "one of " + join(words))) {
      match(*node, path_of(key), words, out);
    }
  }

  /// Calls `item(node, path)` for every entry of a list; a scalar or map in its place is a fault
  /// that shows how a list is written (F95). Absent: not called, false.
  bool list(std::string_view key,
            const std::function<void(const YamlTree&, const std::string&)>& item);

  /// A list of scalars turned to values by `parse` (nullopt: not `what`). Replaces `out`.
  template <class T, class Parse>
  void values(std::string_view key, std::string_view what, Parse parse, std::vector<T>& out) {
    std::vector<T> read;
    const bool present = list(key, [&](const YamlTree& node, const std::string& path) {
      std::optional<T> value;
      if (node.kind == YamlTree::Kind::kScalar) {
        value = parse(node.scalar);
      }
      if (value.has_value()) {
        read.push_back(*std::move(value));
      } else {
        reader_->fail(node.line, path, std::string(what) + " is expected, not " + printed(node));
      }
    });
    if (present) {
      out = std::move(read);
    }
  }

  /// Refuses keys that no call asked for. Call it last.
  void done();

  /// The node of `key`, or null; marks the key as known.
  const YamlTree* find(std::string_view key);
  /// Line of `key`, or of the section when it is absent.
  [[nodiscard]] std::size_t line_of(std::string_view key) const;
  [[nodiscard]] std::string path_of(std::string_view key) const;
  void fail(std::string_view key, const std::string& what);

  /// A node as error messages show it.
  [[nodiscard]] static std::string printed(const YamlTree& node);

  template <class T>
  void match(const YamlTree& node, const std::string& path, std::initializer_list<Word<T>> words,
             T& out) {
    for (const Word<T>& candidate : words) {
      if (candidate.word == node.scalar) {
        out = candidate.value;
        return;
      }
    }
    reader_->fail(node.line, path, "one of " + join(words) + " is expected, not " + printed(node));
  }

 private:
  template <class T>
  static std::string join(std::initializer_list<Word<T>> words) {
    std::string all;
    for (const Word<T>& candidate : words) {
      all += (all.empty() ? "" : ", ") + std::string(candidate.word);
    }
    return all;
  }
  const YamlTree* scalar(std::string_view key, const std::string& what);
  void read_duration(std::string_view key, std::uint64_t least, const std::string& what,
                     std::chrono::seconds& out);
  void read_number(std::string_view key, Range range, bool accept_auto, std::uint64_t& out);

  Reader* reader_;
  const YamlTree* tree_;
  std::string path_;
  std::vector<std::string> known_;
};

/// Digits only, no sign, no leading zero but "0" itself.
[[nodiscard]] std::optional<std::uint64_t> parse_number(std::string_view text);

}  // namespace sluice::conf
