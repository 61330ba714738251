#include "control/publish/publisher.h"

#include <algorithm>
#include <future>
#include <thread>
#include <utility>

#include "control/compile/explain.h"
#include "control/publish/change_report.h"
#include "control/publish/command_queue.h"
#include "control/publish/progress.h"
#include "control/publish/state_mirror.h"
#include "control/publish/status_board.h"
#include "control/publish/trigger_times.h"

namespace sluice::publish {
namespace {

using Clock = CommandQueue::Clock;
using Answer = tl::expected<Accepted, Refused>;

std::uint64_t unix_milliseconds() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::milliseconds>(now).count());
}

}  // namespace

class Publisher::Impl {
 public:
  const Options options_;
  Impl(Options options, std::vector<SinkSlot> sinks, pipeline::WorkerView* view)
      : options_(std::move(options)),
        view_(view),
        ids_(options_.id_limits),
        maker_(options_.make_compiler ? options_.make_compiler(ids_)
                                      : make_table_compiler(options_.profile, ids_),
               options_.node) {
    for (const auto& slot : sinks) {
      runners_.push_back(
          std::make_unique<SinkRunner>(*slot.sink,
                                       RateLimiter::Options{.min_sync_period = slot.min_sync_period,
                                                            .sync_period = slot.sync_period,
                                                            .resync_period = slot.resync_period},
                                       [this] { note_progress(); }));
    }
  }

  void start() {
    for (auto& runner : runners_) {
      runner->start();
    }
    queue_.open();
    thread_ = std::thread([this] { run(); });
  }

  void stop() {
    queue_.close();
    if (thread_.joinable()) {
      thread_.join();
    }
    queue_.drop();
    for (auto& runner : runners_) {
      runner->stop();
    }
    progress_.notify();
  }

  void set_host_state(compile::HostState host) {
    queue_.post([this, host = std::move(host)]() mutable { maker_.set_host(std::move(host)); });
  }

  void restore(model::ClusterState state) {
    queue_.post([this, state = std::move(state)]() mutable {
      if (source_ != Status::Source::kNone) {
        return;
      }
      maker_.seed_version(std::max<std::uint64_t>(state.version, 1) - 1);
      take(maker_.replace(std::move(state)), Status::Source::kRestored);
    });
  }

  Answer replace(model::ClusterState next, std::optional<std::uint64_t> if_version) {
    std::shared_ptr<const void> dropped;  // goes with the command, on the caller's thread
    return ask([this, next = std::move(next), if_version, dropped]() mutable -> Answer {
      if (if_version && *if_version != version()) {
        return refuse(Refused::Why::kOtherBase);
      }
      if (source_ == Status::Source::kNone) {
        maker_.seed_version(options_.first_version ? options_.first_version()
                                                   : unix_milliseconds());
      }
      SharedChanges changes = maker_.replace(std::move(next));
      if (!changes->empty()) {
        dropped = mirror_.reset();
      }
      return take(std::move(changes), Status::Source::kControlPlane);
    });
  }

  Answer update(model::Delta delta, std::optional<std::uint64_t> base) {
    std::shared_ptr<const void> dropped;  // as in replace()
    return ask([this, delta = std::move(delta), base, dropped]() mutable -> Answer {
      if (source_ == Status::Source::kNone) {
        return refuse(Refused::Why::kNoSnapshot);
      }
      if (base && *base != version()) {
        return refuse(Refused::Why::kOtherBase);
      }
      model::Delta not_found = unknown_of(delta, maker_.state());
      SharedChanges changes = maker_.apply(delta);
      if (!changes->empty()) {
        dropped = mirror_.add(delta, version());
      }
      Accepted accepted = take(std::move(changes), source_);
      accepted.not_found = std::move(not_found);
      return accepted;
    });
  }

  StatePtr state() {
    enum class Copy : std::uint8_t { kNoState, kPart, kWhole };
    // Other commands come between two steps.
    const auto copy_some = [this] {
      return mirror_.fill_some(maker_.state()) ? Copy::kWhole : Copy::kPart;
    };
    for (auto copy = Copy::kPart; copy != Copy::kNoState;) {
      copy = ask_with_state<Copy>(copy_some);
      if (auto state = copy == Copy::kWhole ? mirror_.read() : nullptr; state != nullptr) {
        return state;  // else it was replaced since
      }
    }
    return nullptr;
  }

  StatePtr state_of(const model::ObjectName& service) {
    return ask_with_state<StatePtr>([this, service] {
      return StatePtr(compile::part_for(maker_.state(), service, options_.node.node_name));
    });
  }

  core::TablePtr table() const { return board_.table(); }

  Status status() const {
    Status status = board_.status();
    for (const auto& runner : runners_) {
      status.sinks.push_back(runner->status());
    }
    return status;
  }

  Health health() const {
    if (const auto error = board_.control_error(); !error.empty()) {
      return {false, "publisher: " + error};
    }
    for (const auto& runner : runners_) {
      if (const auto sink = runner->status(); !sink.alive) {
        return {false, "sink " + sink.name + ": " + sink.last_error};
      }
    }
    if (view_ != nullptr) {
      for (const auto& worker : view_->workers()) {
        if (!worker.running) {
          return {false, "worker " + std::to_string(worker.worker) + " does not run"};
        }
      }
      if (std::string fault = view_->degraded(); !fault.empty()) {
        return {false, std::move(fault), false};
      }
    }
    return {};
  }

  Standing standing() const {
    Standing standing = board_.standing();
    for (const auto& runner : runners_) {
      auto applied = runner->applied();
      if (runner == runners_.front() || applied.version < standing.in_force.version) {
        standing.in_force = std::move(applied);
      }
      standing.failing = standing.failing || !runner->status().last_error.empty();
    }
    return standing;
  }

  const core::DurationHistogram& programming_durations(core::Family family) const {
    return trigger_times_.durations(family);
  }

  bool wait_standing_change(const Standing& seen, std::chrono::milliseconds timeout,
                            const std::function<bool()>& give_up) {
    return progress_.wait(timeout, give_up, [&] { return standing() != seen; });
  }

  bool wait_applied(std::uint64_t version, std::chrono::milliseconds timeout,
                    const std::function<bool()>& give_up) {
    return progress_.wait(timeout, give_up, [&] {
      return std::all_of(runners_.begin(), runners_.end(), [&](const auto& runner) {
        return runner->status().applied_version >= version;
      });
    });
  }

  bool wait_version_change(std::uint64_t version, std::chrono::milliseconds timeout) {
    return progress_.wait(timeout, {}, [&] { return board_.version() != version; });
  }

 private:
  [[nodiscard]] std::uint64_t version() const {
    return source_ == Status::Source::kNone ? 0 : maker_.state().version;
  }

  [[nodiscard]] std::chrono::system_clock::time_point now() const {
    return options_.now ? options_.now() : std::chrono::system_clock::now();
  }

  /// A sink has applied something, or the version moved. Thread: any.
  void note_progress() {
    std::uint64_t in_force = UINT64_MAX;
    for (const auto& runner : runners_) {
      in_force = std::min(in_force, runner->applied().version);
    }
    trigger_times_.in_force(in_force, now());
    progress_.notify();
  }

  Answer refuse(Refused::Why why) {
    board_.count_refused();
    return tl::unexpected(Refused{why, version(), ""});
  }

  /// A change is in the state: note what it was. The answer waits for compile.
  Accepted take(SharedChanges changes, Status::Source source) {
    const bool first = source_ == Status::Source::kNone;
    source_ = source;
    first_ = first_ || first;
    totals_.services += changes->services.size();
    totals_.endpoint_slices += changes->slices.size();
    board_.count_change(!changes->empty() || first, totals_);
    trigger_times_.take(*changes, maker_.state());
    taken_ = std::move(changes);
    return {maker_.state().version, !taken_->empty(), {}, {}};
  }

  /// What `make` answers on the control thread; an empty value before the first snapshot.
  template <class Value, class Make>
  Value ask_with_state(Make make) {
    return queue_.ask(
        [this, make] { return source_ == Status::Source::kNone ? Value{} : Value(make()); },
        Value{});
  }

  /// Hands `change` to the control thread and waits for its answer, which comes after compile.
  template <class Change>
  Answer ask(Change change) {
    auto promise = std::make_shared<std::promise<Answer>>();
    auto future = promise->get_future();
    auto work = std::make_shared<Change>(std::move(change));
    const auto litter = std::make_shared<std::shared_ptr<const void>>();
    const bool taken = queue_.post(
        [this, promise = std::move(promise), work, litter] {
          Answer answer;
          try {
            answer = (*work)();
          } catch (const std::exception& error) {
            answer = tl::unexpected(Refused{Refused::Why::kFailed, version(), error.what()});
          }
          answers_.push_back({promise, std::move(answer), std::exchange(taken_, {}), litter});
        },
        true);
    const Answer stopped = tl::unexpected(Refused{Refused::Why::kStopped, 0, ""});
    Answer answer = taken ? CommandQueue::wait(future, stopped) : stopped;
    litter->reset();  // here, whoever else still holds its place
    return answer;
  }

  void run() {
    try {
      run_until_stopped();
    } catch (const std::exception& error) {
      board_.ended(error.what());
    } catch (...) {
      board_.ended("unknown exception");
    }
    // Whoever waits is woken by the end of its promise.
    queue_.close();
    queue_.drop();
    answers_.clear();
    progress_.notify();
  }

  void run_until_stopped() {
    auto next_release = Clock::now() + options_.id_release_period;
    auto next_retry = Clock::now() + options_.retry_period;
    while (queue_.wait_until(std::min(next_release, next_retry))) {
      for (auto& command : queue_.take()) {
        command();
      }
      const auto now = Clock::now();
      if (now >= next_release) {
        release_ids();
        next_release = now + options_.id_release_period;
      }
      core::TablePtr table;
      if (source_ != Status::Source::kNone && (first_ || maker_.pending())) {
        table = maker_.make();
        first_ = first_ && table == nullptr;
      }
      if (now >= next_retry) {
        if (auto well = maker_.retry_failed(); well != nullptr) {
          table = std::move(well);
        }
        next_retry = now + options_.retry_period;
      }
      publish(std::move(table));
      answer();
    }
  }

  /// Gives the table to the sinks (null: the state's version moved without a new one) and updates
  /// what status() shows.
  void publish(core::TablePtr table) {
    const auto version_now = version();
    if (!board_.show(source_, version_now, maker_, ids_, options_.node.node_name,
                     std::move(table)) ||
        source_ == Status::Source::kNone) {
      return;
    }
    // Without a table of this state (it does not compile) the sinks keep what they have.
    if (auto newest = board_.table(); newest != nullptr && maker_.last_reason().empty()) {
      for (auto& runner : runners_) {
        runner->want({newest, version_now, maker_.health_ports(), totals_});
      }
    }
    note_progress();
  }

  /// Answers the changes of this round, with the report lines of their objects.
  void answer() {
    if (auto litter = maker_.take_litter(); !answers_.empty()) {
      *answers_.front().litter = std::move(litter);
    }
    for (auto& waiting : answers_) {
      if (waiting.answer) {
        add_report(*waiting.changes, maker_, waiting.answer->report);
      }
      waiting.promise->set_value(std::move(waiting.answer));
    }
    answers_.clear();
  }

  /// Ids go back when no worker can read a table that names them and no connection counts under
  /// them (F63).
  void release_ids() {
    if (ids_.retired() == 0) {
      return;
    }
    std::uint64_t oldest = UINT64_MAX;
    if (view_ != nullptr) {
      for (const auto& worker : view_->workers()) {
        oldest = std::min(oldest, worker.generation);
      }
    }
    for (const auto& runner : runners_) {
      oldest = std::min(oldest, runner->status().applied_generation);
    }
    ids_.release_unused(oldest, [this](core::EndpointId id) {
      return view_ != nullptr && view_->endpoint_use(id).active > 0;
    });
  }

  struct Waiting {
    std::shared_ptr<std::promise<Answer>> promise;
    Answer answer;
    SharedChanges changes;  ///< null: refused
    std::shared_ptr<std::shared_ptr<const void>> litter;  ///< freed by who asked
  };

  pipeline::WorkerView* const view_;

  // Control thread only.
  compile::IdRegistry ids_;
  TableMaker maker_;
  Status::Source source_ = Status::Source::kNone;
  bool first_ = false;      ///< the first snapshot is to be compiled, also when it is empty
  SharedChanges taken_;     ///< by the command that runs
  ChangeTotals totals_;
  std::vector<Waiting> answers_;
  StateMirror mirror_;

  CommandQueue queue_;
  StatusBoard board_;
  Progress progress_;
  TriggerTimes trigger_times_{now()};

  std::vector<std::unique_ptr<SinkRunner>> runners_;
  std::thread thread_;
};

Publisher::Publisher(Options options, std::vector<SinkSlot> sinks, pipeline::WorkerView* view)
    : impl_(std::make_unique<Impl>(std::move(options), std::move(sinks), view)) {}
Publisher::~Publisher() {
  stop();
}
void Publisher::start() {
  impl_->start();
}
void Publisher::stop() {
  impl_->stop();
}
void Publisher::set_host_state(compile::HostState host) {
  impl_->set_host_state(std::move(host));
}
void Publisher::restore(model::ClusterState state) {
  impl_->restore(std::move(state));
}
tl::expected<Accepted, Refused> Publisher::replace(model::ClusterState next,
                                                   std::optional<std::uint64_t> if_version) {
  return impl_->replace(std::move(next), if_version);
}
tl::expected<Accepted, Refused> Publisher::update(model::Delta delta,
                                                  std::optional<std::uint64_t> base) {
  return impl_->update(std::move(delta), base);
}
Publisher::StatePtr Publisher::state() const {
  return impl_->state();
}
Publisher::StatePtr Publisher::state_of(const model::ObjectName& service) const {
  return impl_->state_of(service);
}
const Publisher::Options& Publisher::options() const {
  return impl_->options_;
}
core::TablePtr Publisher::table() const {
  return impl_->table();
}
Status Publisher::status() const {
  return impl_->status();
}
Health Publisher::health() const {
  return impl_->health();
}
Standing Publisher::standing() const {
  return impl_->standing();
}
const core::DurationHistogram& Publisher::programming_durations(core::Family family) const {
  return impl_->programming_durations(family);
}
bool Publisher::wait_standing_change(const Standing& seen, std::chrono::milliseconds timeout,
                                     const std::function<bool()>& give_up) const {
  return impl_->wait_standing_change(seen, timeout, give_up);
}
bool Publisher::wait_applied(std::uint64_t version, std::chrono::milliseconds timeout,
                             const std::function<bool()>& give_up) const {
  return impl_->wait_applied(version, timeout, give_up);
}
bool Publisher::wait_version_change(std::uint64_t version,
                                    std::chrono::milliseconds timeout) const {
  return impl_->wait_version_change(version, timeout);
}

}  // namespace sluice::publish
