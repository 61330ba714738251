#include <gmock/gmock.h>

#include <sstream>

#include "proto/text_reader.h"

namespace sluice::codec {
namespace {

/// Prints events in one line.
class Trace final : public EventSink {
 public:
  void on_document() override { text += "doc "; }
  void on_event(EventKind kind, std::uint32_t line, bool quoted, std::string_view value) override {
    constexpr std::string_view kMarks = "~ {}[]";
    if (kind == EventKind::kScalar) {
      text += (quoted ? "'" + std::string(value) + "'" : std::string(value)) + "@" +
              std::to_string(line) + " ";
    } else {
      text += std::string(1, kMarks[static_cast<std::size_t>(kind)]) + " ";
    }
  }
  std::string text;
};

std::string events_of(const std::string& json) {
  std::istringstream in(json);
  Trace trace;
  try {
    read_json(in, trace);
  } catch (const SyntaxError& error) {
    return std::to_string(error.line) + ": " + error.message;
  }
  return trace.text;
}

TEST(JsonReader, ReadsValuesOneAfterAnotherWithLines) {
  EXPECT_EQ(events_of("{\"a\": [1, -2.5e3,\n true, null]}\n{}"),
            "doc { 'a'@1 [ 1@1 -2.5e3@1 true@2 ~ ] } doc { } ");
}

TEST(JsonReader, DecodesEscapes) {
  EXPECT_EQ(events_of(R"(["\u00e4\"\\\n\ud83d\ude00"])"), "doc [ 'ä\"\\\n\U0001F600'@1 ] ");
}

TEST(JsonReader, NamesTheLineOfAnError) {
  EXPECT_EQ(events_of("{\n\"a\": 1,\n}"), "3: invalid JSON: ',' before '}'");
  EXPECT_EQ(events_of("{\n\"a\" 1}"), "2: invalid JSON: expected ':', got '1'");
  EXPECT_EQ(events_of("[1"), "1: invalid JSON: expected ',' or ']', got the end of the text");
  EXPECT_EQ(events_of("{a: 1}"), "1: invalid JSON: expected a key in quotes, got 'a'");
  EXPECT_EQ(events_of("[\"a"), "1: invalid JSON: the text ends inside a string");
  EXPECT_EQ(events_of("[nul]"), "1: invalid JSON: expected a value, got nul");
  EXPECT_EQ(events_of(R"(["\ud800x"])"), "1: invalid JSON: half a surrogate pair");
}

TEST(JsonReader, RefusesDeepNesting) {
  EXPECT_THAT(events_of(std::string(100000, '[')), testing::HasSubstr("nested too deeply"));
}

}  // namespace
}  // namespace sluice::codec
