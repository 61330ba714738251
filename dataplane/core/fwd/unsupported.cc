#include "dataplane/core/fwd/unsupported.h"

#include <algorithm>
#include <string>

#include "dataplane/core/fwd/text.h"

namespace sluice::core {
namespace {

template <class List, class Value>
bool contains(const List& list, const Value& value) {
  return std::find(list.begin(), list.end(), value) != list.end();
}

}  // namespace

std::vector<Unsupported> unsupported_of(const ServicePort& service, const Capabilities& can) {
  std::vector<Unsupported> out;
  const std::string cannot = ": " + can.name + " cannot do it; ";
  if (!contains(can.schedulers, service.scheduler)) {
    out.push_back({service.name, "scheduler " + std::string(name_of(service.scheduler)) + cannot +
                                     "a random endpoint is taken instead"});
  }
  const std::string mode = "forwarding mode " + std::string(name_of(service.mode));
  if (service.crosses_families()) {
    out.push_back({service.name,
                   mode + " to endpoints of the other family" + cannot + "traffic is refused"});
  } else if (!contains(can.modes, service.mode)) {
    out.push_back({service.name,
                   mode + cannot + "external traffic is translated and its source masqueraded"});
  }
  return out;
}

}  // namespace sluice::core
