#include "control/daemon_parts.h"

#include <atomic>
#include <ctime>
#include <utility>

#include <spdlog/spdlog.h>

#include "control/settings.h"

namespace sluice::daemon {

namespace {

/// Of the process, as the signals are.
std::atomic<bool> end_taken{false};

}  // namespace

const char* const kVersion = SLUICE_VERSION;

void warn_line(const std::string& line) {
  spdlog::warn("{}", line);
}

sigset_t end_signals() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGTERM);
  sigaddset(&set, SIGINT);
  return set;
}

bool end_is_pending() {
  sigset_t pending;
  return sigpending(&pending) == 0 &&
         (sigismember(&pending, SIGTERM) == 1 || sigismember(&pending, SIGINT) == 1);
}

bool told_to_end() {
  return end_taken || end_is_pending();
}

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

publish::Publisher::Options publisher_options(const conf::Config& config) {
  publish::Publisher::Options options;
  options.node = node_config(config);
  if (config.mode == conf::Mode::kIptables) {
    options.profile = compile::Profile::kIptables;
  }
  options.id_limits.service_ports = config.tables.services;
  options.id_limits.endpoints = config.tables.backends;
  return options;
}

publish::SinkSlot kernel_slot(const conf::Config& config, core::TableSink& sink) {
  return {.sink = &sink,
          .min_sync_period = config.min_sync(),
          .sync_period = config.sync_period,
          .resync_period = config.sync_period};
}

server::Server::Options server_options(const conf::Config& config) {
  server::Server::Options options;
  options.listen = config.listen;
  options.state_file = config.state_dir.empty() ? "" : config.state_dir + "/snapshot";
  options.version = kVersion;
  options.warn = [](const std::string& line) { spdlog::warn("server: {}", line); };
  return options;
}

core::Result<void> wait_for_end(const publish::Publisher& publisher,
                                const MustEnd& failed) {
  const sigset_t signals = end_signals();
  const timespec period{0, 500'000'000};
  while (true) {
    if (const int signal = sigtimedwait(&signals, nullptr, &period); signal > 0) {
      end_taken = true;
      spdlog::info("sluiced: signal {}, ending", signal);
      return {};
    }
    std::string reason = failed();
    if (const auto health = publisher.health(); reason.empty() && !health.ok && health.fatal) {
      reason = health.reason;
    }
    if (!reason.empty()) {
      end_taken = true;  // a restore that runs does not hold up the end
      return tl::make_unexpected(core::Error{std::move(reason)});
    }
  }
}

}  // namespace sluice::daemon
