#pragma once

#include "dataplane/core/conn/entry.h"
#include "dataplane/core/fwd/forwarding_table.h"
#include "dataplane/core/net/address.h"
#include "dataplane/pipeline/next_hop.h"
#include "dataplane/pipeline/next_hop_directory.h"

namespace sluice::pipeline {

// How packets of modes dr and ipip leave (stage_direct_return.h).

/// A next hop, and its word as it was read when the packet's way was decided.
struct Way {
  ResolvedHop hop;
  NextHopWord word;
};

/// What forwarding a packet that is not translated needs of its flow.
template <class F>
struct Untouched {
  core::EntryIndex at;  ///< kNone: the flow has no entry
  core::ForwardingMode mode;
  core::IpAddress backend;
  typename F::Address client;
  core::Be16 client_port;
};

/// Where a packet without an entry goes.
struct HashedWay {
  core::ForwardingMode mode = core::ForwardingMode::kByRule;
  const core::Endpoint* endpoint = nullptr;  ///< null: hashing alone does not say
  ResolvedHop hop;
  bool reached = false;  ///< by that mode
};

}  // namespace sluice::pipeline
