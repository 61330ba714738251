#include "dataplane/dpdk/core_kind.h"

#ifdef __x86_64__
#include <cpuid.h>
#endif

namespace sluice::dpdk {

CoreKind this_core() noexcept {
  CoreKind kind;
#ifdef __x86_64__
  unsigned highest = 0;
  unsigned vendor = 0;  // the first letters of "AuthenticAMD"
  unsigned rest = 0;
  unsigned version = 0;
  __get_cpuid(0, &highest, &vendor, &rest, &rest);
  __get_cpuid(1, &version, &rest, &rest, &rest);
  kind.amd = vendor == signature_AMD_ebx;
  const std::uint32_t base = version >> 8 & 0xf;
  kind.family = base == 0xf ? base + (version >> 20 & 0xff) : base;
#endif
  return kind;
}

pipeline::MemoryPace memory_pace(const CoreKind& kind) noexcept {
  constexpr std::uint32_t kZen5 = 26;
  if (kind.amd && kind.family >= kZen5) {
    return {.lines_ahead = 128, .group = 32};  // 128: all of a burst of IPv6
  }
  return {};
}

}  // namespace sluice::dpdk
