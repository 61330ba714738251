#pragma once

#include <grpcpp/server_context.h>

#include <chrono>
#include <list>
#include <mutex>

namespace sluice::server {

/// Ends streams whose client takes or sends nothing (F93). A write or read of gRPC's synchronous
/// API blocks as long as the client likes, and with it one of the server's threads; check() cancels
/// calls that block for longer than the limit, which wakes them. Thread: any.
class StreamGuard {
 public:
  using Clock = std::chrono::steady_clock;
  explicit StreamGuard(Clock::duration limit) : limit_(limit) {}

 private:
  struct Call {
    grpc::ServerContext* context;
    Clock::time_point blocked_since;  ///< zero: not in one
  };

 public:
  /// One call while it lives.
  class Watched {
   public:
    Watched(StreamGuard& guard, grpc::ServerContext& context) : guard_(guard) {
      const std::lock_guard lock(guard_.mutex_);
      at_ = guard_.calls_.insert(guard_.calls_.end(), {&context, {}});
    }
    ~Watched() {
      const std::lock_guard lock(guard_.mutex_);
      guard_.calls_.erase(at_);
    }
    Watched(const Watched&) = delete;
    Watched& operator=(const Watched&) = delete;

    /// Runs one write or read under the limit. @return what it returned.
    template <class Step>
    bool step(Step&& run_it) {
      set(Clock::now());
      const bool went = run_it();
      set({});
      return went;
    }

   private:
    void set(Clock::time_point since) {
      const std::lock_guard lock(guard_.mutex_);
      at_->blocked_since = since;
    }
    StreamGuard& guard_;
    std::list<Call>::iterator at_;
  };

  /// Called a few times a second. @return calls it ended.
  unsigned check(Clock::time_point now) {
    const std::lock_guard lock(mutex_);
    unsigned ended = 0;
    for (auto& call : calls_) {
      if (call.blocked_since != Clock::time_point{} && now - call.blocked_since > limit_) {
        call.context->TryCancel();
        ++ended;
      }
    }
    return ended;
  }

 private:
  std::mutex mutex_;
  std::list<Call> calls_;
  Clock::duration limit_;
};

}  // namespace sluice::server
