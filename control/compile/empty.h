#pragma once

#include "control/compile/compile.h"

namespace sluice::compile {

/// What the frontends of a block answer when they have nothing to send to; the lists are set.
void set_empty_verdicts(Profile profile, core::ServicePort& block);

}  // namespace sluice::compile
