// sluicectl against a real server in this process, and against sockets where no answer comes.
#include <gmock/gmock.h>
#include <google/protobuf/struct.pb.h>
#include <google/protobuf/util/json_util.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <sstream>
#include <thread>

#include "control/cli/commands.h"
#include "test/support/control_fixture.h"

namespace sluice::cli {
namespace {

using testing::EndsWith;
using testing::HasSubstr;

const char* const kWeb =
    "apiVersion: v1\nkind: Service\nmetadata: {name: web, namespace: shop}\n"
    "spec:\n  clusterIP: 10.96.0.1\n  ports: [{port: 80}]\n"
    "---\n"
    "apiVersion: discovery.k8s.io/v1\nkind: EndpointSlice\n"
    "metadata: {name: web-1, namespace: shop, labels: {kubernetes.io/service-name: web}}\n"
    "addressType: IPv4\nports: [{port: 8080}]\n"
    "endpoints: [{addresses: [10.1.0.1]}, {addresses: [10.1.0.2]}]\n";

class CliTest : public test::ControlFixture {
 protected:
  struct Result {
    int exit = 0;
    std::string out;
    std::string err;
  };
  Result ctl(std::vector<std::string> words, const std::string& input = "") {
    words.insert(words.begin(), {"sluicectl", "--server", "unix:" + socket()});
    std::vector<const char*> argv;
    for (const auto& word : words) {
      argv.push_back(word.c_str());
    }
    std::istringstream in(input);
    std::ostringstream out;
    std::ostringstream err;
    const int exit = run(static_cast<int>(argv.size()), argv.data(), in, out, err);
    return {exit, out.str(), err.str()};
  }
  static bool is_json(const std::string& text) {
    google::protobuf::Value value;
    return google::protobuf::util::JsonStringToMessage(text, &value).ok();
  }
  /// Every subcommand that talks to the daemon.
  std::vector<std::vector<std::string>> all_commands() const {
    return {{"apply", "-f", "-"},
            {"replace", "-f", "-"},
            {"delete", "service", "shop/web"},
            {"get", "services"},
            {"services"},
            {"backends"},
            {"conns"},
            {"explain", "--from", "192.0.2.1", "--to", "10.96.0.1:80"},
            {"counters"},
            {"status"}};
  }
  /// Each says one short line and this code; with -o json one valid document.
  void expect_all_fail(Exit exit, const std::string& message) {
    for (auto command : all_commands()) {
      command.insert(command.begin(), {"--timeout", "0.3"});
      if (command[2] == "apply" || command[2] == "replace" || command[2] == "delete") {
        command.insert(command.end(), {"--wait", "0"});
      }
      const auto plain = ctl(command, kWeb);
      EXPECT_EQ(plain.exit, static_cast<int>(exit)) << command[2] << ": " << plain.err;
      EXPECT_THAT(plain.err, HasSubstr(message)) << command[2];
      EXPECT_EQ(std::count(plain.err.begin(), plain.err.end(), '\n'), 1) << plain.err;
      command.insert(command.end(), {"-o", "json"});
      const auto json = ctl(command, kWeb);
      EXPECT_EQ(json.exit, static_cast<int>(exit)) << command[2];
      EXPECT_TRUE(is_json(json.out)) << json.out;
      EXPECT_THAT(json.out, HasSubstr("\"exitCode\":" + std::to_string(static_cast<int>(exit))));
    }
  }
  int listen_at_socket() const {
    const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, socket().data(), socket().size());
    EXPECT_EQ(bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    EXPECT_EQ(listen(fd, 100), 0);
    return fd;
  }
};

TEST_F(CliTest, ApplyIsTheFirstSnapshotOfAnEmptyNode) {
  start();
  const auto applied = ctl({"apply", "-f", "-"}, kWeb);
  EXPECT_EQ(applied.exit, 0) << applied.err;
  EXPECT_THAT(applied.out, HasSubstr("applied 1 service, 1 endpointslice: version "));
  EXPECT_THAT(applied.out, EndsWith(", in effect\n"));
  EXPECT_EQ(sink_.last()->service_count(), 1u);
}

TEST_F(CliTest, ApplyUpsertsAndReplaceReplaces) {
  start();
  (void)ctl({"apply", "-f", "-"}, kWeb);
  const std::string other =
      "apiVersion: v1\nkind: Service\nmetadata: {name: b}\n"
      "spec: {clusterIP: 10.96.0.2, ports: [{port: 1}]}\n";
  EXPECT_EQ(ctl({"apply", "-f", "-"}, other).exit, 0);
  EXPECT_EQ(publisher_->state()->services.size(), 2u);
  EXPECT_THAT(ctl({"apply", "-f", "-"}, other).out, HasSubstr("unchanged, version"));
  EXPECT_EQ(ctl({"replace", "-f", "-"}, other).exit, 0);
  EXPECT_EQ(publisher_->state()->services.size(), 1u);
  EXPECT_TRUE(publisher_->state()->slices.empty());
}

TEST_F(CliTest, ReadsAFileAndNamesItInErrors) {
  start();
  const auto file = directory_ + "/bad.yaml";
  std::ofstream(file) << "apiVersion: v1\nkind: Service\nmetadata: {name: a}\nspec:\n  ports:\n"
                         "  - port: 0\n";
  const auto refused = ctl({"apply", "-f", file});
  EXPECT_EQ(refused.exit, 1);
  EXPECT_EQ(refused.err, "sluicectl: " + file +
                             ":6: service default/a: spec.ports[0].port: 0 is not in 1 to 65535\n");
  EXPECT_EQ(publisher_->state(), nullptr);
  EXPECT_THAT(ctl({"apply", "-f", directory_ + "/none"}).err, HasSubstr("cannot be opened"));
  EXPECT_TRUE(is_json(ctl({"apply", "-f", file, "-o", "json"}).out));
}

TEST_F(CliTest, DeletesByNameAndByFile) {
  start();
  (void)ctl({"apply", "-f", "-"}, kWeb);
  EXPECT_EQ(ctl({"delete", "service", "shop/web"}).exit, 0);
  EXPECT_TRUE(publisher_->state()->services.empty());
  const auto again = ctl({"delete", "-f", "-"}, kWeb);
  EXPECT_EQ(again.exit, 1);
  EXPECT_THAT(again.err, HasSubstr("Service shop/web did not exist"));
  EXPECT_TRUE(publisher_->state()->slices.empty());
  EXPECT_EQ(ctl({"delete"}).exit, 2);
  EXPECT_EQ(ctl({"delete", "pod", "a"}).exit, 2);
}

TEST_F(CliTest, WhatGetPrintsAsJsonCanBeAppliedAgain) {
  start();
  (void)ctl({"apply", "-f", "-"}, kWeb);
  const auto before = *publisher_->state();
  for (const char* kind : {"services", "endpointslices"}) {
    const auto json = ctl({"get", kind, "-o", "json"});
    ASSERT_TRUE(is_json(json.out)) << json.out;
    const auto again = ctl({"apply", "-f", "-"}, json.out);
    EXPECT_EQ(again.exit, 0) << again.err;
    EXPECT_THAT(again.out, HasSubstr("unchanged"));
  }
  EXPECT_EQ(*publisher_->state(), before);
}

TEST_F(CliTest, PrintsTables) {
  start();
  (void)ctl({"apply", "-f", "-"}, kWeb);
  EXPECT_EQ(ctl({"get", "svc"}).out,
            "NAMESPACE  NAME  TYPE       CLUSTER-IP  EXTERNAL-IP  PORT(S)\n"
            "shop       web   ClusterIP  10.96.0.1   <none>       80/TCP\n");
  EXPECT_EQ(ctl({"services"}).out,
            "SERVICE   TYPE       PROTO  FRONTENDS     SCHED   MODE  READY  ACTIVE  TOTAL\n"
            "shop/web  ClusterIP  tcp    10.96.0.1:80  random  rule  2/2    0       0\n");
  EXPECT_EQ(ctl({"backends", "shop/web"}).out,
            "SERVICE   PROTO  BACKEND        STATE  WEIGHT  LOCAL  ACTIVE  TOTAL\n"
            "shop/web  tcp    10.1.0.1:8080  ready  1       no     0       0\n"
            "shop/web  tcp    10.1.0.2:8080  ready  1       no     0       0\n");
  EXPECT_THAT(ctl({"status"}).out, HasSubstr("snapshot    received, version "));
}

TEST_F(CliTest, EveryCommandGivesValidJson) {
  view_.made_rows = 3;
  view_.counter_rows = {{"rx_packets", "frames", {1, 2}}};
  start();
  (void)ctl({"apply", "-f", "-"}, kWeb);
  for (auto command : all_commands()) {
    command.insert(command.end(), {"-o", "json"});
    const auto result = ctl(command, kWeb);
    EXPECT_EQ(result.exit, 0) << command[0] << result.out;
    EXPECT_TRUE(is_json(result.out)) << command[0] << result.out;
  }
}

TEST_F(CliTest, CountersPerWorker) {
  view_.counter_rows = {{"rx_packets", "frames received", {1, 2}}, {"zero", "nothing", {0, 0}}};
  start();
  EXPECT_EQ(ctl({"counters"}).out,
            "COUNTER     TOTAL  MEANING\nrx_packets  3      frames received\n");
  EXPECT_EQ(ctl({"counters", "--all", "--per-worker"}).out,
            "COUNTER     TOTAL  W0  W1  MEANING\n"
            "rx_packets  3      1   2   frames received\n"
            "zero        0      0   0   nothing\n");
}

TEST_F(CliTest, AChangeThatIsNotInEffectInTimeHasItsOwnExitCode) {
  start();
  sink_.behave([](int) { return "no memory"; });
  const auto late = ctl({"apply", "-f", "-", "--wait", "0.05"}, kWeb);
  EXPECT_EQ(late.exit, 5);
  EXPECT_THAT(late.err, HasSubstr("fake: no memory"));
  EXPECT_EQ(ctl({"apply", "-f", "-", "--wait", "0"}, kWeb).exit, 0);
}

TEST_F(CliTest, WrongCommandLinesSayWhatIsWrong) {
  EXPECT_EQ(ctl({}).exit, 2);
  EXPECT_EQ(ctl({"frobnicate"}).exit, 2);
  EXPECT_EQ(ctl({"get", "pods"}).exit, 2);
  EXPECT_EQ(ctl({"status", "-o", "xml"}).exit, 2);
  const auto json = ctl({"status", "--nonsense", "-o", "json"});
  EXPECT_EQ(json.exit, 2);
  EXPECT_TRUE(is_json(json.out)) << json.out;
}

// F96
TEST_F(CliTest, AnUnknownCommandNamesTheKnownOnes) {
  const auto unknown = ctl({"lsit"});
  EXPECT_EQ(unknown.exit, 2);
  EXPECT_EQ(unknown.err,
            "sluicectl: \"lsit\" is not one of apply, replace, delete, get, services, backends, "
            "conns, counters, explain, status\n");
  EXPECT_EQ(ctl({"lsit", "services", "--all"}).err.rfind("sluicectl: ", 0), 0u);
  EXPECT_THAT(ctl({}).err, HasSubstr("a command is missing: one of apply, "));
  EXPECT_THAT(ctl({"--nosuch"}).err, HasSubstr("--nosuch"));
}

TEST_F(CliTest, TellsItsVersion) {
  const auto version = ctl({"--version"});
  EXPECT_EQ(version.exit, 0);
  EXPECT_EQ(version.out, "sluicectl " SLUICE_VERSION "\n");
}

TEST_F(CliTest, APortOutOfRangeIsNamedByItsFlag) {
  const auto conns = ctl({"conns", "--port", "99999"});
  EXPECT_EQ(conns.exit, 2);
  EXPECT_THAT(conns.err, HasSubstr("--port"));
}

TEST_F(CliTest, ANegativeLimitIsRefused) {
  const auto conns = ctl({"conns", "--limit", "-1"});
  EXPECT_EQ(conns.exit, 2);
  EXPECT_THAT(conns.err, HasSubstr("--limit"));
}

TEST_F(CliTest, SaysWhatAPathIsInsteadOfWhatIsWanted) {
  EXPECT_EQ(ctl({"apply", "-f", directory_}).err, "sluicectl: " + directory_ + ": is a directory\n");
  std::ofstream(socket()) << "text";
  EXPECT_EQ(ctl({"status"}).err, "sluicectl: " + socket() + " is no socket\n");
}

TEST_F(CliTest, ANameThatIsNotThereIsAnError) {
  start();
  (void)ctl({"apply", "-f", "-"}, kWeb);
  for (const auto& command : std::vector<std::vector<std::string>>{
           {"get", "services", "shop/nosuch"},
           {"get", "svc", "nosuch", "-n", "shop"},
           {"services", "shop/nosuch"},
           {"backends", "shop/nosuch"}}) {
    const auto plain = ctl(command);
    EXPECT_EQ(plain.exit, 1) << command[0];
    EXPECT_EQ(plain.err, "sluicectl: no such service \"shop/nosuch\"\n") << command[0];
    EXPECT_EQ(plain.out, "") << command[0];
    auto words = command;
    words.insert(words.end(), {"-o", "json"});
    const auto json = ctl(words);
    EXPECT_EQ(json.exit, 1);
    EXPECT_TRUE(is_json(json.out)) << json.out;
    EXPECT_THAT(json.out, HasSubstr("NOT_FOUND"));
  }
  EXPECT_EQ(ctl({"services", "web"}).exit, 0);
  EXPECT_EQ(ctl({"get", "nodes", "nosuch"}).err, "sluicectl: no such node \"nosuch\"\n");
}

TEST_F(CliTest, AServiceWithoutEndpointsIsNoError) {
  start();
  (void)ctl({"apply", "-f", "-"},
            "apiVersion: v1\nkind: Service\nmetadata: {name: b}\n"
            "spec: {clusterIP: 10.96.0.2, ports: [{port: 1}]}\n");
  const auto backends = ctl({"backends", "b"});
  EXPECT_EQ(backends.exit, 0);
  EXPECT_THAT(backends.err, HasSubstr("service \"b\" has no endpoint"));
}

TEST_F(CliTest, NoSocket) {
  expect_all_fail(Exit::kUnreachable, "does not exist: is sluiced running?");
}

// F96
TEST_F(CliTest, StaleSocket) {
  close(listen_at_socket());
  expect_all_fail(Exit::kUnreachable, "is left over, no daemon listens there");
}

// F96: a stopped daemon (SIGSTOP) looks like this: its socket takes connections, nothing answers.
TEST_F(CliTest, StoppedDaemon) {
  const int fd = listen_at_socket();
  expect_all_fail(Exit::kTimeout, "no answer for 0.3 s");
  close(fd);
}

// F96
TEST_F(CliTest, DaemonThatDiesBeforeItAnswers) {
  const int fd = listen_at_socket();
  std::thread daemon([fd] {
    for (int peer = 0; (peer = accept(fd, nullptr, nullptr)) >= 0;) {
      char byte = 0;
      (void)!read(peer, &byte, 1);
      close(peer);
    }
  });
  const auto result = ctl({"--timeout", "5", "status"});
  EXPECT_EQ(result.exit, static_cast<int>(Exit::kBroken)) << result.err;
  EXPECT_THAT(result.err, HasSubstr("went away before its answer was whole"));
  shutdown(fd, SHUT_RDWR);
  daemon.join();
  close(fd);
}

// F96
TEST_F(CliTest, DaemonThatDiesInMidAnswerLeavesValidJson) {
  view_.made_rows = UINT64_MAX;
  std::thread stopper;
  view_.before_row = [&](std::uint64_t i) {
    if (i == 5000) {
      stopper = std::thread([this] { server_->stop(); });
    }
  };
  start();
  const auto result = ctl({"conns", "-o", "json"});
  EXPECT_EQ(result.exit, static_cast<int>(Exit::kBroken));
  EXPECT_TRUE(is_json(result.out));
  EXPECT_THAT(result.out.substr(result.out.size() - 300), HasSubstr("\"error\":{"));
  stopper.join();
}

// F96: the tool itself, as a user who may not connect. Root may always; so as another user.
TEST_F(CliTest, PermissionDenied) {
  if (geteuid() != 0) {
    GTEST_SKIP() << "needs root to become another user";
  }
  start();
  chmod(directory_.c_str(), 0755);
  int pipe_fds[2];
  ASSERT_EQ(pipe(pipe_fds), 0);
  const std::string server = "unix:" + socket();
  const pid_t child = fork();
  if (child == 0) {
    dup2(pipe_fds[1], STDERR_FILENO);
    const bool dropped = setgid(65534) == 0 && setuid(65534) == 0;
    if (dropped) {
      execl(SLUICECTL, "sluicectl", "--server", server.c_str(), "status", nullptr);
    }
    _exit(99);
  }
  close(pipe_fds[1]);
  std::string text;
  char part[100];
  for (ssize_t n = 0; (n = read(pipe_fds[0], part, sizeof part)) > 0;) {
    text.append(part, static_cast<std::size_t>(n));
  }
  close(pipe_fds[0]);
  int status = 0;
  waitpid(child, &status, 0);
  if (WEXITSTATUS(status) == 99) {
    GTEST_SKIP() << "the tool lies where another user cannot run it";
  }
  EXPECT_EQ(WEXITSTATUS(status), static_cast<int>(Exit::kUnreachable));
  EXPECT_THAT(text, HasSubstr("permission denied"));
}

// F96
TEST_F(CliTest, HugeAnswer) {
  view_.made_rows = 20000;
  start();
  const auto result = ctl({"conns"});
  EXPECT_EQ(result.exit, 0);
  EXPECT_EQ(std::count(result.out.begin(), result.out.end(), '\n'), 20001);
}

}  // namespace
}  // namespace sluice::cli
