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
#include "control/daemon_parts.h"

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

core::Result<void> serve(const conf::Config& config, TakeOver take_over) {
  if (config.mode != conf::Mode::kDpdk) {
    return serve_kernel(config, take_over);
  }
#ifdef SLUICE_WITH_DPDK
  return serve_dpdk(config, take_over);
#else
  return tl::make_unexpected(
      core::Error{"this sluiced is built without DPDK; use --mode nftables or iptables"});
#endif
}

int clean_up(conf::Mode mode) {
  if (const auto cleaned = clean_up_kernel(mode); !cleaned) {
    std::fprintf(stderr, "sluiced: %s\n", cleaned.error().message.c_str());
    return kExitFailure;
  }
  return EXIT_SUCCESS;
}

/// The command line.
struct Arguments {
  std::string file = "/etc/sluice/sluiced.yaml";
  std::optional<conf::Mode> mode;
  TakeOver take_over = TakeOver::kNothing;
  bool check_only = false;
};

int run(const Arguments& arguments) {
  const std::string& file = arguments.file;
  const auto config = conf::load(file, arguments.mode);
  if (!config) {
    std::fprintf(stderr, "sluiced: %s\n", config.error().message.c_str());
    return kExitBadConfiguration;
  }
  if (arguments.check_only) {
    std::printf("%s: good\n", file.c_str());
    return EXIT_SUCCESS;
  }
  start_log(config->log_level);
  std::signal(SIGPIPE, SIG_IGN);
  const sigset_t signals = end_signals();
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  if (const auto served = serve(*config, arguments.take_over); !served) {
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
  app.add_option("--mode", mode, "dpdk, nftables or iptables; wins over the file");
  app.add_option("--take-over", take_over,
                 "kube-proxy: its rules are removed when ours are in force; it must have ended")
      ->check(CLI::IsMember({"kube-proxy"}));
  app.add_flag("--cleanup", cleanup,
               "remove what --mode nftables (default) or --mode iptables has made, and end");
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
    return sluice::daemon::clean_up(arguments.mode.value_or(sluice::conf::Mode::kNftables));
  }
  if (!take_over.empty()) {
    arguments.take_over = sluice::daemon::TakeOver::kKubeProxy;
  }
  return sluice::daemon::run(arguments);
}
