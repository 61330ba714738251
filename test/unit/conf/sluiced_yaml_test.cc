// The annotated file in conf/ is the documentation of the defaults: it must load, name every key,
// and say the defaults that the code has.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <set>
#include <sstream>
#include <string>

#include "conf/loader.h"

namespace sluice::conf {
namespace {

using ::testing::ElementsAre;

std::string file_text() {
  std::ifstream in(SLUICED_YAML);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

TEST(SluicedYaml, ShowsTheDefaultsOfTheCode) {
  auto config = load(SLUICED_YAML);

  ASSERT_TRUE(config.has_value()) << config.error().message;
  ASSERT_EQ(config->ports.size(), 1u);
  PortConfig port_defaults;
  port_defaults.name = "net0";
  port_defaults.device = "auto:eth1";
  port_defaults.kind = DeviceKind::kAuto;
  port_defaults.target = "eth1";
  EXPECT_EQ(config->ports[0], port_defaults);
  config->ports.clear();
  EXPECT_EQ(*config, Config{});
}

TEST(SluicedYaml, NamesEveryKeyButTheOnesForTests) {
  std::set<std::string> absent;

  const auto config = parse_noting_absent(file_text(), SLUICED_YAML, absent);

  ASSERT_TRUE(config.has_value()) << config.error().message;
  EXPECT_THAT(absent, ElementsAre("test-owner-map"));
}

}  // namespace
}  // namespace sluice::conf
