// Built without DPDK.
#include "test/conformance/rte_indexes.h"

namespace sluice::conformance {

test::IndexMaker* rte_indexes() {
  return nullptr;
}

}  // namespace sluice::conformance
