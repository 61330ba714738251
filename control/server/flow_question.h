#pragma once

#include <optional>
#include <string>

#include "dataplane/core/fwd/decide.h"
#include "dataplane/core/sink.h"
#include "sluice/v1/node.pb.h"

namespace sluice::server {

/// An ExplainRequest that was read.
struct FlowQuestion {
  core::FlowTuple tuple;  ///< sport 0: not known
  std::string interface;  ///< "": none was named
  bool from_host = false;
};

/// Errors: one line that begins with the field. Nothing unprintable of the request gets into it.
[[nodiscard]] core::Result<FlowQuestion> read_question(const v1::ExplainRequest& request);

/// The interface that decide() is to see: what was named, none for a host process, and for a
/// source that the question says nothing about none when it is an address of this node, else
/// `any`, which no detector matches.
[[nodiscard]] std::string ingress_of(const FlowQuestion& question,
                                     const core::ForwardingTable& table);

}  // namespace sluice::server
