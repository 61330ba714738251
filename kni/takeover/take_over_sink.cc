#include "kni/takeover/take_over_sink.h"

namespace sluice::kni {

core::Result<core::ApplyReport> TakeOverSink::apply(const core::TablePtr& table) {
  auto report = sink_->apply(table);
  if (!report || !remove_) {
    return report;
  }
  if (const auto removed = remove_(); removed) {
    remove_ = nullptr;
  } else if (warn_ && removed.error().message != told_) {
    told_ = removed.error().message;
    warn_("take-over: " + told_);
  }
  return report;
}

}  // namespace sluice::kni
