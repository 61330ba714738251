#pragma once

#include <string>

#include "kni/nftables/kernel.h"
#include "kni/nftables/plan.h"
#include "kni/nftables/render.h"

namespace sluice::test {

/// What keeps the kernel's rule set from being the rendered one, element by element; "": nothing.
/// Read a few times if something does: a walk of a set that the kernel's worker is giving another
/// size may miss elements.
inline std::string difference_in_kernel(kni::nft::Kernel& kernel,
                                        const kni::nft::Rendered& wanted) {
  constexpr int kReads = 5;
  for (int i = 0; i < kReads; ++i) {
    const auto present = kernel.read(kni::nft::Kernel::Depth::kElements);
    if (!present) {
      return present.error().message;
    }
    if (kni::nft::make_plan(present->v4, wanted.rulesets.v4).empty() &&
        kni::nft::make_plan(present->v6, wanted.rulesets.v6).empty()) {
      return "";
    }
  }
  return "the kernel's rule set is not the rendered one";
}

}  // namespace sluice::test
