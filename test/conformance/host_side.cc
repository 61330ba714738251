#include "test/conformance/host_side.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "test/conformance/http_expectation.h"

namespace sluice::conformance {
namespace {

using publish::RateLimiter;

RateLimiter::Options options_of(const NodeSetup& node) {
  const RateLimiter::Duration period = std::chrono::seconds(node.sync_period_seconds);
  return {.sync_period = period, .first_retry = period};
}

core::IpAddress address_of(const YAML::Node& text) {
  const auto address = core::parse_address(text.as<std::string>());
  if (!address) {
    throw YAML::Exception(text.Mark(), "not an address");
  }
  return *address;
}

/// Where to probe a server that listens on `bind`.
core::IpAddress reachable(const core::IpAddress& bind) {
  if (!bind.is_unspecified()) {
    return bind;
  }
  return *core::parse_address(bind.is_v4() ? "127.0.0.1" : "::1");
}

}  // namespace

HostSide::HostSide(const NodeSetup& node, bool sockets, Apply apply)
    : apply_(std::move(apply)), limiter_(options_of(node)) {
  if (sockets) {
    http::HealthServer::Options o;
    o.tracker.sync_period = std::chrono::seconds(node.sync_period_seconds);
    o.healthz = *http::parse_bind_address(http::kHealthzAddress, http::kHealthzPort);
    o.bind_hard_fail = true;
    o.clock = [this] { return now(); };
    auto made = http::HealthServer::create(std::move(o));
    if (!made) {
      throw std::runtime_error(made.error().message);
    }
    server_ = std::move(*made);
  }
  set_node(node);
}

HostSide::~HostSide() = default;

http::Moment HostSide::now() const {
  const auto seconds = std::chrono::duration_cast<std::chrono::system_clock::duration>(
      now_.load().time_since_epoch());
  return {now_.load(), std::chrono::system_clock::time_point(seconds)};
}

void HostSide::set_node(const NodeSetup& node) {
  if (server_ != nullptr) {
    server_->set_node(node.absent ? nullptr : &node.node);
  }
}

void HostSide::sync() {
  limiter_.request();
  if (server_ != nullptr) {
    server_->requested();
  }
  run_due();
}

void HostSide::advance(double seconds) {
  const auto until = now_.load() + std::chrono::microseconds(std::llround(seconds * 1e6));
  for (auto next = limiter_.next_run(); next && *next <= until; next = limiter_.next_run()) {
    now_ = std::max(now_.load(), *next);
    run_once();
  }
  now_ = until;
}

void HostSide::run_due() {
  const auto next = limiter_.next_run();
  if (next && *next <= now_.load()) {
    run_once();
  }
}

void HostSide::run_once() {
  limiter_.started();
  if (failing_) {
    limiter_.failed(now_);
    return;
  }
  limiter_.succeeded(now_);
  const compile::Compiled& compiled = apply_();
  if (compiled.table == nullptr) {
    return;
  }
  if (core::udp_endpoints_changed(in_force_.get(), *compiled.table)) {
    remove_stale(*compiled.table);
  }
  in_force_ = compiled.table;
  if (server_ != nullptr) {
    if (version_ == 0) {
      binds_ = http::node_port_binds(in_force_->node());
    }
    unopened_ = server_->succeeded(http::DataSource::kControlPlane, ++version_, binds_,
                                   compiled.health_ports.items());
  }
}

void HostSide::remove_stale(const core::ForwardingTable& table) {
  std::erase_if(flows_, [&](const Flow& f) { return f.udp && core::is_stale(table, f.flow); });
}

std::optional<std::vector<std::string>> HostSide::perform(const std::string& kind,
                                                          const YAML::Node& value) {
  std::vector<std::string> failures;
  if (kind == "syncFailure") {
    failing_ = value.as<bool>();
  } else if (kind == "healthCheck" && server_ != nullptr) {
    for (const YAML::Node& want : value) {
      check_service(want, failures);
    }
  } else if (kind == "http" && server_ != nullptr) {
    for (const YAML::Node& want : value) {
      if (want["server"].as<std::string>() != "healthz") {
        return std::nullopt;
      }
      check_page(want, failures);
    }
  } else if (kind == "conntrack") {
    add_flows(value["entries"]);
    check_flows(value["deleted"], false, failures);
    check_flows(value["kept"], true, failures);
  } else {
    return std::nullopt;
  }
  return failures;
}

void HostSide::check_service(const YAML::Node& want, std::vector<std::string>& failures) const {
  const bool v6 = want["family"].as<std::string>("IPv4") == "IPv6";
  const auto port = want["port"].as<std::uint16_t>();
  const bool listening = want["listening"].as<bool>(true);
  const auto& binds = v6 ? binds_.v6 : binds_.v4;
  if (binds.empty() && listening) {
    failures.push_back("health port " + std::to_string(port) + ": no address of its family");
  }
  for (const core::IpAddress& bind : binds) {
    const std::string what = "health port " + core::to_string(bind, port);
    const auto answer = test::http_get(reachable(bind), port, "/");
    if (answer.has_value() != listening) {
      failures.push_back(what + (listening ? ": expected listening, got closed"
                                           : ": expected closed, got an answer"));
      for (const http::BindFailure& f : unopened_) {
        failures.back() += ", " + f.reason;
      }
    } else if (answer) {
      judge_answer(what, service_expectation(want), *answer, failures);
    }
  }
}

void HostSide::check_page(const YAML::Node& want, std::vector<std::string>& failures) const {
  const auto path = want["path"].as<std::string>();
  const auto answer =
      test::http_get(reachable(core::IpAddress{}), server_->healthz_ports().front(), path);
  if (!answer) {
    failures.push_back(path + ": expected an answer, got none");
  } else {
    judge_answer(path, want, *answer, failures);
  }
}

void HostSide::add_flows(const YAML::Node& entries) {
  for (const YAML::Node& e : entries) {
    flows_.push_back({e["id"].as<std::string>(),
                      e["proto"].as<std::string>() == "UDP",
                      {address_of(e["src"]), e["sport"].as<std::uint16_t>(), address_of(e["dst"]),
                       e["dport"].as<std::uint16_t>(), address_of(e["replySrc"]),
                       e["replySport"].as<std::uint16_t>()}});
  }
}

void HostSide::check_flows(const YAML::Node& ids, bool kept,
                           std::vector<std::string>& failures) const {
  for (const YAML::Node& id : ids) {
    const auto name = id.as<std::string>();
    const bool there =
        std::any_of(flows_.begin(), flows_.end(), [&](const Flow& f) { return f.id == name; });
    if (there != kept) {
      failures.push_back("flow " + name + ": expected " + (kept ? "kept" : "deleted") + ", got " +
                         (there ? "kept" : "deleted"));
    }
  }
}

}  // namespace sluice::conformance
