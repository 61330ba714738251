// The untraced procedure (procedure.h). Nothing here allocates or throws: workers call it on a
// miss.
#include "dataplane/core/fwd/decide.h"

#include "dataplane/core/fwd/procedure.h"

namespace sluice::core {

Decision decide(const ForwardingTable& table, const Flow& flow) noexcept {
  if (flow.tuple.src.family() != flow.tuple.dst.family()) {
    return {};
  }
  NoTrace trace;
  return Procedure<NoTrace>(table, flow, trace).run();
}

Decision decide(const ForwardingTable& table, const Flow& flow,
                const std::optional<Frontend>& exact) noexcept {
  if (flow.tuple.src.family() != flow.tuple.dst.family()) {
    return {};
  }
  NoTrace trace;
  return Procedure<NoTrace>(table, flow, trace, exact).run();
}

bool source_is_translated(const Decision& decision, const Flow& flow,
                          const Endpoint& chosen) noexcept {
  NoTrace trace;
  return translates_source(decision, flow, chosen, trace);
}

ForwardingMode effective_mode(const Decision& decision, const Flow& flow,
                              const Endpoint& chosen) noexcept {
  if (keeps_source(asked_mode(decision))) {
    return asked_mode(decision);
  }
  return source_is_translated(decision, flow, chosen) ? ForwardingMode::kFullNat
                                                      : ForwardingMode::kNat;
}

}  // namespace sluice::core
