// What health endpoints answer: rules H-3..H-5, H-7, H-10..H-12 (section 14).
#include "control/http/health_pages.h"

#include <array>
#include <cstdio>
#include <ctime>

namespace sluice::http {
namespace {

constexpr int kOk = 200;
constexpr int kNotFound = 404;
constexpr int kUnavailable = 503;

const char* text_of(bool value) {
  return value ? "true" : "false";
}

/// RFC 3339 in UTC with nanoseconds.
std::string text_of(std::chrono::system_clock::time_point at) {
  using std::chrono::nanoseconds;
  const std::int64_t nanos = std::chrono::duration_cast<nanoseconds>(at.time_since_epoch()).count();
  constexpr std::int64_t kSecond = 1'000'000'000;
  const std::int64_t part = ((nanos % kSecond) + kSecond) % kSecond;
  const std::time_t seconds = (nanos - part) / kSecond;
  std::tm utc{};
  ::gmtime_r(&seconds, &utc);
  std::array<char, 32> day{};
  std::strftime(day.data(), day.size(), "%Y-%m-%dT%H:%M:%S", &utc);
  std::array<char, 16> fraction{};
  std::snprintf(fraction.data(), fraction.size(), ".%09dZ", static_cast<int>(part));
  return std::string(day.data()) + fraction.data();
}

const char* text_of(DataSource source) {
  switch (source) {
    case DataSource::kNone:
      return "no snapshot";
    case DataSource::kRestored:
      return "restored from disk";
    case DataSource::kControlPlane:
      return "control plane";
  }
  return "";
}

Response json_page(bool ok, std::string body) {
  return {ok ? kOk : kUnavailable,
          {{"Content-Type", "application/json"}, {"X-Content-Type-Options", "nosniff"}},
          std::move(body)};
}

std::string body_of(const HealthStatus& s, bool ok, bool with_node) {
  std::string out = "{\"lastUpdated\": " + quoted(text_of(ok ? s.now : s.last_updated)) +
                    ",\"currentTime\": " + quoted(text_of(s.now));
  if (with_node) {
    out += std::string(", \"nodeEligible\": ") + text_of(s.node_eligible);
  }
  out += std::string(", \"healthy\": ") + text_of(s.healthy) + ", \"status\": {";
  const char* separator = "";
  for (const auto& [family, state] : s.families) {
    out += std::string(separator) + (family == core::Family::kIpv4 ? "\"IPv4\"" : "\"IPv6\"") +
           ": {\"lastUpdated\": " + quoted(text_of(state.last_updated)) +
           ", \"healthy\": " + text_of(state.healthy) + "}";
    separator = ", ";
  }
  // Ours: how old what is in force is, so that a feed that went silent can be seen (F87).
  out += "}, \"data\": " + quoted(text_of(s.source)) +
         ", \"appliedVersion\": " + std::to_string(s.applied_version) +
         ", \"appliedAgeSeconds\": " + std::to_string(s.applied_age.count());
  if (!s.reason.empty()) {
    out += ", \"reason\": " + quoted(s.reason);
  }
  return out + "}";
}

}  // namespace

std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      std::array<char, 8> escape{};
      std::snprintf(escape.data(), escape.size(), "\\u%04x", static_cast<unsigned>(c));
      out += escape.data();
    } else {
      out += c;
    }
  }
  return out + '"';
}

Response healthz_page(const HealthStatus& status) {
  const bool ok = status.healthy && status.node_eligible;
  return json_page(ok, body_of(status, ok, true));
}

Response livez_page(const HealthStatus& status) {
  return json_page(status.healthy, body_of(status, status.healthy, false));
}

Response service_page(const model::ObjectName& service, std::uint32_t local_endpoints,
                      bool proxy_healthy) {
  const std::string count = std::to_string(local_endpoints);
  Response page = json_page(local_endpoints != 0 && proxy_healthy,
                            "{\n\t\"service\": {\n\t\t\"namespace\": " + quoted(service.ns) +
                                ",\n\t\t\"name\": " + quoted(service.name) +
                                "\n\t},\n\t\"localEndpoints\": " + count +
                                ",\n\t\"serviceProxyHealthy\": " + text_of(proxy_healthy) + "\n}");
  page.headers.emplace_back("X-Load-Balancing-Endpoint-Weight", count);
  return page;
}

Response not_found_page() {
  return {kNotFound, {{"Content-Type", "text/plain; charset=utf-8"}}, "404 page not found\n"};
}

}  // namespace sluice::http
