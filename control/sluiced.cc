// sluiced: the node daemon. Wiring only: reads the configuration, makes the parts, joins them, waits
// for a signal, and takes them down in the opposite order.
//
// Exit status: 0 after a signal, 1 for a failure at run time, 2 for a bad configuration. A failure
// to start is one line on stderr and leaves the host as it was.

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <memory>
#include <string>
#include <utility>

#include <CLI/CLI.hpp>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include "conf/config.h"
#include "control/health_side.h"
#include "control/host_side.h"
#include "control/publish/publisher.h"
#include "control/server/listen.h"
#include "control/server/server.h"
#include "control/settings.h"
#include "dataplane/dpdk/worker_group.h"
#include "kni/exception/guard.h"
#include "kni/exception/interface_setup.h"

namespace sluice::daemon {
namespace {

constexpr const char* kVersion = SLUICE_VERSION;
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

void log_line(dpdk::Severity severity, std::string_view line) {
  switch (severity) {
    case dpdk::Severity::kDebug:
      spdlog::debug("{}", line);
      return;
    case dpdk::Severity::kInfo:
      spdlog::info("{}", line);
      return;
    case dpdk::Severity::kWarning:
      spdlog::warn("{}", line);
      return;
    case dpdk::Severity::kError:
      spdlog::error("{}", line);
      return;
  }
}

void warn_line(const std::string& line) {
  spdlog::warn("{}", line);
}

void start_log(conf::LogLevel level) {
  auto logger = spdlog::stderr_logger_mt("sluiced");
  logger->set_pattern("%Y-%m-%dT%H:%M:%S.%e %l %v");
  logger->set_level(log_level(level));
  spdlog::set_default_logger(std::move(logger));
}

/// Signals that end the daemon; blocked in every thread, taken by wait_for_end().
sigset_t end_signals() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGTERM);
  sigaddset(&set, SIGINT);
  return set;
}

/// Holds the place where the server will listen, so that a second daemon is refused before it has
/// touched a port.
core::Result<std::unique_ptr<server::UnixSocket>> claim_listen(const std::string& listen) {
  const auto address = server::parse_listen(listen);
  if (!address) {
    return tl::make_unexpected(address.error());
  }
  if (address->is_unix) {
    return server::UnixSocket::claim(address->path);
  }
  if (const std::string why = server::why_not_bindable(*address); !why.empty()) {
    return tl::make_unexpected(core::Error{"listen " + listen + ": " + why});
  }
  return std::unique_ptr<server::UnixSocket>();
}

core::Result<std::unique_ptr<dpdk::WorkerGroup>> make_group(const conf::Config& config) {
  dpdk::GroupSettings settings = group_settings(config, log_line);
  settings.guard = [](const std::string& interface,
                      bool drop_frames) -> core::Result<std::shared_ptr<void>> {
    auto guard = kni::InterfaceGuard::hold(interface, drop_frames);
    if (!guard) {
      return tl::make_unexpected(guard.error());
    }
    return std::shared_ptr<void>(std::shared_ptr<kni::InterfaceGuard>(std::move(*guard)));
  };
  return dpdk::WorkerGroup::create(std::move(settings));
}

publish::Publisher::Options publisher_options(const conf::Config& config) {
  publish::Publisher::Options options;
  options.node = node_config(config);
  options.id_limits.service_ports = config.tables.services;
  options.id_limits.endpoints = config.tables.backends;
  return options;
}

server::Server::Options server_options(const conf::Config& config) {
  server::Server::Options options;
  options.listen = config.listen;
  options.state_file = config.state_dir.empty() ? "" : config.state_dir + "/snapshot";
  options.version = kVersion;
  options.warn = [](const std::string& line) { spdlog::warn("server: {}", line); };
  return options;
}

/// Waits for a signal. @return the reason when a part of the daemon failed instead.
core::Result<void> wait_for_end(const dpdk::WorkerGroup& group,
                                const publish::Publisher& publisher) {
  const sigset_t signals = end_signals();
  const timespec period{0, 500'000'000};
  while (true) {
    if (const int signal = sigtimedwait(&signals, nullptr, &period); signal > 0) {
      spdlog::info("sluiced: signal {}, ending", signal);
      return {};
    }
    if (!group.healthy()) {
      return tl::make_unexpected(core::Error{"a worker ended by itself"});
    }
    if (const auto health = publisher.health(); !health.ok && health.fatal) {
      return tl::make_unexpected(core::Error{health.reason});
    }
  }
}

/// Stops the publisher before anything goes that its sinks call, whatever way serve() ends.
struct PublisherStop {
  publish::Publisher& publisher;
  ~PublisherStop() { publisher.stop(); }
};

core::Result<void> serve(const conf::Config& config) {
  if (const std::string missing = kni::missing_privilege(); !missing.empty()) {
    return tl::make_unexpected(core::Error{missing});
  }
  auto claim = claim_listen(config.listen);
  if (!claim) {
    return tl::make_unexpected(claim.error());
  }
  auto group = make_group(config);
  if (!group) {
    return tl::make_unexpected(group.error());
  }
  publish::Publisher publisher(publisher_options(config),
                               {{.sink = group->get(), .sync_period = config.sync_period}},
                               group->get());
  auto host = HostSide::start(
      config, **group,
      {[&](compile::HostState state) { publisher.set_host_state(std::move(state)); }, warn_line});
  if (!host) {
    return tl::make_unexpected(host.error());
  }
  const PublisherStop stop_publisher{publisher};
  publisher.start();
  if (auto started = (*group)->start(); !started) {
    return started;
  }
  // After the workers: one that is about to run must not read as one that does not.
  auto health = HealthSide::start(config, publisher, warn_line);
  if (!health) {
    return tl::make_unexpected(health.error());
  }
  claim->reset();
  server::Server server(server_options(config), publisher, group->get());
  if (auto listening = server.start(); !listening) {
    return listening;
  }
  for (const std::string& line : (*group)->description()) {
    spdlog::info("{}", line);
  }
  spdlog::info("sluiced {}: serving on {}", kVersion, server.address());

  const core::Result<void> ended = wait_for_end(**group, publisher);
  server.stop();
  health->reset();
  publisher.stop();
  (*host)->stop();
  const core::Result<void> stopped = (*group)->stop();
  return ended ? stopped : ended;
}

int run(const std::string& file, bool check_only) {
  const auto config = conf::load(file);
  if (!config) {
    std::fprintf(stderr, "sluiced: %s\n", config.error().message.c_str());
    return kExitBadConfiguration;
  }
  if (check_only) {
    std::printf("%s: good\n", file.c_str());
    return EXIT_SUCCESS;
  }
  start_log(config->log_level);
  std::signal(SIGPIPE, SIG_IGN);
  const sigset_t signals = end_signals();
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  if (const auto served = serve(*config); !served) {
    std::fprintf(stderr, "sluiced: %s\n", served.error().message.c_str());
    return kExitFailure;
  }
  return EXIT_SUCCESS;
}

}  // namespace
}  // namespace sluice::daemon

int main(int argc, char** argv) {
  CLI::App app{"Sluice node daemon"};
  std::string file = "/etc/sluice/sluiced.yaml";
  bool check = false;
  app.add_option("--config", file, "configuration file")->capture_default_str();
  app.add_flag("--check", check, "only say whether the configuration is good");
  app.set_version_flag("--version", std::string("sluiced ") + SLUICE_VERSION);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? EXIT_SUCCESS : sluice::daemon::kExitBadConfiguration;
  }
  return sluice::daemon::run(file, check);
}
