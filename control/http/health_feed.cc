// From the publisher's progress to health: when rules H-6, H-8 and H-11 are told what.
#include "control/http/health_feed.h"

namespace sluice::http {
namespace {

// How long a stopped worker or thread stays unnoticed; all else is told at once.
constexpr std::chrono::milliseconds kLook{250};

DataSource source_of(publish::Status::Source source) {
  switch (source) {
    case publish::Status::Source::kRestored:
      return DataSource::kRestored;
    case publish::Status::Source::kControlPlane:
      return DataSource::kControlPlane;
    case publish::Status::Source::kNone:
      break;
  }
  return DataSource::kNone;
}

}  // namespace

HealthFeed::HealthFeed(const publish::Publisher& publisher, HealthServer& server)
    : publisher_(publisher), server_(server), thread_([this] { run(); }) {}

HealthFeed::~HealthFeed() {
  stop();
}

void HealthFeed::stop() {
  stopping_ = true;
  if (thread_.joinable()) {
    thread_.join();
  }
}

void HealthFeed::run() {
  publish::Standing seen;
  while (!stopping_) {
    publish::Standing now = publisher_.standing();
    pass_on(seen, now);
    seen = std::move(now);
    publisher_.wait_standing_change(seen, kLook, [this] { return stopping_.load(); });
  }
}

void HealthFeed::pass_on(const publish::Standing& before, const publish::Standing& now) {
  if (now.node != before.node) {
    server_.set_node(now.node.get());
  }
  const publish::Health health = publisher_.health();
  server_.set_broken(health.reason);
  const bool recovered = before.failing && !now.failing;
  const bool synced =
      now.in_force.table != nullptr && !now.failing &&
      (now.in_force != before.in_force || now.source != before.source || recovered);
  if (synced) {
    const publish::Edition& in_force = now.in_force;
    server_.succeeded(source_of(now.source), in_force.version,
                      node_port_binds(in_force.table->node()), in_force.health_ports.items());
  }
  // After a success that a newer change has overtaken: that one is pending from now on.
  if (now.behind()) {
    server_.requested();
  }
}

}  // namespace sluice::http
