#pragma once

#include <sys/types.h>

#include <optional>
#include <string>

namespace sluice::kni {

/// A process of that name (comm, at most 15 characters) in our network namespace; one whose
/// namespace cannot be seen counts, one that has ended and waits for its parent does not.
/// @param proc  where processes are listed.
[[nodiscard]] std::optional<pid_t> find_process(const std::string& name,
                                                const std::string& proc = "/proc");

}  // namespace sluice::kni
