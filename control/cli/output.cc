#include "control/cli/output.h"

#include <google/protobuf/struct.pb.h>
#include <google/protobuf/util/json_util.h>

#include <algorithm>

namespace sluice::cli {

void Columns::print(std::ostream& out) const {
  std::vector<std::size_t> widths(rows_.front().size(), 0);
  for (const auto& row : rows_) {
    for (std::size_t i = 0; i < row.size(); ++i) {
      widths[i] = std::max(widths[i], row[i].size());
    }
  }
  for (const auto& row : rows_) {
    for (std::size_t i = 0; i < row.size(); ++i) {
      const bool last = i + 1 == row.size();
      out << row[i] << (last ? "\n" : std::string(widths[i] - row[i].size() + 2, ' '));
    }
  }
}

std::string json_of(const google::protobuf::Message& message, bool all) {
  google::protobuf::util::JsonPrintOptions options;
  options.always_print_primitive_fields = all;
  std::string text;
  // Fails only for messages that hold values JSON cannot write; ours hold none.
  (void)google::protobuf::util::MessageToJsonString(message, &text, options);
  return text;
}

std::string json_text(const std::string& text) {
  google::protobuf::Value value;
  value.set_string_value(text);
  return json_of(value, false);
}

std::string json_of(const Failure& failure) {
  std::string text = "{\"code\":" + json_text(failure.code) +
                     ",\"exitCode\":" + std::to_string(static_cast<int>(failure.exit)) +
                     ",\"message\":" + json_text(failure.message);
  if (failure.refusal.reason() != v1::Refusal::REASON_UNSPECIFIED) {
    text += ",\"details\":" + json_of(failure.refusal, false);
  }
  return text + "}";
}

Exit Output::fail(const Failure& failure) const {
  if (json) {
    out << "{\"error\":" << json_of(failure) << "}\n";
    return failure.exit;
  }
  const auto& errors = failure.refusal.errors();
  if (errors.empty()) {
    err << "sluicectl: " << failure.message << "\n";
  }
  for (const auto& error : errors) {
    err << "sluicectl: " << error.object() << ": "
        << (error.field().empty() ? "" : error.field() + ": ") << error.message() << "\n";
  }
  return failure.exit;
}

void Output::print(const google::protobuf::Message& message) const {
  out << json_of(message, true) << "\n";
}

}  // namespace sluice::cli
