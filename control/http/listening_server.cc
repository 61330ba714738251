#include "control/http/listening_server.h"

#include <utility>

namespace sluice::http {
namespace {

constexpr std::chrono::seconds kRetry{5};  // H-14

}  // namespace

ListeningServer::ListeningServer(Options options, Handler handler)
    : options_(std::move(options)), handler_(std::move(handler)) {
  for (const core::IpAddress& a : options_.address.addresses) {
    places_.push_back({a, std::nullopt, ""});
  }
}

core::Result<std::unique_ptr<ListeningServer>> ListeningServer::create(Options options,
                                                                       Handler handler) {
  std::unique_ptr<ListeningServer> out(
      new ListeningServer(std::move(options), std::move(handler)));
  ListeningServer* const self = out.get();
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

/// Listens where it does not yet. Call with the lock held.
core::Result<void> ListeningServer::try_listen() {
  core::Result<void> result;
  last_try_ = options_.clock();
  for (Place& place : places_) {
    if (place.listener) {
      continue;
    }
    auto listener = server_->listen(place.address, options_.address.port, handler_);
    if (listener) {
      place.listener = *listener;
      place.last_error.clear();
      continue;
    }
    if (options_.warn && place.last_error != listener.error().message) {
      options_.warn(options_.name + ": " + listener.error().message);
    }
    place.last_error = listener.error().message;
    result = tl::unexpected(listener.error());
  }
  return result;
}

void ListeningServer::retry_if_due() {
  const std::lock_guard lock(mutex_);
  if (options_.clock() - last_try_ >= kRetry) {
    static_cast<void>(try_listen());  // what fails is told by warn and tried again
  }
}

std::vector<std::uint16_t> ListeningServer::ports() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::uint16_t> out;
  for (const Place& place : places_) {
    out.push_back(place.listener ? place.listener->port : std::uint16_t{0});
  }
  return out;
}

}  // namespace sluice::http
