#include "dataplane/pipeline/pending_flows.h"

#include <cstring>

namespace sluice::pipeline {

/// The set need not be hard to guess: a place in it is taken only for as long as an answer takes.
PendingFlows::Flow* PendingFlows::set_of(const core::FlowTuple& tuple) noexcept {
  std::uint64_t h = std::uint64_t{tuple.sport} << 16 | tuple.dport;
  for (const core::IpAddress* address : {&tuple.src, &tuple.dst}) {
    std::uint64_t halves[2];
    std::memcpy(halves, address->data(), 16);
    for (const std::uint64_t half : halves) {
      h = (h ^ half) * 0x9e3779b97f4a7c15ULL;
      h ^= h >> 32;
    }
  }
  return &flows_[h % (kFlows / kWays) * kWays];
}

PendingFlows::Flow* PendingFlows::find(const core::FlowTuple& tuple) noexcept {
  Flow* const set = set_of(tuple);
  for (Flow* flow = set; flow != set + kWays; ++flow) {
    if (flow->used && !flow->answered && flow->tuple == tuple) {
      return flow;
    }
  }
  return nullptr;
}

PendingFlows::Flow* PendingFlows::add(const core::FlowTuple& tuple, core::Tick now) noexcept {
  Flow* const set = set_of(tuple);
  for (Flow* flow = set; flow != set + kWays; ++flow) {
    if (!flow->used) {
      flow->tuple = tuple;
      flow->since = now;
      flow->used = true;
      flow->answered = false;
      flow->count = 0;
      ++used_;
      return flow;
    }
  }
  return nullptr;
}

bool PendingFlows::hold(Flow& flow, const Held& packet) noexcept {
  if (flow.count == kPackets) {
    return false;
  }
  flow.packets[flow.count++] = packet;
  ++held_;
  return true;
}

void PendingFlows::answer(Flow& flow) noexcept {
  if (flow.count == 0) {
    free(flow);
    return;
  }
  flow.answered = true;
  answered_[answered_size_++] = &flow;
}

std::size_t PendingFlows::take_answered(std::array<Held, kPackets>& out) noexcept {
  if (answered_size_ == 0) {
    return 0;
  }
  Flow& flow = *answered_[--answered_size_];
  const std::size_t n = flow.count;
  for (std::size_t k = 0; k < n; ++k) {
    out[k] = flow.packets[k];
  }
  free(flow);
  return n;
}

void PendingFlows::free(Flow& flow) noexcept {
  held_ -= flow.count;
  --used_;
  flow.used = false;
  flow.answered = false;
  flow.count = 0;
}

}  // namespace sluice::pipeline
