#include "proto/object_reader.h"

#include <gmock/gmock.h>

#include <sstream>

namespace sluice::codec {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

ReadResult read(const std::string& text, ReadOptions options = {.file = "f.yaml"}) {
  std::istringstream in(text);
  return read_objects(in, options);
}

std::string first_error(const std::string& text) {
  const auto result = read(text);
  return result.errors.empty() ? "" : to_string(result.errors.front());
}

const std::string kService =
    "apiVersion: v1\n"
    "kind: Service\n"
    "metadata:\n"
    "  name: web\n"
    "spec:\n"
    "  ports:\n"
    "  - port: 80\n";

TEST(ObjectReader, ReadsManyDocumentsAndSkipsEmptyOnes) {
  const auto result = read("---\n" + kService + "---\n# nothing\n---\n" +
                           "apiVersion: networking.k8s.io/v1\nkind: ServiceCIDR\n"
                           "metadata: {name: kubernetes}\nspec: {cidrs: [10.96.0.0/12]}\n");
  EXPECT_THAT(result.errors, IsEmpty());
  EXPECT_EQ(result.objects.services_size(), 1);
  EXPECT_THAT(result.objects.service_cidrs(0).spec().cidrs(), ElementsAre("10.96.0.0/12"));
}

TEST(ObjectReader, PutsAnObjectWithoutNamespaceIntoTheDefaultOne) {
  EXPECT_EQ(read(kService).objects.services(0).metadata().namespace_(), "default");
}

TEST(ObjectReader, SkipsAByteOrderMark) {
  EXPECT_EQ(first_error("\xef\xbb\xbf" + kService), "");
}

TEST(ObjectReader, EmptyTextIsAnError) {
  EXPECT_EQ(first_error(""), "f.yaml: no objects found");
  EXPECT_EQ(first_error("# only a comment\n"), "f.yaml: no objects found");
}

TEST(ObjectReader, AnEmptyListIsNoError) {
  EXPECT_EQ(first_error("apiVersion: v1\nitems: []\nkind: List\n"), "f.yaml: no objects found");
}

TEST(ObjectReader, SyntaxErrorNamesFileAndLine) {
  EXPECT_THAT(first_error(kService + "  x: [1\n"),
              testing::MatchesRegex("f.yaml:[0-9]+: invalid.*"));
}

// F95
TEST(ObjectReader, TabIsNamed) {
  EXPECT_EQ(first_error("apiVersion: v1\nmetadata:\n\tname: web\n"),
            "f.yaml:3: invalid YAML: indented by a tab; YAML wants spaces");
}

// F95
TEST(ObjectReader, ScalarWhereAListIsExpected) {
  EXPECT_EQ(first_error(kService + "  externalIPs: 192.0.2.1\n"),
            "f.yaml:8: service web: spec.externalIPs: expected a list, got \"192.0.2.1\"");
}

// F95
TEST(ObjectReader, DuplicateKeyIsAnError) {
  EXPECT_EQ(first_error(kService + "spec: {}\n"),
            "f.yaml:8: service web: spec: the key appears twice");
  EXPECT_THAT(first_error("apiVersion: v1\nkind: Service\nmetadata:\n  name: web\n  labels:\n"
                          "    a: b\n    a: c\n"),
              HasSubstr("f.yaml:7: service web: metadata.labels[a]: the key appears twice"));
}

// F95
TEST(ObjectReader, AliasBombIsRefusedAtItsFirstAlias) {
  EXPECT_THAT(first_error("a: &a [x, x]\nb: &b [*a, *a]\nc: [*b, *b]\n"),
              HasSubstr("f.yaml:2: aliases (*name) are not accepted"));
}

TEST(ObjectReader, WrongTypesAreNamed) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"  type: 5\n", "expected text, got the bare word 5; put it in quotes"},
      {"  clusterIP: [a]\n", "expected text, got a list"},
      {"  healthCheckNodePort: \"1\"\n", "expected a whole number, got \"1\""},
      {"  healthCheckNodePort: 99999999999\n", "expected a whole number"},
      {"  sessionAffinityConfig: x\n", "expected a mapping, got \"x\""},
  };
  for (const auto& [line, message] : cases) {
    EXPECT_THAT(first_error(kService + line), HasSubstr(message)) << line;
  }
}

TEST(ObjectReader, ErrorOfValidationNamesTheLineOfTheField) {
  EXPECT_EQ(first_error(kService + "  externalIPs:\n  - 192.0.2.1\n  - nowhere\n"),
            "f.yaml:10: service default/web: spec.externalIPs[1]: \"nowhere\" is no IP address");
  EXPECT_THAT(
      first_error("apiVersion: v1\nkind: Service\nmetadata:\n  name: web\n  annotations:\n"
                  "    sluice.dev/sheduler: rr\n"),
      HasSubstr("f.yaml:6: service default/web: metadata.annotations[sluice.dev/sheduler]"));
}

TEST(ObjectReader, UnknownFieldIsAWarning) {
  const auto result = read(kService + "  externalTraficPolicy: Local\n");
  EXPECT_THAT(result.errors, IsEmpty());
  ASSERT_EQ(result.warnings.size(), 1u);
  EXPECT_EQ(to_string(result.warnings[0]),
            "f.yaml:8: service web: spec.externalTraficPolicy: unknown field, ignored");
}

TEST(ObjectReader, OtherKindIsAnErrorUnlessSkipped) {
  const std::string pod = "apiVersion: v1\nkind: Pod\nmetadata:\n  name: p\n";
  EXPECT_THAT(first_error("---\n" + pod), HasSubstr("f.yaml:2: v1 Pod p: a service proxy takes"));
  const auto skipped = read(pod + "---\n" + kService, {.file = "f", .skip_other_kinds = true});
  EXPECT_THAT(skipped.errors, IsEmpty());
  EXPECT_EQ(skipped.warnings.size(), 1u);
  EXPECT_EQ(skipped.objects.services_size(), 1);
}

TEST(ObjectReader, OtherApiVersionOfAKnownKindIsAnError) {
  EXPECT_THAT(first_error("apiVersion: serving.knative.dev/v1\nkind: Service\n"),
              HasSubstr("a service proxy takes"));
}

TEST(ObjectReader, TheSameObjectTwiceIsAnError) {
  EXPECT_EQ(first_error(kService + "---\n" + kService),
            "f.yaml:9: service default/web: appears twice in this text, first at line 1");
}

TEST(ObjectReader, MissingSlicePortNameIsEmptyAndNullIsAbsent) {
  const auto result = read(
      "apiVersion: discovery.k8s.io/v1\nkind: EndpointSlice\nmetadata: {name: a}\n"
      "addressType: IPv4\nports:\n- port: 80\n- name: null\n  port: 81\n");
  EXPECT_THAT(result.errors, IsEmpty());
  const auto& ports = result.objects.endpoint_slices(0).ports();
  EXPECT_TRUE(ports[0].has_name());
  EXPECT_FALSE(ports[1].has_name());
}

TEST(ObjectReader, ReadsManyErrorsButNotWithoutEnd) {
  std::string text;
  for (int i = 0; i < 100; ++i) {
    text += "---\napiVersion: v1\nkind: Pod\n";
  }
  const auto result = read(text);
  EXPECT_EQ(result.errors.size(), 21u);
  EXPECT_EQ(result.errors.back().message, "too many errors, stopped reading");
}

TEST(ObjectReader, JsonErrorNamesTheLine) {
  EXPECT_EQ(first_error("{\n\"apiVersion\": \"v1\",\n\"kind\" \"Service\"}"),
            "f.yaml:3: invalid JSON: expected ':', got '\"'");
}

TEST(ObjectReader, NamesOnlyReadsWhatDeleteNeeds) {
  const auto result = read(
      "apiVersion: v1\nkind: Service\nmetadata: {name: a, namespace: b}\n"
      "spec: nonsense\n",
      {.file = "f", .names_only = true});
  EXPECT_THAT(result.errors, IsEmpty());
  ASSERT_EQ(result.refs.size(), 1u);
  EXPECT_EQ(result.refs[0].ShortDebugString(), "kind: \"Service\" namespace: \"b\" name: \"a\"");
}

TEST(ObjectReader, GarbageNeverThrows) {
  for (const std::string text :
       {"\x00\x01", "[", "}", "- - -", ":", "? a", "items: 1", "items: [1]", "{\"items\":[[]]}",
        "!!binary x", "&a", "%YAML 9.9", "a: b: c"}) {
    EXPECT_FALSE(read(text).errors.empty()) << text;
  }
}

}  // namespace
}  // namespace sluice::codec
