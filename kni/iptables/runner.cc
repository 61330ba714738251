#include "kni/iptables/runner.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <utility>

namespace sluice::kni::ipt {
namespace {

using core::Error;
using core::Result;
using Clock = std::chrono::steady_clock;

constexpr std::size_t kMostErrors = 4096;
constexpr int kClaimFd = 3;  // of the program that is run
constexpr std::size_t kMostLine = 1U << 20;

class Fd {
 public:
  explicit Fd(int fd = -1) noexcept : fd_(fd) {}
  Fd(Fd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Fd& operator=(Fd&& other) noexcept {
    close();
    fd_ = std::exchange(other.fd_, -1);
    return *this;
  }
  ~Fd() { close(); }
  [[nodiscard]] int get() const noexcept { return fd_; }
  [[nodiscard]] bool open() const noexcept { return fd_ >= 0; }
  void close() noexcept {
    if (fd_ >= 0) {
      ::close(fd_);
    }
    fd_ = -1;
  }

 private:
  int fd_;
};

Error failure(const std::string& program, int error) {
  return {program + ": cannot be run: " + std::strerror(error)};
}

/// A file in memory that holds the input.
Fd make_input(std::string_view text) {
  Fd file(memfd_create("sluice-rules", MFD_CLOEXEC));
  while (file.open() && !text.empty()) {
    const ssize_t n = write(file.get(), text.data(), text.size());
    if (n < 0 && errno != EINTR) {
      return Fd();
    }
    text.remove_prefix(n > 0 ? static_cast<std::size_t>(n) : 0);
  }
  if (file.open() && lseek(file.get(), 0, SEEK_SET) != 0) {
    return Fd();
  }
  return file;
}

struct Pipe {
  Fd read;
  Fd write;
};

bool make_pipe(Pipe& out) {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) {
    return false;
  }
  out.read = Fd(ends[0]);
  out.write = Fd(ends[1]);
  return true;
}

/// Signals as a program expects them, whatever this thread has blocked.
struct Attributes {
  posix_spawnattr_t attributes{};
  posix_spawn_file_actions_t actions{};
  Attributes() {
    posix_spawnattr_init(&attributes);
    posix_spawn_file_actions_init(&actions);
    sigset_t none;
    sigemptyset(&none);
    posix_spawnattr_setsigmask(&attributes, &none);
    sigset_t all;
    sigfillset(&all);
    posix_spawnattr_setsigdefault(&attributes, &all);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  }
  Attributes(const Attributes&) = delete;
  Attributes& operator=(const Attributes&) = delete;
  ~Attributes() {
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
  }
  void put(int fd, int as) { posix_spawn_file_actions_adddup2(&actions, fd, as); }
};

/// Cuts what is read into lines.
class Lines {
 public:
  explicit Lines(const LineTaker& take) : take_(take) {}
  void add(std::string_view bytes) {
    held_.append(bytes);
    std::size_t begin = 0;
    for (std::size_t end = 0; (end = held_.find('\n', begin)) != std::string::npos;) {
      give(std::string_view(held_).substr(begin, end - begin));
      begin = end + 1;
    }
    held_.erase(0, begin);
    if (held_.size() > kMostLine) {
      held_.clear();
    }
  }
  void end() {
    if (!held_.empty()) {
      give(held_);
    }
  }

 private:
  void give(std::string_view line) const {
    if (take_) {
      take_(line);
    }
  }
  const LineTaker& take_;
  std::string held_;
};

class HostRunner : public Runner {
 public:
  HostRunner(std::unique_ptr<Claim> claim, Ending ending)
      : claim_(std::move(claim)), ending_(std::move(ending)) {}

  Result<Outcome> run(const Command& command, const LineTaker& take) override {
    const std::string& program = command.words.front();
    if (is_ending()) {
      return tl::make_unexpected(Error{program + ": not run, because sluiced ends"});
    }
    const Fd input = make_input(command.input);
    Pipe output;
    Pipe errors;
    if (!input.open() || !make_pipe(output) || !make_pipe(errors)) {
      return tl::make_unexpected(failure(program, errno));
    }
    const auto child = start(command, input, output.write, errors.write);
    if (!child) {
      return tl::make_unexpected(child.error());
    }
    output.write.close();
    errors.write.close();
    bool killed = false;
    Outcome out = follow(*child, command.deadline, output.read, errors.read, take, killed);
    if (killed) {
      return tl::make_unexpected(Error{program + ": killed, because sluiced ends"});
    }
    return out;
  }

 private:
  [[nodiscard]] bool is_ending() const { return ending_ && ending_(); }

  Result<pid_t> start(const Command& command, const Fd& input, const Fd& output,
                      const Fd& errors) const {
    Attributes with;
    with.put(input.get(), STDIN_FILENO);
    with.put(output.get(), STDOUT_FILENO);
    with.put(errors.get(), STDERR_FILENO);
    if (claim_ != nullptr) {
      with.put(claim_->fd(), kClaimFd);
    }
    std::vector<char*> words;
    for (const std::string& word : command.words) {
      words.push_back(const_cast<char*>(word.c_str()));
    }
    words.push_back(nullptr);
    pid_t child = 0;
    const int error =
        posix_spawnp(&child, words[0], &with.actions, &with.attributes, words.data(), environ);
    if (error != 0) {
      return tl::make_unexpected(failure(command.words.front(), error));
    }
    return child;
  }

  /// Reads until both ends are closed, the deadline has passed or we end; then waits for its end.
  Outcome follow(pid_t child, std::chrono::milliseconds deadline, Fd& output, Fd& errors,
                 const LineTaker& take, bool& killed) const {
    Outcome out;
    Lines lines(take);
    const Clock::time_point until = Clock::now() + deadline;
    while (output.open() || errors.open()) {
      const auto left =
          std::chrono::duration_cast<std::chrono::milliseconds>(until - Clock::now()).count();
      killed = is_ending();
      if (killed || left <= 0) {
        out.timed_out = !killed;
        kill(child, SIGKILL);
        break;
      }
      std::array<pollfd, 2> fds = {{{output.get(), POLLIN, 0}, {errors.get(), POLLIN, 0}}};
      const auto wait = std::min<long long>(left, kAskEvery.count());
      if (poll(fds.data(), fds.size(), static_cast<int>(wait)) <= 0) {
        continue;
      }
      if (fds[0].revents != 0) {
        read_some(output, [&](std::string_view bytes) { lines.add(bytes); });
      }
      if (fds[1].revents != 0) {
        read_some(errors, [&](std::string_view bytes) {
          const std::size_t room = kMostErrors - std::min(kMostErrors, out.errors.size());
          out.errors.append(bytes.substr(0, room));
        });
      }
    }
    lines.end();
    out.status = wait_for(child);
    return out;
  }

  static void read_some(Fd& fd, const std::function<void(std::string_view)>& take) {
    std::array<char, 65536> bytes;
    const ssize_t n = read(fd.get(), bytes.data(), bytes.size());
    if (n > 0) {
      take({bytes.data(), static_cast<std::size_t>(n)});
    } else if (n == 0 || errno != EINTR) {
      fd.close();
    }
  }

  static int wait_for(pid_t child) {
    int status = 0;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }

  std::unique_ptr<Claim> claim_;
  Ending ending_;
};

}  // namespace

std::unique_ptr<Runner> make_runner(std::unique_ptr<Claim> claim, Ending ending) {
  return std::make_unique<HostRunner>(std::move(claim), std::move(ending));
}

}  // namespace sluice::kni::ipt
