// The admin server: rules AD-1, AD-2 (section 15).
#include "control/http/metrics_server.h"

#include <utility>

#include "control/http/health_pages.h"
#include "control/http/metrics_page.h"

namespace sluice::http {
namespace {

constexpr int kOk = 200;

Response text_page(std::string body, const char* type) {
  return {kOk, {{"Content-Type", type}, {"X-Content-Type-Options", "nosniff"}}, std::move(body)};
}

}  // namespace

MetricsServer::MetricsServer(Options options)
    : options_(std::move(options)), listening_(options_.address, "metrics", options_.warn) {}

MetricsServer::~MetricsServer() {
  server_.reset();
}

core::Result<std::unique_ptr<MetricsServer>> MetricsServer::create(Options options) {
  std::unique_ptr<MetricsServer> out(new MetricsServer(std::move(options)));
  MetricsServer* const self = out.get();
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
core::Result<void> MetricsServer::try_listen() {
  return listening_.try_all(
      *server_, [this](const Request& request) { return answer(request); },
      Listening::Clock::now());
}

void MetricsServer::retry_if_due() {
  const std::lock_guard lock(mutex_);
  if (listening_.due(Listening::Clock::now())) {
    static_cast<void>(try_listen());  // what fails is told by warn and tried again
  }
}

Response MetricsServer::answer(const Request& request) const {
  constexpr const char* kPlain = "text/plain; charset=utf-8";
  if (request.path == "/proxyMode") {
    return text_page(options_.mode, kPlain);
  }
  if (request.path == "/healthz") {
    return text_page("ok", kPlain);
  }
  if (request.path != "/metrics") {
    return not_found_page();
  }
  MetricsPage page;
  for (const core::MetricSource* source : options_.sources) {
    source->collect(page);
  }
  return text_page(page.text(), "text/plain; version=0.0.4; charset=utf-8");
}

std::vector<std::uint16_t> MetricsServer::ports() const {
  const std::lock_guard lock(mutex_);
  return listening_.ports();
}

}  // namespace sluice::http
