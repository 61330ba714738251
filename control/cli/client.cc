#include "control/cli/client.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace sluice::cli {
namespace {

std::string canonical(const std::string& server) {
  return server.starts_with('/') ? "unix:" + server : server;
}

std::string seconds(std::chrono::milliseconds time) {
  const auto tenths = time.count() / 100;
  return std::to_string(tenths / 10) + (tenths % 10 == 0 ? "" : "." + std::to_string(tenths % 10)) +
         " s";
}

const char* code_name(grpc::StatusCode code) {
  static constexpr const char* kNames[] = {"OK",
                                           "CANCELLED",
                                           "UNKNOWN",
                                           "INVALID_ARGUMENT",
                                           "DEADLINE_EXCEEDED",
                                           "NOT_FOUND",
                                           "ALREADY_EXISTS",
                                           "PERMISSION_DENIED",
                                           "RESOURCE_EXHAUSTED",
                                           "FAILED_PRECONDITION",
                                           "ABORTED",
                                           "OUT_OF_RANGE",
                                           "UNIMPLEMENTED",
                                           "INTERNAL",
                                           "UNAVAILABLE",
                                           "DATA_LOSS",
                                           "UNAUTHENTICATED"};
  const auto i = static_cast<std::size_t>(code);
  return i < std::size(kNames) ? kNames[i] : "UNKNOWN";
}

Exit exit_of(grpc::StatusCode code) {
  switch (code) {
    case grpc::StatusCode::INVALID_ARGUMENT:
    case grpc::StatusCode::FAILED_PRECONDITION:
    case grpc::StatusCode::RESOURCE_EXHAUSTED:
    case grpc::StatusCode::ABORTED:
    case grpc::StatusCode::NOT_FOUND:
      return Exit::kRefused;
    case grpc::StatusCode::UNAVAILABLE:
      return Exit::kUnreachable;
    default:
      return Exit::kBroken;
  }
}

std::string one_line(std::string text) {
  std::replace(text.begin(), text.end(), '\n', ' ');
  return text;
}

bool is_socket(const std::string& path) {
  struct stat info {};
  return stat(path.c_str(), &info) == 0 && S_ISSOCK(info.st_mode);
}

}  // namespace

Client::Client(const std::string& server, std::chrono::milliseconds timeout)
    : server_(canonical(server)), timeout_(timeout) {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(-1);
  arguments.SetMaxSendMessageSize(-1);
  arguments.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  arguments.SetString(GRPC_ARG_DEFAULT_AUTHORITY, "localhost");
  const auto channel =
      grpc::CreateCustomChannel(server_, grpc::InsecureChannelCredentials(), arguments);
  cluster_ = v1::Cluster::NewStub(channel);
  node_ = v1::Node::NewStub(channel);
}

std::optional<Failure> Client::unreachable() const {
  if (!server_.starts_with("unix:")) {
    return std::nullopt;
  }
  const std::string path = server_.substr(5);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.empty()) {
    return Failure{Exit::kUnreachable, "UNAVAILABLE", "--server: unix: names no path", {}};
  }
  if (path.size() >= sizeof address.sun_path) {
    return Failure{Exit::kUnreachable, "UNAVAILABLE", path + ": too long for a socket path", {}};
  }
  std::memcpy(address.sun_path, path.data(), path.size());
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  const int result = connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address);
  const int error = result == 0 ? 0 : errno;
  close(fd);
  switch (error) {
    case 0:
    case EAGAIN:  // its queue is full: alive, perhaps stopped
      return std::nullopt;
    case ENOENT:
      return Failure{
          Exit::kUnreachable, "UNAVAILABLE", path + " does not exist: is sluiced running?", {}};
    case ECONNREFUSED:
      return Failure{Exit::kUnreachable,
                     "UNAVAILABLE",
                     path + (is_socket(path) ? " is left over, no daemon listens there"
                                             : " is no socket"),
                     {}};
    case EACCES:
    case EPERM:
      return Failure{Exit::kUnreachable, "PERMISSION_DENIED", path + ": permission denied", {}};
    default:
      return Failure{Exit::kUnreachable, "UNAVAILABLE", path + ": " + std::strerror(error), {}};
  }
}

Call::Call(const Client& client, std::chrono::milliseconds extra)
    : client_(client), limit_(client.timeout() + extra), watchdog_([this] { watch(); }) {}

Call::~Call() {
  {
    const std::lock_guard lock(mutex_);
    done_ = true;
  }
  wake_.notify_all();
  watchdog_.join();
}

void Call::progress() {
  const std::lock_guard lock(mutex_);
  ++moves_;
}

void Call::watch() {
  std::unique_lock lock(mutex_);
  auto seen = moves_;
  while (!wake_.wait_for(lock, limit_, [&] { return done_; })) {
    if (moves_ == seen) {
      timed_out_ = true;
      context_.TryCancel();
      return;
    }
    seen = moves_;
  }
}

std::optional<Failure> Call::failure(const grpc::Status& status, bool begun) {
  if (status.ok()) {
    return std::nullopt;
  }
  {
    const std::lock_guard lock(mutex_);
    if (timed_out_) {
      return Failure{Exit::kTimeout,
                     "DEADLINE_EXCEEDED",
                     client_.server() + ": no answer for " + seconds(limit_),
                     {}};
    }
  }
  const auto code = status.error_code();
  Failure failure{exit_of(code), code_name(code), one_line(status.error_message()), {}};
  if (code == grpc::StatusCode::UNIMPLEMENTED && failure.message.empty()) {
    failure.message = "the daemon does not know this call: it is older than this tool";
  } else if (code == grpc::StatusCode::UNAVAILABLE) {
    // The connection was there a moment ago (see unreachable()), or it is TCP.
    const bool unix_socket = client_.server().starts_with("unix:");
    failure.exit = begun || unix_socket ? Exit::kBroken : Exit::kUnreachable;
    failure.message = client_.server() + (failure.exit == Exit::kBroken
                                              ? ": the daemon went away before its answer was whole"
                                              : ": cannot connect");
  }
  const auto& metadata = context_.GetServerTrailingMetadata();
  if (const auto at = metadata.find("sluice-error-bin"); at != metadata.end()) {
    failure.refusal.ParseFromArray(at->second.data(), static_cast<int>(at->second.size()));
  }
  return failure;
}

}  // namespace sluice::cli
