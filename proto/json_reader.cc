#include <array>
#include <cctype>

#include "proto/text_reader.h"

namespace sluice::codec {
namespace {

constexpr int kMaxDepth = 100;

class JsonReader {
 public:
  JsonReader(std::istream& in, EventSink& sink) : in_(*in.rdbuf()), sink_(sink) {}

  void read_all() {
    for (skip_blanks(); peek() != kEnd; skip_blanks()) {
      sink_.on_document();
      value(0);
    }
  }

 private:
  static constexpr int kEnd = std::char_traits<char>::eof();

  int peek() { return in_.sgetc(); }
  int take() {
    const int c = in_.sbumpc();
    line_ += c == '\n' ? 1 : 0;
    return c;
  }
  [[noreturn]] void fail(const std::string& message) const { throw SyntaxError{line_, message}; }

  void skip_blanks() {
    while (peek() == ' ' || peek() == '\n' || peek() == '\t' || peek() == '\r') {
      take();
    }
  }
  void expect(char wanted, const char* what) {
    skip_blanks();
    if (peek() != wanted) {
      fail(std::string("invalid JSON: expected ") + what + ", got " + found());
    }
    take();
  }
  std::string found() {
    const int c = peek();
    return c == kEnd ? "the end of the text" : "'" + std::string(1, static_cast<char>(c)) + "'";
  }

  void value(int depth) {
    if (depth > kMaxDepth) {
      fail("invalid JSON: nested too deeply");
    }
    skip_blanks();
    const int c = peek();
    if (c == '{') {
      object(depth);
    } else if (c == '[') {
      array(depth);
    } else if (c == '"') {
      const auto line = line_;
      string();
      sink_.on_event(EventKind::kScalar, line, true, text_);
    } else {
      bare();
    }
  }

  void object(int depth) {
    sink_.on_event(EventKind::kMapStart, line_, false, {});
    take();
    skip_blanks();
    while (peek() != '}') {
      skip_blanks();
      if (peek() != '"') {
        fail("invalid JSON: expected a key in quotes, got " + found());
      }
      const auto line = line_;
      string();
      sink_.on_event(EventKind::kScalar, line, true, text_);
      expect(':', "':'");
      value(depth + 1);
      skip_blanks();
      if (peek() == '}') {
        break;
      }
      expect(',', "',' or '}'");
      skip_blanks();
      if (peek() == '}') {
        fail("invalid JSON: ',' before '}'");
      }
    }
    sink_.on_event(EventKind::kMapEnd, line_, false, {});
    take();
  }

  void array(int depth) {
    sink_.on_event(EventKind::kSeqStart, line_, false, {});
    take();
    skip_blanks();
    while (peek() != ']') {
      value(depth + 1);
      skip_blanks();
      if (peek() == ']') {
        break;
      }
      expect(',', "',' or ']'");
      skip_blanks();
      if (peek() == ']') {
        fail("invalid JSON: ',' before ']'");
      }
    }
    sink_.on_event(EventKind::kSeqEnd, line_, false, {});
    take();
  }

  /// A number, true, false or null.
  void bare() {
    text_.clear();
    while (std::isalnum(peek()) != 0 || peek() == '-' || peek() == '+' || peek() == '.') {
      text_.push_back(static_cast<char>(take()));
    }
    if (text_ == "null") {
      sink_.on_event(EventKind::kNull, line_, false, {});
      return;
    }
    const bool number = !text_.empty() && (text_[0] == '-' || std::isdigit(text_[0]) != 0);
    if (!number && text_ != "true" && text_ != "false") {
      fail("invalid JSON: expected a value, got " + (text_.empty() ? found() : text_));
    }
    sink_.on_event(EventKind::kScalar, line_, false, text_);
  }

  void string() {
    text_.clear();
    take();
    while (peek() != '"') {
      const int c = take();
      if (c == kEnd) {
        fail("invalid JSON: the text ends inside a string");
      }
      if (c >= 0 && c < 0x20) {
        fail("invalid JSON: control character inside a string");
      }
      if (c == '\\') {
        escape();
      } else {
        text_.push_back(static_cast<char>(c));
      }
    }
    take();
  }

  void escape() {
    const int c = take();
    constexpr std::string_view kFrom = "\"\\/bfnrt";
    constexpr std::string_view kTo = "\"\\/\b\f\n\r\t";
    if (c == 'u') {
      unicode();
      return;
    }
    const auto i = c == kEnd ? kFrom.npos : kFrom.find(static_cast<char>(c));
    if (i == kFrom.npos) {
      fail("invalid JSON: unknown escape in a string");
    }
    text_.push_back(kTo[i]);
  }

  std::uint32_t hex4() {
    std::uint32_t code = 0;
    for (int i = 0; i < 4; ++i) {
      const int c = take();
      if (c == kEnd || std::isxdigit(c) == 0) {
        fail("invalid JSON: \\u needs four hexadecimal digits");
      }
      const int digit = std::isdigit(c) != 0 ? c - '0' : (std::tolower(c) - 'a') + 10;
      code = code * 16 + static_cast<std::uint32_t>(digit);
    }
    return code;
  }

  void unicode() {
    std::uint32_t code = hex4();
    if (code >= 0xd800 && code < 0xdc00) {
      if (take() != '\\' || take() != 'u') {
        fail("invalid JSON: half a surrogate pair");
      }
      const auto low = hex4();
      if (low < 0xdc00 || low > 0xdfff) {
        fail("invalid JSON: half a surrogate pair");
      }
      code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
    } else if (code >= 0xdc00 && code <= 0xdfff) {
      fail("invalid JSON: half a surrogate pair");
    }
    append_utf8(code);
  }

  void append_utf8(std::uint32_t code) {
    const auto tail = [&](unsigned shift) {
      text_.push_back(static_cast<char>(0x80 | ((code >> shift) & 0x3f)));
    };
    if (code < 0x80) {
      text_.push_back(static_cast<char>(code));
    } else if (code < 0x800) {
      text_.push_back(static_cast<char>(0xc0 | (code >> 6)));
      tail(0);
    } else if (code < 0x10000) {
      text_.push_back(static_cast<char>(0xe0 | (code >> 12)));
      tail(6);
      tail(0);
    } else {
      text_.push_back(static_cast<char>(0xf0 | (code >> 18)));
      tail(12);
      tail(6);
      tail(0);
    }
  }

  std::streambuf& in_;
  EventSink& sink_;
  std::string text_;
  std::uint32_t line_ = 1;
};

}  // namespace

void read_json(std::istream& in, EventSink& sink) {
  JsonReader(in, sink).read_all();
}

}  // namespace sluice::codec
