#include "dataplane/pipeline/counters.h"

namespace sluice::pipeline {
namespace {

std::uint64_t* bucket(FrameBalance& balance, CounterClass cls) noexcept {
  switch (cls) {
    case CounterClass::kIn:
      return &balance.in;
    case CounterClass::kOut:
      return &balance.out;
    case CounterClass::kDrop:
      return &balance.dropped;
    case CounterClass::kToHost:
      return &balance.to_host;
    case CounterClass::kHeld:
      return &balance.held;
    case CounterClass::kInfo:
      break;
  }
  return nullptr;
}

}  // namespace

FrameBalance frame_balance(std::span<const CounterBlock* const> workers) noexcept {
  FrameBalance balance;
  std::uint64_t handed = 0;
  std::uint64_t taken = 0;
  for (const CounterBlock* worker : workers) {
    for (std::size_t c = 0; c < kCounters; ++c) {
      if (std::uint64_t* sum = bucket(balance, kCounterTable[c].cls); sum != nullptr) {
        *sum += worker->read(static_cast<Counter>(c));
      }
    }
    handed += worker->read(Counter::kHandoverSent);
    taken += worker->read(Counter::kHandoverReceived);
  }
  if (workers.size() > 1) {
    balance.in -= taken;
    balance.out -= handed;
    balance.held += handed - taken;
  }
  return balance;
}

}  // namespace sluice::pipeline
