// What the group shows: status, counters, connections.

#include <chrono>
#include <thread>

#include "dataplane/dpdk/worker_group.h"

namespace sluice::dpdk {

using pipeline::Counter;

std::vector<std::string> WorkerGroup::tap_names() const {
  std::vector<std::string> names;
  for (const PortPlan& plan : plans_) {
    names.push_back(tap_name(plan.settings.name));
  }
  return names;
}

std::vector<std::string> WorkerGroup::description() const {
  std::vector<std::string> lines = {"memory: " + memory_text_};
  const auto statuses = ports();
  for (std::size_t i = 0; i < statuses.size(); ++i) {
    const pipeline::PortStatus& port = statuses[i];
    std::string line = "port " + port.name + ": " + port.device + " (" + port.driver + "), " +
                       std::to_string(port.queues) + " queues, MTU " + std::to_string(port.mtu) +
                       ", MAC " + port.mac + "; steering: " + port.steering;
    if (!plans_[i].fallback_reason.empty()) {
      line += "; af_packet because of: " + plans_[i].fallback_reason;
    }
    lines.push_back(std::move(line));
  }
  for (std::size_t w = 0; w < cores_.size(); ++w) {
    lines.push_back("worker " + std::to_string(w) + ": core " + std::to_string(cores_[w]));
  }
  return lines;
}

std::vector<pipeline::WorkerStatus> WorkerGroup::workers() const {
  std::vector<pipeline::WorkerStatus> all;
  for (const auto& member : members_) {
    const LcoreWorker::Numbers numbers = member->worker->numbers();
    pipeline::WorkerStatus status;
    status.worker = member->index;
    status.lcore = cores_[member->index];
    status.running = member->running.load(std::memory_order_acquire);
    status.polls = member->counters.read(Counter::kPolls) + member->counters.read(Counter::kPollsEmpty);
    status.connections4 = numbers.connections4;
    status.connections6 = numbers.connections6;
    status.connection_capacity = numbers.capacity;
    status.generation = numbers.generation;
    all.push_back(status);
  }
  return all;
}

std::vector<pipeline::PortStatus> WorkerGroup::ports() const {
  std::vector<pipeline::PortStatus> all;
  for (const auto& port : ports_) {
    pipeline::PortStatus status = port->status();
    status.tap = settings_.taps ? tap_name(status.name) : "";
    all.push_back(std::move(status));
  }
  return all;
}

std::vector<pipeline::CounterValue> WorkerGroup::counters() const {
  std::vector<pipeline::CounterValue> all;
  for (std::size_t c = 0; c < pipeline::kCounters; ++c) {
    pipeline::CounterValue value{pipeline::kCounterTable[c].name, pipeline::kCounterTable[c].help,
                                 {}};
    for (const auto& member : members_) {
      value.per_worker.push_back(member->counters.read(static_cast<Counter>(c)));
    }
    all.push_back(std::move(value));
  }
  const auto add = [&](std::string_view name, std::string_view help, const auto& read) {
    pipeline::CounterValue value{name, help, {}};
    for (const auto& member : members_) {
      value.per_worker.push_back(read(*member).load(std::memory_order_relaxed));
    }
    all.push_back(std::move(value));
  };
  const auto io = [](auto field) {
    return [field](const Member& m) -> const auto& { return m.worker->io_counters().*field; };
  };
  const auto host = [this](auto field) {
    return [this, field](const Member& m) -> const auto& {
      return host_rings_->counters(m.index).*field;
    };
  };
  add("io_rx_not_contiguous", "received frames of segments that do not fit one buffer",
      io(&IoCounters::rx_not_contiguous));
  add("io_tx_oversize", "frames longer than the port carries (part of tx_dropped)",
      io(&IoCounters::tx_oversize));
  add("io_tx_refused", "frames the driver's queue did not take (part of tx_dropped)",
      io(&IoCounters::tx_refused));
  add("tap_written", "frames the host took from the tap", host(&HostCounters::written));
  add("tap_write_failed", "frames the host did not take", host(&HostCounters::write_failed));
  add("tap_read", "frames of the host given to this worker", host(&HostCounters::read));
  add("tap_ring_full", "frames of the host this worker had no room for",
      host(&HostCounters::ring_full));
  add("tap_no_buffer", "frames of the host lost for want of a buffer",
      host(&HostCounters::no_buffer));
  return all;
}

pipeline::FrameBalance WorkerGroup::balance() const {
  std::vector<const pipeline::CounterBlock*> blocks;
  for (const auto& member : members_) {
    blocks.push_back(&member->counters);
  }
  return pipeline::frame_balance(blocks);
}

pipeline::EndpointUse WorkerGroup::endpoint_use(core::EndpointId id) const {
  return {counts_->active(id), counts_->total(id)};
}

std::optional<std::uint32_t> WorkerGroup::owner_of_client(const core::IpAddress& address,
                                                          std::uint16_t port) const {
  return static_cast<std::uint32_t>(owners_->of_client(address, core::Be16::from_host(port)));
}

bool WorkerGroup::host_delivers(const core::IpAddress& address) const {
  const std::lock_guard lock(publish_mutex_);
  return publisher_->host_delivers(address);
}

bool WorkerGroup::is_service_address(const core::IpAddress& address) const {
  const std::lock_guard lock(publish_mutex_);
  return publisher_->is_service_address(address);
}

core::Result<bool> WorkerGroup::copy_page(Member& member, core::Family family,
                                          std::uint32_t& cursor,
                                          std::vector<pipeline::ConnectionRow>& rows) {
  const std::lock_guard lock(member.dump_mutex);
  member.dumps.request(family, cursor);
  while (!member.dumps.done()) {
    if (!member.running.load(std::memory_order_acquire)) {
      return tl::make_unexpected(
          core::Error{"worker " + std::to_string(member.index) + " is not running"});
    }
    std::this_thread::sleep_for(std::chrono::microseconds(20));
  }
  const pipeline::DumpMailbox::Page& page = member.dumps.page();
  rows.assign(page.rows.begin(), page.rows.begin() + page.count);
  cursor = page.next;
  return page.last;
}

core::Result<void> WorkerGroup::dump_connections(
    const pipeline::ConnectionFilter& filter,
    const std::function<bool(const pipeline::ConnectionRow&)>& row) {
  std::uint64_t left = filter.limit == 0 ? UINT64_MAX : filter.limit;
  std::vector<pipeline::ConnectionRow> rows;
  for (const auto& member : members_) {
    for (const core::Family family : {core::Family::kIpv4, core::Family::kIpv6}) {
      std::uint32_t cursor = 0;
      for (bool last = false; !last;) {
        // The page is copied out, so that a slow receiver holds no mailbox (F93).
        const auto copied = copy_page(*member, family, cursor, rows);
        if (!copied) {
          return tl::make_unexpected(copied.error());
        }
        last = *copied;
        for (const pipeline::ConnectionRow& one : rows) {
          if (pipeline::matches(filter, one) && (!row(one) || --left == 0)) {
            return {};
          }
        }
      }
    }
  }
  return {};
}

}  // namespace sluice::dpdk
