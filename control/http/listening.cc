#include "control/http/listening.h"

#include <utility>

namespace sluice::http {
namespace {

constexpr std::chrono::seconds kRetry{5};  // H-14

}  // namespace

Listening::Listening(BindAddress address, std::string name,
                     std::function<void(const std::string&)> warn)
    : port_(address.port), name_(std::move(name)), warn_(std::move(warn)) {
  for (const core::IpAddress& a : address.addresses) {
    places_.push_back({a, std::nullopt, ""});
  }
}

core::Result<void> Listening::try_all(HttpServer& server, const Handler& handler,
                                      Clock::time_point now) {
  core::Result<void> result;
  last_try_ = now;
  for (Place& place : places_) {
    if (place.listener) {
      continue;
    }
    auto listener = server.listen(place.address, port_, handler);
    if (listener) {
      place.listener = *listener;
      place.last_error.clear();
      continue;
    }
    if (warn_ && place.last_error != listener.error().message) {
      warn_(name_ + ": " + listener.error().message);
    }
    place.last_error = listener.error().message;
    result = tl::unexpected(listener.error());
  }
  return result;
}

bool Listening::due(Clock::time_point now) const {
  return now - last_try_ >= kRetry;
}

std::vector<std::uint16_t> Listening::ports() const {
  std::vector<std::uint16_t> out;
  for (const Place& place : places_) {
    out.push_back(place.listener ? place.listener->port : std::uint16_t{0});
  }
  return out;
}

}  // namespace sluice::http
