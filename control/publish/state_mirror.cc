#include "control/publish/state_mirror.h"

#include <utility>

namespace sluice::publish {
namespace {

std::size_t size_of(const model::Delta& d) {
  return d.services.size() + d.slices.size() + d.nodes.size() + d.service_cidrs.size() +
         d.deleted_services.size() + d.deleted_slices.size() + d.deleted_nodes.size() +
         d.deleted_service_cidrs.size();
}

}  // namespace

void StateMirror::add(const model::Delta& delta) {
  if (!live_) {
    return;
  }
  auto note = std::make_shared<const model::Delta>(delta);
  {
    const std::lock_guard lock(mutex_);
    pending_objects_ += size_of(delta);
    pending_.push_back(std::move(note));
    if (pending_objects_ <= kMaxPending) {
      return;
    }
  }
  reset();
}

std::shared_ptr<const void> StateMirror::reset() {
  live_ = false;
  const std::lock_guard lock(mutex_);
  pending_objects_ = 0;
  auto dropped = std::make_shared<std::pair<std::shared_ptr<Copy>, Deltas>>();
  dropped->first.swap(copy_);
  dropped->second.swap(pending_);
  return dropped;
}

void StateMirror::fill(const model::ClusterState& state) {
  reset();
  auto copy = std::make_shared<Copy>();
  copy->state = state;
  const std::lock_guard lock(mutex_);
  copy_ = std::move(copy);
  live_ = true;
}

std::shared_ptr<const model::ClusterState> StateMirror::read() {
  const std::lock_guard reading(read_mutex_);
  Deltas deltas;
  std::shared_ptr<Copy> copy;
  {
    const std::lock_guard lock(mutex_);
    copy = copy_;
    deltas.swap(pending_);
    pending_objects_ = 0;
  }
  if (copy == nullptr) {
    return nullptr;
  }
  if (!deltas.empty() && copy->readers.load(std::memory_order_acquire) != 0) {
    auto own = std::make_shared<Copy>();
    own->state = copy->state;
    const std::lock_guard lock(mutex_);
    if (copy_ == copy) {  // else a reset came in between; ours is still right for this caller
      copy_ = own;
    }
    copy = std::move(own);
  }
  for (const auto& delta : deltas) {
    model::apply(copy->state, *delta);
  }
  copy->readers.fetch_add(1, std::memory_order_relaxed);
  return {&copy->state, [copy](const model::ClusterState*) {
            copy->readers.fetch_sub(1, std::memory_order_release);
          }};
}

}  // namespace sluice::publish
