#include "kni/nftables/nftables_sink.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include "kni/nftables/encode.h"
#include "kni/nftables/service.h"

namespace sluice::kni {

using core::Error;
using core::Family;
using core::Result;

namespace {

constexpr int kTriesWithGeneration = 2;
const std::vector<core::Unsupported> kNothing;

void encode_removal(nft::Batch& batch, Family family, const std::string& table) {
  nft::encode_table(batch, family, table);  // so that there is one to remove
  nft::encode_table_end(batch, family, table);
}

/// Numbers may wrap.
bool is_later(std::uint32_t generation, std::uint32_t than) {
  return static_cast<std::int32_t>(generation - than) > 0;
}

}  // namespace

Result<void> remove_tables(nft::Kernel& kernel, const std::vector<std::string>& names) {
  nft::Batch batch(std::nullopt);
  for (const Family family : {Family::kIpv4, Family::kIpv6}) {
    for (const std::string& name : names) {
      encode_removal(batch, family, name);
    }
  }
  batch.finish();
  const nft::CommitResult result = kernel.commit(batch);
  if (result.error != 0) {
    return tl::make_unexpected(Error{nft::describe(result)});
  }
  return {};
}

NftablesSink::NftablesSink(std::unique_ptr<nft::Kernel> kernel, Options options)
    : kernel_(std::move(kernel)), options_(std::move(options)) {}

core::Capabilities NftablesSink::capabilities() const {
  return nft::nftables_capabilities();
}

void NftablesSink::warn(const std::string& line) const {
  if (options_.warn) {
    options_.warn(line);
  }
}

void NftablesSink::hear(const nft::Events& events) {
  for (const nft::Commit& commit : events.foreign) {
    ++counters_.foreign_commits;
    if (commit.ours && is_later(commit.generation, generation_)) {
      touched_ = true;
      last_foreign_ = commit;
    }
    if (commit.generation == generation_ + 1) {
      generation_ = commit.generation;
    }
  }
  missed_ = missed_ || events.lost;
  counters_.listen_failures += events.refused;
  if (events.refused != 0) {
    warn("nftables: the kernel does not let us hear of others' changes; it is asked again");
  }
}

/// Finds out whether what we know of the kernel still holds; forgets it if not.
Result<void> NftablesSink::look_around(const core::ForwardingTable* wanted) {
  hear(kernel_->take_events());
  const auto generation = kernel_->generation();
  if (!generation) {
    return tl::make_unexpected(generation.error());
  }
  if (is_later(*generation, generation_)) {
    hear(kernel_->take_events());  // of a commit just now
  }
  if (in_force_ == nullptr) {
    return {};
  }
  if (is_later(*generation, generation_)) {
    missed_ = true;
    generation_ = *generation;
  }
  if (!touched_ && !missed_) {
    return {};
  }
  const auto handles = kernel_->handles();
  if (!handles) {
    return tl::make_unexpected(handles.error());
  }
  touched_ = touched_ || !(*handles == handles_);
  suspect_since_ = suspect_since_.value_or(options_.clock());
  const bool due = options_.clock() - *suspect_since_ >= options_.verify_within;
  if (!(*handles == handles_) || due || wanted == in_force_.get()) {
    in_force_ = nullptr;
  }
  return {};
}

Result<core::ApplyReport> NftablesSink::apply(const core::TablePtr& table) {
  const auto fail = [&](const Error& error) {
    ++counters_.sync_failures;
    in_force_ = nullptr;
    warn(error.message);
    return tl::make_unexpected(error);
  };
  if (const auto looked = look_around(table.get()); !looked) {
    return fail(looked.error());
  }
  if (in_force_ == table) {
    return report(*table);
  }
  if (const Result<void> done = sync(*table); !done) {
    return fail(done.error());
  }
  in_force_ = table;
  return report(*table);
}

Result<void> NftablesSink::sync(const core::ForwardingTable& table) {
  const auto began = options_.clock();
  was_full_ = in_force_ == nullptr;
  Result<void> done = was_full_ ? sync_all(table) : sync_change(table);
  durations_.record(was_full_, options_.clock() - began);
  return done;
}

/// @return whether it is in force; false: others committed in between.
Result<bool> NftablesSink::commit(const nft::Batch& batch, std::uint32_t generation) {
  const nft::CommitResult result = kernel_->commit(batch);
  if (result.error == ERESTART) {
    ++counters_.conflicts;
    return false;
  }
  if (result.error != 0) {
    return tl::make_unexpected(Error{nft::describe(result)});
  }
  // A transaction that changes nothing makes no generation; one of others may have come since.
  const auto now = kernel_->generation();
  generation_ = now && !is_later(*now, generation + 1) ? *now : generation + 1;
  return true;
}

void NftablesSink::tell_of_repair() {
  if (!std::exchange(touched_, false) || !suspect_since_) {
    return;  // one repair, however often it is tried
  }
  ++counters_.repairs;
  warn("nftables: our tables were changed from outside; the last commit was by " +
       last_foreign_.process + " (pid " + std::to_string(last_foreign_.pid) +
       "); they are put right");
}

/// Writes everything over whatever is there, in one transaction.
Result<bool> NftablesSink::write_all(const nft::Rendered& wanted, bool with_generation) {
  hear(kernel_->take_events());
  const auto generation = kernel_->generation();
  if (!generation) {
    return tl::make_unexpected(generation.error());
  }
  const auto there = kernel_->handles();
  if (!there) {
    return tl::make_unexpected(there.error());
  }
  handles_ = *there;
  const auto present = kernel_->read(nft::Kernel::Depth::kFrame);
  if (!present) {
    return tl::make_unexpected(present.error());
  }
  tell_of_repair();
  generation_ = *generation;
  nft::Plan v4 = nft::make_plan(present->v4, wanted.rulesets.v4, nft::Known::kNone);
  nft::Plan v6 = nft::make_plan(present->v6, wanted.rulesets.v6, nft::Known::kNone);
  rooms_v4_ = nft::Rooms(present->v4);
  rooms_v4_.take(v4);
  rooms_v6_ = nft::Rooms(present->v6);
  rooms_v6_.take(v6);
  return send(std::move(v4), std::move(v6), with_generation);
}

/// Both tables and what the plans say, as one transaction. @param last  it brings them into effect.
nft::Batch NftablesSink::make_batch(const nft::Plan& v4, const nft::Plan& v6,
                                    bool with_generation, bool last) const {
  nft::Batch batch(with_generation ? std::optional(generation_) : std::nullopt);
  for (const nft::Plan* plan : {&v4, &v6}) {
    nft::encode_table(batch, plan->family);
    nft::encode(batch, *plan);
    for (const std::string& other : last ? options_.replaces : std::vector<std::string>{}) {
      encode_removal(batch, plan->family, other);
    }
  }
  batch.finish();
  return batch;
}

/// New chains first, unless there is nothing yet; then everything else.
Result<bool> NftablesSink::send(nft::Plan v4, nft::Plan v6, bool with_generation) {
  partly_sent_ = false;
  const bool fresh = handles_ == nft::TableHandles{};
  if (!fresh) {
    const nft::Plan first4 = nft::take_first(v4);
    const nft::Plan first6 = nft::take_first(v6);
    if (!first4.empty() || !first6.empty()) {
      const auto done = commit(make_batch(first4, first6, with_generation, false), generation_);
      if (!done || !*done) {
        return done;
      }
      partly_sent_ = true;
    }
  }
  auto done = commit(make_batch(v4, v6, with_generation, true), generation_);
  if (done && *done) {
    options_.replaces.clear();
  }
  return done;
}

Result<void> NftablesSink::sync_all(const core::ForwardingTable& table) {
  nft::Rendered wanted = nft::render(table, options_.scope);
  Result<bool> done = false;
  for (int i = 0; done && !*done && i < kTriesWithGeneration; ++i) {
    done = write_all(wanted, true);
  }
  if (done && !*done) {
    done = write_all(wanted, false);
    if (done) {
      done = write_all(wanted, false);  // what came in between
    }
  }
  if (!done) {
    return tl::make_unexpected(done.error());
  }
  const auto handles = kernel_->handles();
  if (!handles) {
    return tl::make_unexpected(handles.error());
  }
  handles_ = *handles;
  suspect_since_.reset();
  missed_ = false;
  shares_ = std::move(wanted.shares);
  forget([&](std::uint32_t number) { return !wanted.memories.contains(number); });
  const nft::UnsupportedBySlot before = std::exchange(unsupported_, std::move(wanted.unsupported));
  for (const auto& [slot, lines] : unsupported_) {
    const auto found = before.find(slot);
    tell(found == before.end() ? kNothing : found->second, lines);
  }
  ++counters_.full_syncs;
  was_full_ = true;
  return {};
}

/// Sends the difference to the table in force. @return false: everything has to be written anew,
/// others committed in between or a set is too small.
Result<bool> NftablesSink::write_change(const nft::RenderedChange& change) {
  const nft::Plan v4 = nft::make_plan(change.before.v4, change.after.v4);
  const nft::Plan v6 = nft::make_plan(change.before.v6, change.after.v6);
  if (v4.empty() && v6.empty()) {
    return true;
  }
  if (!rooms_v4_.admit(v4) || !rooms_v6_.admit(v6)) {
    return false;
  }
  auto done = send(v4, v6, true);
  if (done && *done) {
    rooms_v4_.take(v4);
    rooms_v6_.take(v6);
  }
  return done;
}

Result<void> NftablesSink::sync_change(const core::ForwardingTable& table) {
  nft::RenderedChange change = nft::render_change(*in_force_, table, shares_, options_.scope);
  Result<bool> done = write_change(change);
  if (done && !*done) {
    // Others committed just now: once more, if our tables are still the same ones.
    if (const auto looked = look_around(&table); !looked) {
      return looked;
    }
    const bool stale = in_force_ == nullptr || partly_sent_;
    done = stale ? Result<bool>(false) : write_change(change);
  }
  if (!done) {
    return tl::make_unexpected(done.error());
  }
  if (!*done) {
    return sync_all(table);
  }
  const bool whole = change.whole;
  nft::merge(shares_, change);
  if (!change.forgotten.empty()) {
    forget([&](std::uint32_t number) { return change.forgotten.contains(number); });
  }
  for (auto& [slot, lines] : change.unsupported) {
    const auto found = unsupported_.find(slot);
    tell(found == unsupported_.end() ? kNothing : found->second, lines);
  }
  if (whole) {
    unsupported_.clear();
  }
  unsupported_.merge(change.unsupported);
  for (auto& [slot, lines] : change.unsupported) {
    unsupported_[slot] = std::move(lines);  // was there before
  }
  std::erase_if(unsupported_, [](const auto& item) { return item.second.empty(); });
  ++counters_.partial_syncs;
  return {};
}

/// Sources that nobody asks about any more. A failure is told and leaves them to their
/// time-out.
void NftablesSink::forget(const std::function<bool(std::uint32_t)>& gone) {
  const auto forgotten = kernel_->forget(gone);
  if (forgotten) {
    generation_ += *forgotten ? 1 : 0;
  } else {
    warn(forgotten.error().message);
  }
}

Result<void> NftablesSink::cleanup() {
  in_force_ = nullptr;
  return remove_tables(*kernel_, {nft::kTable});
}

/// Says once what a service port asks for in vain.
void NftablesSink::tell(const std::vector<core::Unsupported>& before,
                        const std::vector<core::Unsupported>& now) const {
  const auto was_said = [&](const core::Unsupported& line) {
    return std::any_of(before.begin(), before.end(), [&](const core::Unsupported& said) {
      return said.service_port == line.service_port && said.what == line.what;
    });
  };
  for (const core::Unsupported& line : now) {
    if (options_.warn && !was_said(line)) {
      options_.warn("service " + line.service_port + ": " + line.what);
    }
  }
}

void NftablesSink::collect(core::MetricVisitor& out) const {
  const auto counter = [&](const char* name, const char* help, const std::string& label,
                           std::uint64_t value) {
    out.number(core::MetricKind::kCounter, name, help, label, static_cast<double>(value));
  };
  for (const Family family : {Family::kIpv4, Family::kIpv6}) {  // one transaction for both
    const std::string label = core::family_label(family);
    durations_.collect(out, family);
    counter("kubeproxy_sync_proxy_rules_nftables_sync_failures_total", "Transactions that failed.",
            label, counters_.sync_failures);
    counter("kubeproxy_sync_proxy_rules_nftables_cleanup_failures_total",
            "Failed deletions of stale chains: none, they are part of the transaction.", label, 0);
  }
  counter("sluice_nftables_conflicts_total", "Transactions refused because others committed.", "",
          counters_.conflicts);
  counter("sluice_nftables_foreign_commits_total", "Commits of others.", "",
          counters_.foreign_commits);
  counter("sluice_nftables_repairs_total", "Times our tables had been changed from outside.", "",
          counters_.repairs);
  counter("sluice_nftables_listen_failures_total",
          "Times the kernel did not let us listen for others' commits again.", "",
          counters_.listen_failures);
}

core::ApplyReport NftablesSink::report(const core::ForwardingTable& table) const {
  core::ApplyReport out;
  out.generation = table.generation();
  for (const auto& [slot, lines] : unsupported_) {
    out.unsupported.insert(out.unsupported.end(), lines.begin(), lines.end());
  }
  return out;
}

}  // namespace sluice::kni
