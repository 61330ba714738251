#include "dataplane/pipeline/dump.h"

namespace sluice::pipeline {

bool matches(const ConnectionFilter& filter, const ConnectionRow& row) noexcept {
  return (!filter.client || *filter.client == row.flow.src) &&
         (!filter.vip || *filter.vip == row.flow.dst) &&
         (!filter.vip_port || *filter.vip_port == row.flow.dport) &&
         (!filter.backend || *filter.backend == row.backend) &&
         (!filter.protocol || *filter.protocol == row.flow.protocol);
}

}  // namespace sluice::pipeline
