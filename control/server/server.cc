#include "control/server/server.h"

#include <grpc/support/log.h>
#include <grpcpp/ext/proto_server_reflection_plugin.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/health_check_service_interface.h>
#include <grpcpp/resource_quota.h>

#include <atomic>
#include <condition_variable>
#include <future>
#include <mutex>
#include <thread>

#include "control/server/cluster_service.h"
#include "control/server/listen.h"
#include "control/server/low_priority.h"
#include "control/server/node_service.h"
#include "control/server/persist.h"
#include "control/server/stream_guard.h"

namespace sluice::server {
namespace {

// Threads of all calls together. A stream that blocks holds one until StreamGuard ends it.
constexpr int kMaxThreads = 64;
constexpr std::chrono::milliseconds kShutdownGrace{500};
constexpr std::chrono::milliseconds kTick{250};
constexpr std::chrono::milliseconds kStopLook{50};  // so long may stop() wait for the persister
constexpr std::chrono::milliseconds kSettle{200};

/// gRPC writes to stderr what comes back as an error anyway.
void silence_grpc() {
  gpr_set_log_function([](gpr_log_func_args*) {});
}

}  // namespace

class Server::Impl {
 public:
  Impl(Options options, publish::Publisher& publisher, pipeline::WorkerView* view)
      : options_(std::move(options)),
        publisher_(publisher),
        guard_(options_.stalled_stream_limit),
        cluster_({options_.max_snapshot_bytes}, publisher, guard_, stopping_),
        node_({options_.version, options_.max_dumps}, publisher, view, guard_) {}

  core::Result<void> start() {
    silence_grpc();
    auto address = parse_listen(options_.listen);
    if (!address) {
      return tl::unexpected(address.error());
    }
    if (address->is_unix) {
      auto socket = UnixSocket::claim(address->path);
      if (!socket) {
        return tl::unexpected(socket.error());
      }
      socket_ = std::move(*socket);
    }
    // Before anybody can send a change: it must meet the state of the last run.
    restore();
    if (auto built = build(*address); !built) {
      socket_.reset();
      return built;
    }
    housekeeping_ = std::thread([this] { keep_house(); });
    if (!options_.state_file.empty()) {
      persister_ = std::thread([this] { persist(); });
    }
    return {};
  }

  void stop() {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    wake_.notify_all();
    if (server_ != nullptr) {
      server_->Shutdown(std::chrono::system_clock::now() + kShutdownGrace);
    }
    if (housekeeping_.joinable()) {
      housekeeping_.join();
    }
    if (persister_.joinable()) {
      persister_.join();  // which gives up what it writes
      keep_newest([this](const model::ClusterState& state) {
        return save_state(options_.state_file, state);  // at once: somebody waits for the end
      });
    }
    server_.reset();
    socket_.reset();
  }

  [[nodiscard]] std::string address() const { return address_; }

 private:
  core::Result<void> build(const ListenAddress& address) {
    grpc::EnableDefaultHealthCheckService(true);
    grpc::reflection::InitProtoReflectionServerBuilderPlugin();
    grpc::ServerBuilder builder;
    int port = 0;
    const std::string& target = address.is_unix ? socket_->private_address() : address.tcp;
    builder.AddListeningPort(target, grpc::InsecureServerCredentials(), &port);
    // Else a second server on the same port starts in silence and takes half of the calls.
    builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
    builder.SetMaxReceiveMessageSize(static_cast<int>(options_.max_message_bytes));
    builder.SetMaxSendMessageSize(-1);
    builder.SetSyncServerOption(grpc::ServerBuilder::NUM_CQS, 1);
    builder.SetResourceQuota(grpc::ResourceQuota("sluiced").SetMaxThreads(kMaxThreads));
    builder.RegisterService(&cluster_);
    builder.RegisterService(&node_);
    server_ = builder.BuildAndStart();
    if (server_ == nullptr || port == 0) {
      server_.reset();
      const auto why = address.is_unix ? std::string() : why_not_bindable(address);
      return tl::unexpected(
          core::Error{"cannot listen on " + options_.listen + (why.empty() ? "" : ": " + why)});
    }
    if (address.is_unix) {
      if (auto published = socket_->publish(); !published) {
        server_->Shutdown();
        server_.reset();
        return published;
      }
      address_ = "unix:" + address.path;
    } else {
      address_ = address.tcp.substr(0, address.tcp.rfind(':') + 1) + std::to_string(port);
    }
    return {};
  }

  void restore() {
    if (options_.state_file.empty()) {
      return;
    }
    auto state = load_state(options_.state_file);
    if (!state) {
      warn(state.error().message);
    } else if (*state) {
      publisher_.restore(std::move(**state));
    }
  }

  void warn(const std::string& line) const {
    if (options_.warn) {
      options_.warn(line);
    }
  }

  /// @return false: stop.
  bool pause(std::chrono::milliseconds time) {
    std::unique_lock lock(mutex_);
    return !wake_.wait_for(lock, time, [&] { return stopping_.load(); });
  }

  void keep_house() {
    while (pause(kTick)) {
      guard_.check(StreamGuard::Clock::now());
      server_->GetHealthCheckService()->SetServingStatus(publisher_.health().ok);
    }
  }

  /// Only the writing waits for whoever has more to do: to get the state takes locks and turns that
  /// others wait for.
  core::Result<Saved> write_in_background(const model::ClusterState& state) {
    return std::async(std::launch::async,
                      [&] {
                        lower_priority();
                        return save_state(options_.state_file, state, &stopping_);
                      })
        .get();
  }

  template <class Write>
  core::Result<void> save_newest(Write write) {
    try {
      const auto state = publisher_.state();
      if (state == nullptr || state->version == kept_) {
        return {};
      }
      const core::Result<Saved> saved = write(*state);
      if (!saved) {
        return tl::unexpected(saved.error());
      }
      kept_ = *saved == Saved::kWhole ? state->version : kept_;
      return {};
    } catch (const std::exception& error) {  // no memory for the copy, say: next time
      return tl::unexpected(core::Error{"cannot keep the snapshot: " + std::string(error.what())});
    }
  }

  template <class Write>
  void keep_newest(Write write) {
    const auto saved = save_newest(write);
    if (!saved && !save_failed_) {
      warn(saved.error().message);
    }
    save_failed_ = !saved;
  }

  /// Keeps the newest received snapshot on disk, not more often than the period says; stop() does
  /// so once more.
  void persist() {
    while (!stopping_) {
      if (publisher_.wait_version_change(kept_, kStopLook)) {
        pause(kSettle);  // the change comes into effect first: writing costs a core
        if (stopping_) {
          break;
        }
        keep_newest([this](const auto& state) { return write_in_background(state); });
        if (!pause(options_.state_file_period)) {
          break;
        }
      }
    }
  }

  const Options options_;
  publish::Publisher& publisher_;
  std::atomic<bool> stopping_{false};
  StreamGuard guard_;
  ClusterService cluster_;
  NodeService node_;
  std::unique_ptr<UnixSocket> socket_;
  std::unique_ptr<grpc::Server> server_;
  std::string address_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::thread housekeeping_;
  std::thread persister_;
  // The persister's; stop()'s after it has ended.
  std::uint64_t kept_ = 0;  ///< version on disk
  bool save_failed_ = false;
};

Server::Server(Options options, publish::Publisher& publisher, pipeline::WorkerView* view)
    : impl_(std::make_unique<Impl>(std::move(options), publisher, view)) {}
Server::~Server() {
  stop();
}
core::Result<void> Server::start() {
  return impl_->start();
}
void Server::stop() {
  impl_->stop();
}
std::string Server::address() const {
  return impl_->address();
}

}  // namespace sluice::server
