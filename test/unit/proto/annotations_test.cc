#include "proto/annotations.h"

#include <gmock/gmock.h>

namespace sluice::codec {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;

std::vector<FieldError> errors_of(model::Service& service) {
  std::vector<FieldError> errors;
  read_annotations(service, "service a/b", errors);
  check_options(service, "service a/b", errors);
  return errors;
}

TEST(Annotations, FillTypedFields) {
  model::Service service;
  service.annotations = {{"sluice.dev/scheduler", "mh"},
                         {"sluice.dev/forwarding-mode", "dr"},
                         {"sluice.dev/weights", "10.0.0.1=3, [fd00::1]:80=0,fd00::2=7"},
                         {"sluice.dev/maglev-table-size", "4093"},
                         {"sluice.dev/scheduler-flags", "mh-port, mh-fallback"},
                         {"example.com/scheduler", "anything"}};
  EXPECT_THAT(errors_of(service), IsEmpty());
  EXPECT_EQ(service.scheduler, "mh");
  EXPECT_EQ(service.forwarding_mode, "dr");
  EXPECT_EQ(service.maglev_table_size, 4093);
  EXPECT_THAT(service.scheduler_flags, testing::ElementsAre("mh-port", "mh-fallback"));
  EXPECT_THAT(service.weights,
              ElementsAre(Pair("10.0.0.1", 3), Pair("[fd00::1]:80", 0), Pair("fd00::2", 7)));
}

TEST(Annotations, MisspeltOneIsAnErrorThatNamesTheKnownOnes) {
  model::Service service;
  service.annotations = {{"sluice.dev/sheduler", "rr"}};
  const auto errors = errors_of(service);
  ASSERT_EQ(errors.size(), 1u);
  EXPECT_EQ(to_string(errors[0]),
            "service a/b: metadata.annotations[sluice.dev/sheduler]: unknown annotation; known "
            "are scheduler, scheduler-flags, forwarding-mode, weights, maglev-table-size");
}

TEST(Annotations, BadValuesAreErrors) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"scheduler", "fastest"},
      {"scheduler-flags", "mh-port"},
      {"scheduler-flags", "fast"},
      {"scheduler-flags", ""},
      {"forwarding-mode", "NAT"},
      {"weights", "10.0.0.1"},
      {"weights", "10.0.0.1=x"},
      {"weights", "10.0.0.1=-1"},
      {"weights", "10.0.0.1=65536"},
      {"weights", "host=1"},
      {"weights", "10.0.0.1:0=1"},
      {"weights", "10.0.0.1=1,10.0.0.1=2"},
      {"maglev-table-size", "1000"},
      {"maglev-table-size", "big"}};
  for (const auto& [name, value] : cases) {
    model::Service service;
    service.annotations = {{"sluice.dev/" + name, value}};
    const auto errors = errors_of(service);
    ASSERT_FALSE(errors.empty()) << name << "=" << value;
    EXPECT_THAT(errors[0].field, HasSubstr("sluice.dev/" + name));
  }
}

TEST(Annotations, ContradictionOfTheTypedFieldIsAnError) {
  model::Service service;
  service.scheduler = "lc";
  service.annotations = {{"sluice.dev/scheduler", "rr"}};
  EXPECT_EQ(errors_of(service).size(), 1u);
}

TEST(Annotations, OnOtherKindsAreRefused) {
  std::vector<FieldError> errors;
  refuse_annotations({{"sluice.dev/scheduler", "rr"}}, "node n", errors);
  EXPECT_EQ(errors.size(), 1u);
}

}  // namespace
}  // namespace sluice::codec
