#pragma once

#include "control/compile/reporter.h"
#include "control/compile/service_ports.h"
#include "control/compile/slices.h"

namespace sluice::compile {

/// Nothing maps a port: the backend gets the packet as the client sent it.
[[nodiscard]] bool maps_no_port(core::ForwardingMode mode);

/// False, and reported by field, where no frontend of the Service can have its mode: dr or ipip
/// when every targetPort is a number other than its port, or when all it has is node ports.
[[nodiscard]] bool can_have_mode(const model::Service& service, core::ForwardingMode mode,
                                 Reporter& report);

/// A tunnel carries one family inside the other: a service port without endpoints of its own
/// family takes those of the other one. Cluster IPs are translated, not tunnelled: they cannot.
void borrow_endpoints(MergedPorts& own, const MergedPorts& other);

/// Marks and reports the frontends of `block` that its mode cannot serve, because endpoints have
/// another port. Precondition: endpoints were selected.
void limit_by_mode(const NormalPort& port, core::ServicePort& block, Reporter& report);

}  // namespace sluice::compile
