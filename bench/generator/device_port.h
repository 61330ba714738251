#pragma once

#include <algorithm>
#include <memory>
#include <utility>

#include "bench/generator/device.h"
#include "bench/generator/port.h"

namespace sluice::bench {

/// A port over any device that DPDK has a driver for. Thread: one.
class DevicePort final : public Port {
 public:
  static_assert(Device::kBurst == kBurst);

  explicit DevicePort(std::unique_ptr<Device> device) : Port(true), device_(std::move(device)) {}

  [[nodiscard]] core::MacAddress mac() const noexcept override { return device_->mac(); }
  [[nodiscard]] bool link_up() override { return device_->link_up(); }

  [[nodiscard]] std::uint16_t reserve(Frame* frames, std::uint16_t n) noexcept override {
    rte_mbuf* buffers[kBurst];
    if (!device_->allocate(buffers, n)) {
      return 0;
    }
    for (std::uint16_t i = 0; i < n; ++i) {
      frames[i] = {rte_pktmbuf_mtod(buffers[i], std::uint8_t*), 0, buffers[i]};
      __builtin_prefetch(frames[i].data, 1);  // last read by the peer's core
    }
    return n;
  }
  std::uint16_t send(const Frame* frames, std::uint16_t n) noexcept override {
    rte_mbuf* buffers[kBurst];
    for (std::uint16_t i = 0; i < n; ++i) {
      buffers[i] = static_cast<rte_mbuf*>(frames[i].handle);
      buffers[i]->data_len = static_cast<std::uint16_t>(frames[i].length);
      buffers[i]->pkt_len = frames[i].length;
    }
    return device_->send(buffers, n);
  }
  [[nodiscard]] std::uint16_t receive(Frame* frames) noexcept override {
    held_ = device_->receive(received_);
    for (std::uint16_t i = 0; i < held_; ++i) {
      frames[i] = {rte_pktmbuf_mtod(received_[i], std::uint8_t*), received_[i]->data_len,
                   received_[i]};
      __builtin_prefetch(frames[i].data);
    }
    return held_;
  }
  void release() noexcept override {
    rte_pktmbuf_free_bulk(received_, std::exchange(held_, std::uint16_t{0}));
  }

 private:
  std::unique_ptr<Device> device_;
  rte_mbuf* received_[kBurst] = {};
  std::uint16_t held_ = 0;
};

}  // namespace sluice::bench
