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
      tracker_(options_.tracker, options_.clock()) {}

HealthServer::~HealthServer() {
  // The thread first: its tick and its handlers use everything else.
  std::unique_ptr<ServiceHealth> services;
  {
    const std::lock_guard lock(mutex_);
    services = std::move(services_);
  }
  services.reset();
  http_.reset();
}

core::Result<std::unique_ptr<HealthServer>> HealthServer::create(Options options) {
  if (!options.clock) {
    options.clock = real_now;
  }
  std::unique_ptr<HealthServer> out(new HealthServer(std::move(options)));
  HealthServer* const self = out.get();
  const Options& o = out->options_;
  auto http = ListeningServer::create({.address = o.healthz,
                                       .name = "healthz",
                                       .bind_hard_fail = o.bind_hard_fail,
                                       .limits = o.limits,
                                       .clock = [self] { return self->now().steady; },
                                       .warn = o.warn},
                                      [self](const Request& r) { return self->answer(r); });
  if (!http) {
    return tl::unexpected(http.error());
  }
  out->http_ = std::move(*http);
  return out;
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
    services_ = std::make_unique<ServiceHealth>(http_->server(), binds,
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

}  // namespace sluice::http
