#pragma once

#include <google/protobuf/message.h>

#include <ostream>
#include <string>
#include <vector>

#include "control/cli/client.h"

namespace sluice::cli {

/// Rows under a heading, columns as wide as their widest cell, two blanks between them.
class Columns {
 public:
  explicit Columns(std::vector<std::string> heading) { rows_.push_back(std::move(heading)); }
  void add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }
  void print(std::ostream& out) const;

 private:
  std::vector<std::vector<std::string>> rows_;
};

/// Where a command writes: tables or JSON on `out`, errors and warnings on `err`.
struct Output {
  std::ostream& out;
  std::ostream& err;
  bool json = false;

  /// Prints the failure: a line on err, or a JSON object on out. @return the exit code.
  Exit fail(const Failure& failure) const;
  void warn(const std::string& line) const { err << "warning: " << line << "\n"; }
  void print(const google::protobuf::Message& message) const;
};

/// Protobuf's JSON of a message in one line. @param all also fields that are 0, "" or false.
[[nodiscard]] std::string json_of(const google::protobuf::Message& message, bool all);
/// A JSON string literal.
[[nodiscard]] std::string json_text(const std::string& text);
/// {"code":...,"exitCode":...,"message":...,"details":...}
[[nodiscard]] std::string json_of(const Failure& failure);

/// A JSON array under one name, printed as its elements come; always closed.
class JsonList {
 public:
  JsonList(std::ostream& out, const char* name) : out_(out) { out_ << "{\"" << name << "\":["; }
  void add(const std::string& element) {
    out_ << (first_ ? "\n" : ",\n") << element;
    first_ = false;
  }
  void end() { out_ << "]}\n"; }
  void end(const Failure& failure) { out_ << "],\"error\":" << json_of(failure) << "}\n"; }

 private:
  std::ostream& out_;
  bool first_ = true;
};

}  // namespace sluice::cli
