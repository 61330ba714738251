#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include <array>
#include <optional>
#include <streambuf>

#include "proto/text_reader.h"

namespace sluice::codec {
namespace {

std::uint32_t line_of(const YAML::Mark& mark) {
  return mark.line < 0 ? 0 : static_cast<std::uint32_t>(mark.line) + 1;
}

/// Hands yaml-cpp's events on.
class YamlEvents final : public YAML::EventHandler {
 public:
  explicit YamlEvents(EventSink& sink) : sink_(sink) {}

  void OnDocumentStart(const YAML::Mark& /*mark*/) override { sink_.on_document(); }
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t /*anchor*/) override {
    emit(EventKind::kNull, mark, false, {});
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t /*anchor*/) override {
    throw SyntaxError{line_of(mark), "aliases (*name) are not accepted; write the value out"};
  }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t /*anchor*/,
                const std::string& value) override {
    emit(EventKind::kScalar, mark, tag != "?", value);  // "?": plain, without a tag
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string& /*tag*/,
                       YAML::anchor_t /*anchor*/, YAML::EmitterStyle::value /*style*/) override {
    emit(EventKind::kSeqStart, mark, false, {});
  }
  void OnSequenceEnd() override { sink_.on_event(EventKind::kSeqEnd, line_, false, {}); }
  void OnMapStart(const YAML::Mark& mark, const std::string& /*tag*/, YAML::anchor_t /*anchor*/,
                  YAML::EmitterStyle::value /*style*/) override {
    emit(EventKind::kMapStart, mark, false, {});
  }
  void OnMapEnd() override { sink_.on_event(EventKind::kMapEnd, line_, false, {}); }

 private:
  void emit(EventKind kind, const YAML::Mark& mark, bool quoted, std::string_view text) {
    line_ = line_of(mark);
    sink_.on_event(kind, line_, quoted, text);
  }
  EventSink& sink_;
  std::uint32_t line_ = 1;
};

/// Passes a text on and remembers the first line that is indented by a tab: yaml-cpp's own message
/// about it names neither the tab nor, always, the line.
class TabWatch final : public std::streambuf {
 public:
  explicit TabWatch(std::streambuf& from) : from_(from) {}
  [[nodiscard]] std::optional<std::uint32_t> first_tab_line() const { return tab_line_; }

 protected:
  int_type underflow() override {
    const auto n = from_.sgetn(block_.data(), static_cast<std::streamsize>(block_.size()));
    if (n <= 0) {
      return traits_type::eof();
    }
    for (std::streamsize i = 0; i < n; ++i) {
      watch(block_[static_cast<std::size_t>(i)]);
    }
    setg(block_.data(), block_.data(), block_.data() + n);
    return traits_type::to_int_type(block_.front());
  }

 private:
  void watch(char c) {
    if (c == '\n') {
      ++line_;
      indent_ = true;
      return;
    }
    if (indent_ && c == '\t' && !tab_line_) {
      tab_line_ = line_;
    }
    indent_ = indent_ && c == ' ';
  }

  std::streambuf& from_;
  std::array<char, 65536> block_{};
  std::uint32_t line_ = 1;
  bool indent_ = true;
  std::optional<std::uint32_t> tab_line_;
};

}  // namespace

void read_yaml(std::istream& in, EventSink& sink) {
  TabWatch watch(*in.rdbuf());
  std::istream watched(&watch);
  try {
    YAML::Parser parser(watched);
    YamlEvents events(sink);
    while (parser.HandleNextDocument(events)) {
    }
  } catch (const YAML::Exception& error) {
    const auto line = line_of(error.mark);
    const auto tab = watch.first_tab_line();
    if (tab && *tab <= line + 1) {
      throw SyntaxError{*tab, "invalid YAML: indented by a tab; YAML wants spaces"};
    }
    throw SyntaxError{line, "invalid YAML: " + error.msg};
  }
}

void read_text(std::istream& in, EventSink& sink) {
  std::streambuf& buffer = *in.rdbuf();
  if (buffer.sgetc() == 0xef) {  // UTF-8 byte order mark
    for (int i = 0; i < 3; ++i) {
      buffer.sbumpc();
    }
  }
  // Blank lines before the first character count for the line numbers of YAML: only look.
  const auto c = buffer.sgetc();
  if (c == '{' || c == '[') {
    read_json(in, sink);
  } else {
    read_yaml(in, sink);
  }
}

}  // namespace sluice::codec
