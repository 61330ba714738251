#include "kni/takeover/process.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <system_error>

namespace sluice::kni {
namespace {

namespace fs = std::filesystem;

/// "" when it cannot be seen.
std::string network_of(const fs::path& process) {
  std::error_code ignored;
  return fs::read_symlink(process / "ns" / "net", ignored).string();
}

bool is_named(const fs::path& process, const std::string& name) {
  std::ifstream in(process / "comm");
  std::string comm;
  return std::getline(in, comm) && comm == name;
}

/// "pid (comm) S ...": the comm may hold anything, so from the last parenthesis.
bool has_ended(const fs::path& process) {
  std::ifstream in(process / "stat");
  std::string line;
  std::getline(in, line);
  const std::size_t at = line.rfind(')');
  const char state = at != std::string::npos && at + 2 < line.size() ? line[at + 2] : 'Z';
  return state == 'Z' || state == 'X';
}

}  // namespace

std::optional<pid_t> find_process(const std::string& name, const std::string& proc) {
  const std::string ours = network_of(fs::path(proc) / "self");
  std::error_code failed;
  for (const fs::directory_entry& entry : fs::directory_iterator(proc, failed)) {
    const std::string pid = entry.path().filename();
    const bool number =
        std::all_of(pid.begin(), pid.end(), [](unsigned char c) { return std::isdigit(c) != 0; });
    if (!number || !is_named(entry.path(), name) || has_ended(entry.path())) {
      continue;
    }
    const std::string theirs = network_of(entry.path());
    if (theirs.empty() || theirs == ours) {
      return static_cast<pid_t>(std::atol(pid.c_str()));
    }
  }
  return std::nullopt;
}

}  // namespace sluice::kni
