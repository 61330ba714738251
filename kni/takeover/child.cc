#include "kni/takeover/child.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

extern char** environ;

namespace sluice::kni {
namespace {

using Clock = std::chrono::steady_clock;

/// Both ends of a pipe, closed at the end.
struct Pipe {
  int read = -1;
  int write = -1;
  Pipe() {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) == 0) {
      read = ends[0];
      write = ends[1];
    }
  }
  ~Pipe() {
    close(read);
    close(write);
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  static void close(int& fd) {
    if (fd >= 0) {
      ::close(std::exchange(fd, -1));
    }
  }
};

struct Pipes {
  Pipe in, out, err;
};

int spawn(const std::vector<std::string>& words, const Pipes& pipes, pid_t& pid) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, pipes.in.read, STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, pipes.out.write, STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, pipes.err.write, STDERR_FILENO);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t none;
  sigemptyset(&none);
  posix_spawnattr_setsigmask(&attributes, &none);  // ours are blocked in every thread
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
  std::vector<char*> argv;
  for (const std::string& word : words) {
    argv.push_back(const_cast<char*>(word.c_str()));
  }
  argv.push_back(nullptr);
  const int rc = ::posix_spawnp(&pid, argv[0], &actions, &attributes, argv.data(), environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  return rc;
}

/// Appends what there is, up to `most` in all; closes at the end of it. @return all was appended.
bool take_output(int& fd, std::string& to, std::size_t most) {
  std::array<char, 65536> chunk;
  const ssize_t n = ::read(fd, chunk.data(), chunk.size());
  if (n > 0) {
    const std::size_t kept = std::min(static_cast<std::size_t>(n), most - to.size());
    to.append(chunk.data(), kept);
    return kept == static_cast<std::size_t>(n);
  }
  if (n == 0 || errno != EINTR) {
    Pipe::close(fd);
  }
  return true;
}

/// Gives what is left of the input; closes behind it, and when nobody reads it.
void give_input(int& fd, const std::string& input, std::size_t& given) {
  const ssize_t n = ::write(fd, input.data() + given, input.size() - given);
  given += n > 0 ? static_cast<std::size_t>(n) : 0;
  if (given == input.size() || (n < 0 && errno != EINTR && errno != EAGAIN)) {
    Pipe::close(fd);
  }
}

/// @return false: not done at the deadline.
bool talk(Pipes& pipes, const std::string& input, ChildResult& result, Clock::time_point until,
          std::size_t most) {
  std::size_t given = 0;
  ::fcntl(pipes.in.write, F_SETFL, O_NONBLOCK);
  if (input.empty()) {
    Pipe::close(pipes.in.write);
  }
  while (pipes.out.read >= 0 || pipes.err.read >= 0) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until - Clock::now());
    pollfd fds[] = {{pipes.out.read, POLLIN, 0},
                    {pipes.err.read, POLLIN, 0},
                    {pipes.in.write, POLLOUT, 0}};  // a negative one is ignored
    if (left.count() <= 0) {
      return false;
    }
    if (::poll(fds, 3, static_cast<int>(left.count())) <= 0) {
      continue;
    }
    if (fds[0].revents != 0) {
      result.cut = !take_output(pipes.out.read, result.out, most) || result.cut;
    }
    if (fds[1].revents != 0) {
      take_output(pipes.err.read, result.err, most);
    }
    if (fds[2].revents != 0) {
      give_input(pipes.in.write, input, given);
    }
  }
  return true;
}

}  // namespace

ChildResult run_child(const std::vector<std::string>& words, const std::string& input,
                      std::chrono::milliseconds deadline, std::size_t most) {
  ChildResult result;
  Pipes pipes;
  pid_t pid = -1;
  if (const int rc = spawn(words, pipes, pid); rc != 0) {
    result.missing = rc == ENOENT;
    return result;
  }
  Pipe::close(pipes.in.read);
  Pipe::close(pipes.out.write);
  Pipe::close(pipes.err.write);
  if (!talk(pipes, input, result, Clock::now() + deadline, most)) {
    ::kill(pid, SIGKILL);
  }
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  result.status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return result;
}

}  // namespace sluice::kni
