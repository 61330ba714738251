// The proxy's health server: rules H-7, H-10..H-14 (section 14.2).
#include "control/http/health_server.h"

#include <algorithm>
#include <utility>

#include "control/http/health_pages.h"

namespace sluice::http {
namespace {

constexpr int kOk = 200;

Moment real_now() {
  return {std::chrono::steady_clock::now(), std::chrono::system_clock::now()};
}

}  // namespace

HealthServer::HealthServer(Options options)
    : options_(std::move(options)),
      tracker_(options_.tracker, options_.clock()),
      listening_(options_.healthz, "healthz", options_.warn) {}

HealthServer::~HealthServer() {
  // The thread first: its tick and its handlers use everything else.
  std::unique_ptr<ServiceHealth> services;
  {
    const std::lock_guard lock(mutex_);
    services = std::move(services_);
  }
  services.reset();
  server_.reset();
}

core::Result<std::unique_ptr<HealthServer>> HealthServer::create(Options options) {
  if (!options.clock) {
    options.clock = real_now;
  }
  std::unique_ptr<HealthServer> out(new HealthServer(std::move(options)));
  HealthServer* const self = out.get();
  {
    const std::lock_guard lock(out->mutex_);  // the first tick waits until all is set up
    auto server = HttpServer::create(out->options_.limits, [self] { self->retry_if_due(); });
    if (!server) {
      return tl::unexpected(server.error());
    }
    out->server_ = std::move(*server);
    const auto listening = out->try_listen();
    if (!listening && out->options_.bind_hard_fail) {
      return tl::unexpected(listening.error());  // lets go of the lock, then ends the thread
    }
  }
  return out;
}

/// Call with the lock held.
core::Result<void> HealthServer::try_listen() {
  return listening_.try_all(
      *server_, [this](const Request& request) { return answer(request); }, now().steady);
}

void HealthServer::retry_if_due() {
  const std::lock_guard lock(mutex_);
  if (listening_.due(now().steady)) {
    static_cast<void>(try_listen());  // what fails is told by warn and tried again
  }
}

Response HealthServer::answer(const Request& request) {
  const bool healthz = request.path == "/healthz";
  if (!healthz && request.path != "/livez") {
    return not_found_page();
  }
  const HealthStatus status = tracker_.status(now());
  Response page = healthz ? healthz_page(status) : livez_page(status);
  const std::size_t index = (healthz ? 0u : 2u) + (page.status == kOk ? 0u : 1u);
  counts_[index].fetch_add(1, std::memory_order_relaxed);
  return page;
}

std::vector<BindFailure> HealthServer::succeeded(DataSource source, std::uint64_t version,
                                                 const NodePortBinds& binds,
                                                 const std::vector<compile::HealthPort>& ports) {
  tracker_.succeeded(source, version, now());
  const std::lock_guard lock(mutex_);
  if (services_ == nullptr) {
    services_ = std::make_unique<ServiceHealth>(*server_, binds,
                                                [this] { return tracker_.healthy(now()); });
  }
  std::vector<BindFailure> failures = services_->reconcile(ports);
  for (const BindFailure& f : failures) {
    const bool told = std::find(told_.begin(), told_.end(), f) != told_.end();
    if (options_.warn && !told) {
      options_.warn("FailedToStartServiceHealthcheck: service " + f.service.text() + ": " +
                    f.reason);
    }
  }
  told_ = failures;
  return failures;
}

AnswerCounts HealthServer::counts() const {
  const auto read = [this](std::size_t i) { return counts_[i].load(std::memory_order_relaxed); };
  return {read(0), read(1), read(2), read(3)};
}

std::vector<std::uint16_t> HealthServer::healthz_ports() const {
  const std::lock_guard lock(mutex_);
  return listening_.ports();
}

}  // namespace sluice::http
