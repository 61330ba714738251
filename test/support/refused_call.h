#pragma once

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>
#include <thread>

namespace sluice::test {

/// A system call that fails when its argument number `argument` (0..) is `value`.
struct RefusedCall {
  std::uint32_t number = 0;  ///< SYS_*
  std::uint32_t argument = 0;
  std::uint32_t value = 0;
  std::uint16_t error = EPERM;
};

/// For the calling thread and what it starts, until it ends.
/// Errors: std::runtime_error when the kernel has no such filter.
inline void refuse(const RefusedCall& call) {
  const auto argument =
      static_cast<std::uint32_t>(offsetof(seccomp_data, args) + call.argument * sizeof(__u64));
  sock_filter filter[] = {
      {BPF_LD | BPF_W | BPF_ABS, 0, 0, offsetof(seccomp_data, nr)},
      {BPF_JMP | BPF_JEQ | BPF_K, 0, 3, call.number},
      {BPF_LD | BPF_W | BPF_ABS, 0, 0, argument},  // the lower half; little-endian machines
      {BPF_JMP | BPF_JEQ | BPF_K, 0, 1, call.value},
      {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ERRNO | call.error},
      {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW},
  };
  const sock_fprog program{6, filter};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
      prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) {
    throw std::runtime_error(std::string("seccomp: ") + std::strerror(errno));
  }
}

/// Runs `body` on a thread of its own for which the call is refused, in the same namespaces.
template <class Body>
void where_refused(const RefusedCall& call, Body body) {
  std::thread([&] {
    refuse(call);
    body();
  }).join();
}

}  // namespace sluice::test
