#include "control/http/http_server.h"

#include <microhttpd.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <list>
#include <map>
#include <mutex>
#include <thread>

#include "control/http/listen_socket.h"

namespace sluice::http {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::uint64_t kWake = 0;  // ids of listeners start behind these
constexpr std::uint64_t kHttp = 1;
constexpr int kAcceptsPerRound = 64;
constexpr std::chrono::milliseconds kTick{1000};
constexpr int kServiceUnavailable = 503;

/// One accepted socket. Lives as long as libmicrohttpd's connection.
struct Connection {
  int fd = -1;
  std::uint64_t listener = 0;
  Clock::time_point accepted;
  bool ended = false;  ///< shut down by us, libmicrohttpd has yet to notice
};
using Connections = std::list<Connection>;

core::Error system_error(const char* what) {
  return {std::string("http: ") + what + ": " + std::strerror(errno)};
}

MHD_Result send(MHD_Connection* connection, const Response& answer) {
  MHD_Response* response = MHD_create_response_from_buffer(
      answer.body.size(), const_cast<char*>(answer.body.data()), MHD_RESPMEM_MUST_COPY);
  if (response == nullptr) {
    return MHD_NO;
  }
  for (const auto& [name, value] : answer.headers) {
    MHD_add_response_header(response, name.c_str(), value.c_str());
  }
  MHD_add_response_header(response, MHD_HTTP_HEADER_CONNECTION, "close");
  const MHD_Result queued =
      MHD_queue_response(connection, static_cast<unsigned>(answer.status), response);
  MHD_destroy_response(response);
  return queued;
}

}  // namespace

class HttpServer::Impl {
 public:
  Impl(const Limits& limits, std::function<void()> tick)
      : limits_(limits), tick_(std::move(tick)) {}

  ~Impl() {
    if (thread_.joinable()) {
      stop_.store(true, std::memory_order_relaxed);
      const std::uint64_t one = 1;
      static_cast<void>(::write(wake_fd_, &one, sizeof one));
      thread_.join();
    }
    if (daemon_ != nullptr) {
      MHD_stop_daemon(daemon_);
    }
    for (const auto& [id, listener] : listeners_) {
      ::close(listener.fd);
    }
    for (const int fd : {wake_fd_, epoll_fd_}) {
      if (fd >= 0) {
        ::close(fd);
      }
    }
  }

  core::Result<void> start() {
    epoll_fd_ = ::epoll_create1(EPOLL_CLOEXEC);
    wake_fd_ = ::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (epoll_fd_ < 0 || wake_fd_ < 0) {
      return tl::unexpected(system_error("epoll"));
    }
    // Ours is the limit; libmicrohttpd's leaves room for those that are ended but not yet gone.
    daemon_ = MHD_start_daemon(
        MHD_USE_EPOLL | MHD_USE_NO_LISTEN_SOCKET, 0, nullptr, nullptr, &Impl::on_request, this,
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, limits_.head_bytes, MHD_OPTION_CONNECTION_LIMIT,
        static_cast<unsigned>(limits_.connections + kAcceptsPerRound), MHD_OPTION_NOTIFY_CONNECTION,
        &Impl::on_connection, this, MHD_OPTION_END);
    const MHD_DaemonInfo* info =
        daemon_ == nullptr ? nullptr : MHD_get_daemon_info(daemon_, MHD_DAEMON_INFO_EPOLL_FD);
    if (info == nullptr || !watch(info->epoll_fd, kHttp) || !watch(wake_fd_, kWake)) {
      return tl::unexpected(system_error("libmicrohttpd"));
    }
    thread_ = std::thread([this] { loop(); });
    return {};
  }

  core::Result<Listener> listen(const core::IpAddress& address, std::uint16_t port,
                                Handler handler) {
    const auto fd = open_listen_socket(address, port);
    if (!fd) {
      return tl::unexpected(fd.error());
    }
    const std::lock_guard lock(mutex_);
    const std::uint64_t id = next_id_++;
    if (!watch(*fd, id)) {
      const core::Error error = system_error("epoll_ctl");
      ::close(*fd);
      return tl::unexpected(error);
    }
    listeners_[id] = {*fd, std::make_shared<const Handler>(std::move(handler))};
    return Listener{ListenerId{id}, port_of_socket(*fd)};
  }

  void close(ListenerId id) {
    const std::lock_guard lock(mutex_);
    const auto at = listeners_.find(static_cast<std::uint64_t>(id));
    if (at != listeners_.end()) {
      ::close(at->second.fd);  // leaves the epoll set with its last descriptor
      listeners_.erase(at);
    }
  }

 private:
  struct Listening {
    int fd = -1;
    std::shared_ptr<const Handler> handler;
  };

  bool watch(int fd, std::uint64_t id) const {
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.u64 = id;
    return ::epoll_ctl(epoll_fd_, EPOLL_CTL_ADD, fd, &event) == 0;
  }

  void loop() {
    std::array<epoll_event, 64> events{};
    Clock::time_point next_tick = Clock::now() + kTick;
    while (!stop_.load(std::memory_order_relaxed)) {
      const int n = ::epoll_wait(epoll_fd_, events.data(), static_cast<int>(events.size()),
                                 wait_milliseconds());
      for (int i = 0; i < n; ++i) {
        const std::uint64_t id = events[static_cast<std::size_t>(i)].data.u64;
        if (id > kHttp) {
          accept_some(id);
        }
      }
      MHD_run(daemon_);
      const Clock::time_point now = Clock::now();
      end_overdue(now);
      if (now >= next_tick) {
        next_tick = now + kTick;
        if (tick_) {
          tick_();
        }
      }
    }
  }

  [[nodiscard]] int wait_milliseconds() const {
    auto wait = static_cast<unsigned long long>(std::min(kTick, limits_.deadline).count());
    MHD_UNSIGNED_LONG_LONG theirs = 0;
    if (MHD_get_timeout(daemon_, &theirs) == MHD_YES) {
      wait = std::min(wait, static_cast<unsigned long long>(theirs));
    }
    return static_cast<int>(wait);
  }

  void accept_some(std::uint64_t id) {
    for (int i = 0; i < kAcceptsPerRound; ++i) {
      sockaddr_storage peer{};
      socklen_t length = sizeof peer;
      const int fd = accept_one(id, peer, length);
      if (fd < 0) {
        return;
      }
      if (alive_ >= limits_.connections) {
        end_oldest();
      }
      Connection& mine = connections_.emplace_back(Connection{fd, id, Clock::now()});
      ++alive_;
      if (MHD_add_connection(daemon_, fd, reinterpret_cast<const sockaddr*>(&peer), length) !=
          MHD_YES) {
        forget(&mine);  // it has closed the socket
      }
    }
  }

  int accept_one(std::uint64_t id, sockaddr_storage& peer, socklen_t& length) {
    const std::lock_guard lock(mutex_);  // the descriptor cannot be closed and reused meanwhile
    const auto at = listeners_.find(id);
    if (at == listeners_.end()) {
      return -1;
    }
    const int fd = ::accept4(at->second.fd, reinterpret_cast<sockaddr*>(&peer), &length,
                             SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd < 0 && (errno == EMFILE || errno == ENFILE)) {
      end_oldest();  // the next round finds a descriptor
    }
    return fd;
  }

  void end(Connection& c) {
    if (!c.ended) {
      c.ended = true;
      --alive_;
      ::shutdown(c.fd, SHUT_RDWR);  // libmicrohttpd sees the end and closes it
    }
  }

  void end_oldest() {
    const auto at = std::find_if(connections_.begin(), connections_.end(),
                                 [](const Connection& c) { return !c.ended; });
    if (at != connections_.end()) {
      end(*at);
    }
  }

  void end_overdue(Clock::time_point now) {
    for (Connection& c : connections_) {
      if (now - c.accepted < limits_.deadline) {
        return;  // in the order of accept
      }
      end(c);
    }
  }

  static void on_connection(void* self, MHD_Connection* connection, void** context,
                            MHD_ConnectionNotificationCode what) {
    static_cast<Impl*>(self)->notice(connection, context, what);
  }

  void notice(MHD_Connection* connection, void** context, MHD_ConnectionNotificationCode what) {
    if (what == MHD_CONNECTION_NOTIFY_STARTED) {
      const MHD_ConnectionInfo* info =
          MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
      // The newest with this descriptor: an older one would be closed already.
      const auto at = std::find_if(connections_.rbegin(), connections_.rend(),
                                   [&](const Connection& c) { return c.fd == info->connect_fd; });
      *context = at == connections_.rend() ? nullptr : &*at;
      return;
    }
    forget(*context);
    *context = nullptr;
  }

  void forget(const void* connection) {
    const auto at = std::find_if(connections_.begin(), connections_.end(),
                                 [&](const Connection& c) { return &c == connection; });
    if (at != connections_.end()) {
      alive_ -= at->ended ? 0 : 1;
      connections_.erase(at);
    }
  }

  static MHD_Result on_request(void* self, MHD_Connection* connection, const char* url,
                               const char* method, const char* /*version*/,
                               const char* /*upload_data*/, std::size_t* /*upload_data_size*/,
                               void** /*request_context*/) {
    return static_cast<Impl*>(self)->answer(connection, {method, url});
  }

  MHD_Result answer(MHD_Connection* connection, const Request& request) {
    const MHD_ConnectionInfo* info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    const auto* mine =
        info == nullptr ? nullptr : static_cast<const Connection*>(info->socket_context);
    std::shared_ptr<const Handler> handler;
    if (mine != nullptr) {
      const std::lock_guard lock(mutex_);
      const auto at = listeners_.find(mine->listener);
      handler = at == listeners_.end() ? nullptr : at->second.handler;
    }
    if (handler == nullptr) {
      return MHD_NO;  // its listener was closed meanwhile
    }
    try {
      return send(connection, (*handler)(request));
    } catch (const std::exception&) {  // no exception may pass through the C library
      return send(connection, {kServiceUnavailable, {}, ""});
    }
  }

  const Limits limits_;
  const std::function<void()> tick_;
  int epoll_fd_ = -1;
  int wake_fd_ = -1;
  MHD_Daemon* daemon_ = nullptr;
  std::thread thread_;
  std::atomic<bool> stop_{false};
  Connections connections_;  ///< in the order of accept; thread: ours only
  std::size_t alive_ = 0;    ///< of them not ended
  std::mutex mutex_;         ///< guards what follows
  std::map<std::uint64_t, Listening> listeners_;
  std::uint64_t next_id_ = kHttp + 1;
};

HttpServer::HttpServer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
HttpServer::~HttpServer() = default;

core::Result<std::unique_ptr<HttpServer>> HttpServer::create(const Limits& limits,
                                                             std::function<void()> tick) {
  auto impl = std::make_unique<Impl>(limits, std::move(tick));
  if (const auto started = impl->start(); !started) {
    return tl::unexpected(started.error());
  }
  return std::unique_ptr<HttpServer>(new HttpServer(std::move(impl)));
}

core::Result<HttpServer::Listener> HttpServer::listen(const core::IpAddress& address,
                                                      std::uint16_t port, Handler handler) {
  return impl_->listen(address, port, std::move(handler));
}

void HttpServer::close(ListenerId id) {
  impl_->close(id);
}

}  // namespace sluice::http
