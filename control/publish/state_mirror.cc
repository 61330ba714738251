#include "control/publish/state_mirror.h"

#include <array>
#include <utility>

namespace sluice::publish {
namespace {

std::size_t size_of(const model::Delta& d) {
  return d.services.size() + d.slices.size() + d.nodes.size() + d.service_cidrs.size() +
         d.deleted_services.size() + d.deleted_slices.size() + d.deleted_nodes.size() +
         d.deleted_service_cidrs.size();
}

/// Copies the next `most` objects behind the last one there. @return true: it was the end.
template <class Map>
bool copy_some(const Map& from, Map& to, std::size_t most) {
  auto next = to.empty() ? from.begin() : from.upper_bound(to.rbegin()->first);
  for (std::size_t n = 0; next != from.end() && n < most; ++n, ++next) {
    to.emplace_hint(to.end(), *next);
  }
  return next == from.end();
}

}  // namespace

std::shared_ptr<const void> StateMirror::add(const model::Delta& delta, std::uint64_t version) {
  if (!live_ && unfinished_ == nullptr) {
    return nullptr;
  }
  Note note{std::make_shared<const model::Delta>(delta), version};
  {
    const std::lock_guard lock(mutex_);
    pending_objects_ += size_of(delta);
    pending_.push_back(std::move(note));
    if (pending_objects_ <= kMaxPending) {
      return nullptr;
    }
  }
  return reset();
}

std::shared_ptr<const void> StateMirror::reset() {
  live_ = false;
  auto dropped = std::make_shared<std::pair<std::array<std::shared_ptr<Copy>, 2>, Deltas>>();
  dropped->first[1].swap(unfinished_);
  const std::lock_guard lock(mutex_);
  pending_objects_ = 0;
  dropped->first[0].swap(copy_);
  dropped->second.swap(pending_);
  return dropped;
}

bool StateMirror::fill_some(const model::ClusterState& state) {
  if (live_) {
    return true;
  }
  if (unfinished_ == nullptr) {
    unfinished_ = std::make_shared<Copy>();
    unfinished_->state.version = state.version;
  }
  model::ClusterState& copy = unfinished_->state;
  if (!copy_some(state.services, copy.services, kStep) ||
      !copy_some(state.slices, copy.slices, kStep) || !copy_some(state.nodes, copy.nodes, kStep) ||
      !copy_some(state.service_cidrs, copy.service_cidrs, kStep)) {
    return false;
  }
  const std::lock_guard lock(mutex_);
  copy_ = std::move(unfinished_);
  live_ = true;
  return true;
}

std::shared_ptr<const model::ClusterState> StateMirror::read() {
  const std::lock_guard reading(read_mutex_);
  Deltas deltas;
  std::shared_ptr<Copy> copy;
  {
    const std::lock_guard lock(mutex_);
    if (copy_ == nullptr) {
      return nullptr;  // what is pending belongs to the copy that is being made
    }
    copy = copy_;
    deltas.swap(pending_);
    pending_objects_ = 0;
  }
  try {
    bring_up_to_date(copy, deltas);
  } catch (...) {
    put_back(copy, deltas);
    throw;
  }
  copy->readers.fetch_add(1, std::memory_order_relaxed);
  return {&copy->state, [copy](const model::ClusterState*) {
            copy->readers.fetch_sub(1, std::memory_order_release);
          }};
}

/// Applies the deltas, to another copy if a reader holds this one; `copy` becomes that.
void StateMirror::bring_up_to_date(std::shared_ptr<Copy>& copy, const Deltas& deltas) {
  if (!deltas.empty() && copy->readers.load(std::memory_order_acquire) != 0) {
    auto own = std::make_shared<Copy>();
    own->state = copy->state;
    const std::lock_guard lock(mutex_);
    if (copy_ == copy) {  // else a reset came in between; ours is still right for this caller
      copy_ = own;
    }
    copy = std::move(own);
  }
  for (const Note& note : deltas) {
    model::apply(copy->state, *note.delta);
    copy->state.version = note.version;  // what is applied again raises none
  }
}

/// The copy lacks all or a part of the deltas; the next reader applies them once more.
void StateMirror::put_back(const std::shared_ptr<Copy>& copy, Deltas& deltas) {
  const std::lock_guard lock(mutex_);
  if (copy_ != copy) {
    return;  // a reset came in between
  }
  for (const Note& note : deltas) {
    pending_objects_ += size_of(*note.delta);
  }
  pending_.splice(pending_.begin(), deltas);
}

}  // namespace sluice::publish
