// sluiced: the node daemon. Wiring only: reads the configuration, makes the parts, joins them,
// waits for a signal, and takes them down in the opposite order.
//
// Exit status: 0 after a signal, 1 for a failure at run time, 2 for a bad configuration. A failure
// to start is one line on stderr and leaves the host as it was.

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <utility>

#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>
#include <CLI/CLI.hpp>

#include "conf/config.h"
#include "conf/file_watch.h"
#include "control/daemon_parts.h"
#include "control/settings.h"
#include "kni/conntrack/sysctls.h"

namespace sluice::daemon {
namespace {

constexpr int kExitFailure = 1;
constexpr int kExitBadConfiguration = 2;

spdlog::level::level_enum log_level(conf::LogLevel level) {
  switch (level) {
    case conf::LogLevel::kTrace:
      return spdlog::level::trace;
    case conf::LogLevel::kDebug:
      return spdlog::level::debug;
    case conf::LogLevel::kInfo:
      return spdlog::level::info;
    case conf::LogLevel::kWarn:
      return spdlog::level::warn;
    case conf::LogLevel::kError:
      break;
  }
  return spdlog::level::err;
}

void start_log(conf::LogLevel level) {
  auto logger = spdlog::stderr_logger_mt("sluiced");
  logger->set_pattern("%Y-%m-%dT%H:%M:%S.%e %l %v");
  logger->set_level(log_level(level));
  spdlog::set_default_logger(std::move(logger));
}

core::Result<void> serve(const conf::Config& config, TakeOver take_over, const MustEnd& must_end) {
  if (config.mode != conf::Mode::kDpdk) {
    return serve_kernel(config, take_over, must_end);
  }
#ifdef SLUICE_WITH_DPDK
  return serve_dpdk(config, take_over, must_end);
#else
  return tl::make_unexpected(
      core::Error{"this sluiced is built without DPDK; use --mode nftables or iptables"});
#endif
}

int clean_up(std::optional<conf::Mode> mode) {
  if (const auto cleaned = clean_up_kernel(mode); !cleaned) {
    std::fprintf(stderr, "sluiced: %s\n", cleaned.error().message.c_str());
    return kExitFailure;
  }
  return EXIT_SUCCESS;
}

/// The sysctls of a kernel mode, for a daemon that is started after it without the right to.
int prepare(const conf::Config& config) {
  core::Result<void> done = tl::make_unexpected(
      core::Error{"--init-only: a kernel mode is expected; mode dpdk sets no sysctls ahead"});
  if (config.mode != conf::Mode::kDpdk) {
    done = kni::apply_conntrack_sysctls(conntrack_settings(config.conntrack));
  }
  if (!done) {
    std::fprintf(stderr, "sluiced: %s\n", done.error().message.c_str());
    return kExitFailure;
  }
  return EXIT_SUCCESS;
}

/// SY-12: says that the file is not what was read, and that this ends the daemon.
MustEnd end_when_changed(core::Result<conf::FileWatch>& watch) {
  return [&watch] {
    std::string change = watch ? watch->changed() : std::string();
    return change.empty() ? change : change + "; sluiced ends, to be started with it anew";
  };
}

/// The command line.
struct Arguments {
  std::string file = "/etc/sluice/sluiced.yaml";
  std::optional<conf::Mode> mode;
  TakeOver take_over = TakeOver::kNothing;
  bool check_only = false;
  bool init_only = false;
};

int run(const Arguments& arguments) {
  const std::string& file = arguments.file;
  auto watch = conf::FileWatch::start(file);
  const auto config = conf::load(file, arguments.mode);
  if (!config) {
    std::fprintf(stderr, "sluiced: %s\n", config.error().message.c_str());
    return kExitBadConfiguration;
  }
  if (arguments.check_only) {
    std::printf("%s: good\n", file.c_str());
    return EXIT_SUCCESS;
  }
  if (arguments.init_only) {
    return prepare(*config);
  }
  start_log(config->log_level);
  if (!watch) {
    warn_line(watch.error().message + "; a change of it is not noticed");
  }
  std::signal(SIGPIPE, SIG_IGN);
  const sigset_t signals = end_signals();
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  if (const auto served = serve(*config, arguments.take_over, end_when_changed(watch)); !served) {
    std::fprintf(stderr, "sluiced: %s\n", served.error().message.c_str());
    return end_is_pending() ? EXIT_SUCCESS : kExitFailure;  // told to end while it started
  }
  return EXIT_SUCCESS;
}

}  // namespace
}  // namespace sluice::daemon

int main(int argc, char** argv) {
  CLI::App app{"Sluice node daemon"};
  sluice::daemon::Arguments arguments;
  bool cleanup = false;
  std::string mode;
  std::string take_over;
  app.add_option("--config", arguments.file, "configuration file")->capture_default_str();
  app.add_flag("--check", arguments.check_only, "only say whether the configuration is good");
  app.add_flag("--init-only", arguments.init_only,
               "only set the sysctls of a kernel mode, for a start without the right to");
  app.add_option("--mode", mode, "dpdk, nftables or iptables; wins over the file");
  app.add_option("--take-over", take_over,
                 "kube-proxy: its rules are removed when ours are in force; it must have ended")
      ->check(CLI::IsMember({"kube-proxy"}));
  app.add_flag("--cleanup", cleanup,
               "remove what the kernel modes, or the one of --mode, have made, and end");
  app.set_version_flag("--version", std::string("sluiced ") + sluice::daemon::kVersion);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? EXIT_SUCCESS : sluice::daemon::kExitBadConfiguration;
  }
  if (!mode.empty()) {
    const auto parsed = sluice::conf::parse_mode(mode);
    if (!parsed) {
      std::fprintf(stderr, "sluiced: --mode: %s\n", parsed.error().message.c_str());
      return sluice::daemon::kExitBadConfiguration;
    }
    arguments.mode = *parsed;
  }
  if (cleanup) {
    return sluice::daemon::clean_up(arguments.mode);
  }
  if (!take_over.empty()) {
    arguments.take_over = sluice::daemon::TakeOver::kKubeProxy;
  }
  return sluice::daemon::run(arguments);
}
