#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "dataplane/core/fwd/forwarding_table.h"
#include "dataplane/core/sink.h"
#include "kni/nftables/layout.h"
#include "kni/nftables/ruleset.h"

namespace sluice::kni::nft {

/// What one service port is in its family's table.
struct ServicePieces {
  struct Element {
    const char* set;
    std::string key;
    ElementValue value;
  };
  std::vector<Element> elements;        ///< nobody else's
  std::vector<Shape> shapes;            ///< shared chains that its elements and chains go to
  std::vector<std::string> hairpins;    ///< keys of the hairpin set, shared
  std::map<std::string, Chain> chains;  ///< nobody else's: affinity
  std::vector<std::uint32_t> memories;  ///< numbers its endpoints remember sources under
  std::vector<core::Unsupported> unsupported;
};

/// @param slot  has a block. Pure; thread: any.
[[nodiscard]] ServicePieces render_service(const core::ForwardingTable& table,
                                           core::ServiceSlot slot);

/// Schedulers and modes that render_service() expresses as they are meant.
[[nodiscard]] core::Capabilities nftables_capabilities();

}  // namespace sluice::kni::nft
