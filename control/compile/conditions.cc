// Endpoint conditions: rules C-1..C-4 (section 5).
#include "control/compile/conditions.h"

namespace sluice::compile {

Conditions conditions_of(const model::SliceEndpoint& endpoint) {
  return {endpoint.ready.value_or(true), endpoint.serving.value_or(true),
          endpoint.terminating.value_or(false)};
}

}  // namespace sluice::compile
