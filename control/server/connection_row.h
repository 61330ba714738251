#pragma once

#include <atomic>

#include "dataplane/core/fwd/forwarding_table.h"
#include "dataplane/pipeline/worker_view.h"
#include "sluice/v1/node.pb.h"

namespace sluice::server {

/// @param table names the Service; null: it stays empty.
void fill_connection(const pipeline::ConnectionRow& from, const core::ForwardingTable* table,
                     v1::ConnectionRow& to);

/// Counts a running dump.
class DumpSlot {
 public:
  DumpSlot(std::atomic<unsigned>& running, unsigned limit)
      : running_(running), got_(running.fetch_add(1) < limit) {}
  ~DumpSlot() { running_.fetch_sub(1); }
  DumpSlot(const DumpSlot&) = delete;
  DumpSlot& operator=(const DumpSlot&) = delete;
  [[nodiscard]] bool got() const { return got_; }

 private:
  std::atomic<unsigned>& running_;
  bool got_;
};

}  // namespace sluice::server
