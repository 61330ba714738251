#include "conf/yaml_tree.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace sluice::conf {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

std::string error_of(std::string_view text) {
  const auto tree = parse_yaml(text, "f.yaml");
  return tree.has_value() ? "" : tree.error().message;
}

TEST(YamlTree, KeepsLinesOfKeysAndValues) {
  const auto tree = parse_yaml("a: 1\nb:\n  - x\n  - y\n", "f.yaml");

  ASSERT_TRUE(tree.has_value()) << tree.error().message;
  EXPECT_EQ(tree->keys, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(tree->key_lines, (std::vector<std::size_t>{1, 2}));
  ASSERT_EQ(tree->items[1].items.size(), 2u);
  EXPECT_EQ(tree->items[1].items[1].line, 4u);
}

TEST(YamlTree, TellsQuotedScalarsFromPlainOnes) {
  const auto tree = parse_yaml("a: '1'\nb: 1\n", "f.yaml");

  ASSERT_TRUE(tree.has_value());
  EXPECT_TRUE(tree->items[0].quoted);
  EXPECT_FALSE(tree->items[1].quoted);
}

// F95: what a YAML parser would let through or answer in riddles.
TEST(YamlTree, RefusesDuplicateKeysWithTheLineOfTheSecond) {
  EXPECT_EQ(error_of("a: 1\nb: 2\na: 3\n"), "f.yaml:3: duplicate key \"a\"");
}

TEST(YamlTree, RefusesTwoDocuments) {
  EXPECT_EQ(error_of("a: 1\n---\nb: 2\n"), "f.yaml:3: second document; exactly one is expected");
}

TEST(YamlTree, RefusesAnEmptyFileAndOneOfCommentsOnly) {
  EXPECT_THAT(error_of(""), StartsWith("f.yaml:1: empty file"));
  EXPECT_THAT(error_of("# nothing\n\n"), StartsWith("f.yaml:1: empty file"));
  EXPECT_THAT(error_of("---\n"), StartsWith("f.yaml:1: empty file"));
}

TEST(YamlTree, RefusesTabsBeforeTheText) {
  EXPECT_EQ(error_of("a:\n\tb: 1\n"), "f.yaml:2: tab; indent with spaces");
}

TEST(YamlTree, AcceptsTabsBehindTheTextAndWindowsLineEnds) {
  EXPECT_EQ(error_of("a: 1\t# comment\r\nb: 2\r\n"), "");
}

TEST(YamlTree, RefusesByteOrderMarksAndNulBytes) {
  EXPECT_THAT(error_of("\xef\xbb\xbf"
                       "a: 1\n"),
              StartsWith("f.yaml:1: byte order mark"));
  EXPECT_THAT(error_of(std::string_view("\xff\xfe"
                                        "a\0",
                                        4)),
              StartsWith("f.yaml:1: byte order mark"));
  EXPECT_THAT(error_of(std::string_view("a: 1\nb: \0\n", 10)), StartsWith("f.yaml:2: NUL byte"));
}

TEST(YamlTree, RefusesAnAliasBombAtItsFirstAnchor) {
  std::string bomb = "a: &a [x, x]\n";
  for (char c = 'b'; c < 'l'; ++c) {
    const std::string before(1, static_cast<char>(c - 1));
    bomb += std::string(1, c) + ": &" + std::string(1, c) + " [*" + before + ", *" + before + "]\n";
  }

  EXPECT_EQ(error_of(bomb), "f.yaml:1: anchors (&name) are not allowed here");
}

TEST(YamlTree, RefusesAnAliasWithoutAnchor) {
  EXPECT_THAT(error_of("a: *b\n"), StartsWith("f.yaml:1:"));
}

TEST(YamlTree, RefusesTags) {
  EXPECT_THAT(error_of("a: !!binary aGk=\n"), HasSubstr("tags ("));
}

TEST(YamlTree, RefusesDeepNestingAndBigFiles) {
  std::string deep;
  for (std::size_t level = 0; level < 20; ++level) {
    deep += std::string(level, ' ') + "a:\n";
  }

  EXPECT_EQ(error_of(deep), "f.yaml:17: nested too deeply");
  EXPECT_NE(error_of("a: " + std::string(100000, '[')), "");
  EXPECT_THAT(error_of("a: " + std::string(300 * 1024, 'x')), HasSubstr("larger than 256 KiB"));
}

TEST(YamlTree, RefusesATopThatIsNoMap) {
  EXPECT_THAT(error_of("- a\n- b\n"), StartsWith("f.yaml:1: \"key: value\" lines"));
  EXPECT_THAT(error_of("hello\n"), StartsWith("f.yaml:1: \"key: value\" lines"));
}

TEST(YamlTree, RefusesKeysThatAreNoWords) {
  EXPECT_THAT(error_of("? [a, b]\n: 1\n"), HasSubstr("a key must be a plain word"));
  EXPECT_THAT(error_of("~: 1\n"), HasSubstr("a key must be a plain word"));
}

TEST(YamlTree, NamesTheLineOfASyntaxFault) {
  EXPECT_THAT(error_of("a: 1\nb: [1, 2\nc: 3\n"), StartsWith("f.yaml:"));
  EXPECT_THAT(error_of("a: 1\n b: 2\n"), StartsWith("f.yaml:2:"));
}

}  // namespace
}  // namespace sluice::conf
