#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "dataplane/core/sink.h"

namespace sluice::kni {

/// A kernel adapter that removes what translates beside it, once the first table is in force: what
/// another proxy left, or our own rules of another mode. A removal that fails is told as a line
/// "take-over: ...", whichever of the two it was for and once for each reason, and tried again behind
/// the next apply; it is no failure of the apply. Thread: one.
class TakeOverSink : public core::TableSink {
 public:
  using Remove = std::function<core::Result<void>()>;
  using Warn = std::function<void(const std::string&)>;

  /// @param warn  takes a line for the log; may be empty.
  TakeOverSink(std::unique_ptr<core::TableSink> sink, Remove remove, Warn warn)
      : sink_(std::move(sink)), remove_(std::move(remove)), warn_(std::move(warn)) {}

  [[nodiscard]] core::Capabilities capabilities() const override { return sink_->capabilities(); }
  core::Result<core::ApplyReport> apply(const core::TablePtr& table) override;
  core::Result<void> cleanup() override { return sink_->cleanup(); }

 private:
  std::unique_ptr<core::TableSink> sink_;
  Remove remove_;  ///< empty: done
  std::string told_;
  Warn warn_;
};

}  // namespace sluice::kni
