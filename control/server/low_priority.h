#pragma once

#include <sched.h>
#include <sys/resource.h>

namespace sluice::server {

/// Lets this thread run only on what others leave: for work that nobody waits for. Needs no
/// permission; what the system refuses is not done.
inline void lower_priority() noexcept {
  constexpr int kLowest = 19;
  const sched_param none{};
  // On Linux both calls mean the calling thread.
  static_cast<void>(sched_setscheduler(0, SCHED_BATCH, &none));
  static_cast<void>(setpriority(PRIO_PROCESS, 0, kLowest));
}

}  // namespace sluice::server
