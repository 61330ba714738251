// sluicectl explain against a real server in this process.
#include <gmock/gmock.h>
#include <google/protobuf/struct.pb.h>
#include <google/protobuf/util/json_util.h>

#include <sstream>

#include "control/cli/commands.h"
#include "test/support/control_fixture.h"

namespace sluice::cli {
namespace {

using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;

class ExplainCommandTest : public test::ControlFixture {
 protected:
  struct Result {
    int exit = 0;
    std::string out;
    std::string err;
  };
  Result explain(std::vector<std::string> words) {
    words.insert(words.begin(), {"sluicectl", "--server", "unix:" + socket(), "explain"});
    std::vector<const char*> argv;
    for (const auto& word : words) {
      argv.push_back(word.c_str());
    }
    std::istringstream in;
    std::ostringstream out;
    std::ostringstream err;
    const int exit = run(static_cast<int>(argv.size()), argv.data(), in, out, err);
    return {exit, out.str(), err.str()};
  }
  void start_with_web() {
    start();
    const auto accepted = publisher_->replace(
        test::make_state({test::make_service("web", "10.96.0.1")},
                         {test::make_slice("web", "1", {"10.1.0.1", "10.1.0.2"})}));
    ASSERT_TRUE(accepted.has_value());
  }
  void expect_refused(const std::vector<std::string>& words, const std::string& message) {
    const auto plain = explain(words);
    EXPECT_EQ(plain.exit, 1) << plain.out;
    EXPECT_EQ(plain.err, "sluicectl: " + message + "\n");
  }
};

TEST_F(ExplainCommandTest, PrintsALineForEachStepAndTheVerdictLast) {
  start_with_web();
  const auto result = explain({"--from", "192.0.2.1:1234", "--to", "10.96.0.1:80"});
  EXPECT_EQ(result.exit, 0) << result.err;
  EXPECT_THAT(result.out, StartsWith("[flow] tcp 192.0.2.1:1234 to 10.96.0.1:80, arriving by"));
  EXPECT_THAT(result.out, HasSubstr("\n[P-3] 10.96.0.1:80/tcp is a cluster IP of default/web"));
  EXPECT_THAT(result.out, HasSubstr("\n[C-2] 10.1.0.2:8080 in: ready\n"));
  EXPECT_THAT(result.out, HasSubstr("\n[owner] worker 0 by 192.0.2.1:1234\n"));
  EXPECT_THAT(result.out, EndsWith("\nverdict: forward to one of 2 endpoints of default/web, mode "
                                   "nat, source kept\n"));
  std::istringstream lines(result.out);
  for (std::string line; std::getline(lines, line);) {
    EXPECT_TRUE(line.front() == '[' || line.starts_with("verdict: ")) << line;
  }
}

TEST_F(ExplainCommandTest, JsonIsTheWholeAnswer) {
  start_with_web();
  const auto result =
      explain({"--from", "192.0.2.1", "--to", "10.96.0.1:80", "--proto", "udp", "-o", "json"});
  EXPECT_EQ(result.exit, 0) << result.err;
  google::protobuf::Value value;
  ASSERT_TRUE(google::protobuf::util::JsonStringToMessage(result.out, &value).ok());
  EXPECT_EQ(value.struct_value().fields().at("verdict").string_value(), "reject");
}

TEST_F(ExplainCommandTest, StrangeInputIsOneClearLine) {
  start_with_web();
  expect_refused({"--from", "nowhere", "--to", "10.96.0.1:80"},
                 "from: \"nowhere\" is no IP address");
  expect_refused({"--from", "192.0.2.1:99999", "--to", "10.96.0.1:80"},
                 "--from: \"99999\" is not a port in 1 to 65535");
  expect_refused({"--from", "192.0.2.1", "--to", "10.96.0.1"},
                 "--to: \"10.96.0.1\" has no port: give ADDRESS:PORT, or [ADDRESS]:PORT for IPv6");
  expect_refused({"--from", "192.0.2.1", "--to", "fd00::1"},
                 "--to: \"fd00::1\" has no port: give ADDRESS:PORT, or [ADDRESS]:PORT for IPv6");
  expect_refused({"--from", "192.0.2.1", "--to", "10.96.0.1:http"},
                 "--to: \"http\" is not a port in 1 to 65535");
  expect_refused({"--from", "192.0.2.1", "--to", "[fd00::1]x:80"},
                 "--to: \"[fd00::1]x:80\" is not ADDRESS:PORT");
  expect_refused({"--from", "192.0.2.1", "--to", "[fd00::1]:80"},
                 "from and to are of different families: 192.0.2.1 and fd00::1");
  expect_refused({"--from", "192.0.2.1", "--to", "10.96.0.1:80", "--proto", "icmp"},
                 "protocol: \"icmp\" is not one of tcp, udp, sctp");
  expect_refused({"--from", "192.0.2.1", "--to", "10.96.0.1:80", "--iface", "no such name at all"},
                 "interface: \"no such name at all\" is no interface name");
  expect_refused({"--from", "192.0.2.1\n", "--to", "10.96.0.1:80"},
                 "--from holds a character that is not printable ASCII");
  EXPECT_EQ(explain({"--from", "192.0.2.1"}).exit, 2);
  EXPECT_EQ(
      explain({"--from", "192.0.2.1", "--to", "10.96.0.1:80", "--iface", "a", "--from-host"}).exit,
      2);
}

TEST_F(ExplainCommandTest, ANodeWithoutASnapshotSaysSo) {
  start();
  expect_refused({"--from", "192.0.2.1", "--to", "10.96.0.1:80"},
                 "no snapshot yet: nothing is decided");
}

}  // namespace
}  // namespace sluice::cli
