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

core::Result<std::unique_ptr<MetricsServer>> MetricsServer::create(Options options) {
  std::unique_ptr<MetricsServer> out(new MetricsServer(std::move(options)));
  const Options& o = out->options_;
  auto http = ListeningServer::create({.address = o.address,
                                       .name = "metrics",
                                       .bind_hard_fail = o.bind_hard_fail,
                                       .limits = o.limits,
                                       .warn = o.warn},
                                      [self = out.get()](const Request& r) { return self->answer(r); });
  if (!http) {
    return tl::unexpected(http.error());
  }
  out->http_ = std::move(*http);
  return out;
}

Response MetricsServer::answer(const Request& request) const {
  constexpr const char* kPlain = "text/plain; charset=utf-8";
  if (request.path == "/proxyMode") {
    return text_page(options_.mode, kPlain);
  }
  if (request.path == "/healthz") {
    return text_page("ok", kPlain);
  }
  if (request.path == "/configz") {
    return text_page(options_.configz, "application/json");
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

}  // namespace sluice::http
