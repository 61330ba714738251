#include "proto/message_reader.h"

#include <google/protobuf/struct.pb.h>
#include <google/protobuf/timestamp.pb.h>
#include <google/protobuf/util/time_util.h>

#include <algorithm>
#include <charconv>
#include <set>

#include "proto/known_fields.h"
#include "sluice/v1/objects.pb.h"

namespace sluice::codec {
namespace {

const google::protobuf::FieldDescriptor* field_of(const google::protobuf::Message& message,
                                                  std::string_view key) {
  const auto& descriptor = *message.GetDescriptor();
  for (int i = 0; i < descriptor.field_count(); ++i) {
    if (descriptor.field(i)->json_name() == key) {
      return descriptor.field(i);
    }
  }
  return nullptr;
}

/// Extends a path for the time of a scope.
class PathStep {
 public:
  PathStep(std::string& path, std::string_view step) : path_(path), before_(path.size()) {
    if (!path.empty() && !step.empty() && step.front() != '[') {
      path += '.';
    }
    path += step;
  }
  ~PathStep() { path_.resize(before_); }
  PathStep(const PathStep&) = delete;
  PathStep& operator=(const PathStep&) = delete;

 private:
  std::string& path_;
  std::size_t before_;
};

}  // namespace

bool looks_like_number_or_bool(std::string_view text) {
  if (text == "true" || text == "false" || text == "True" || text == "False" || text == "TRUE" ||
      text == "FALSE") {
    return true;
  }
  if (text.starts_with('+')) {
    text.remove_prefix(1);
  }
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool letters_only =
      std::none_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
  return end == text.data() + text.size() && error != std::errc::invalid_argument && !letters_only;
}

void MessageReader::read(Message& message) {
  if (expect(0, EventKind::kMapStart, "a mapping")) {
    read_map(0, message);
  }
}

void MessageReader::fail(std::size_t at, const std::string& message) {
  report_(Severity::kError, events_.at(at).line, path_, message);
}

std::string MessageReader::describe(std::size_t at) const {
  switch (events_.at(at).kind) {
    case EventKind::kNull:
      return "null";
    case EventKind::kMapStart:
      return "a mapping";
    case EventKind::kSeqStart:
      return "a list";
    default:
      return "\"" + std::string(events_.text(at).substr(0, 60)) + "\"";
  }
}

bool MessageReader::expect(std::size_t at, EventKind kind, const char* wanted) {
  if (events_.at(at).kind == kind) {
    return true;
  }
  fail(at, std::string("expected ") + wanted + ", got " + describe(at));
  return false;
}

void MessageReader::read_map(std::size_t at, Message& message) {
  std::set<std::string_view> seen;
  for (std::size_t i = at + 1; events_.at(i).kind != EventKind::kMapEnd;
       i = events_.behind(i + 1)) {
    const auto key = events_.text(i);
    const PathStep step(path_, key);
    if (!seen.insert(key).second) {
      fail(i, "the key appears twice");
      continue;
    }
    if (const auto* field = field_of(message, key); field != nullptr) {
      read_field(i + 1, message, *field);
    } else {
      unknown(i, message, key);
    }
  }
  // Kubernetes defaults a missing port name to ""; an explicit null stays nil (SL-5).
  if (auto* port = google::protobuf::DynamicCastToGenerated<v1::EndpointPort>(&message);
      port != nullptr && !seen.contains("name")) {
    port->set_name("");
  }
}

void MessageReader::unknown(std::size_t at, const Message& message, std::string_view key) {
  if (!is_ignored_field(message.GetDescriptor()->name(), key)) {
    report_(Severity::kWarning, events_.at(at).line, path_, "unknown field, ignored");
  }
}

void MessageReader::read_field(std::size_t at, Message& message, const Field& field) {
  if (events_.at(at).kind == EventKind::kNull) {
    return;
  }
  if (field.is_map()) {
    read_entries(at, message, field);
  } else if (field.is_repeated()) {
    read_list(at, message, field);
  } else if (field.cpp_type() == Field::CPPTYPE_MESSAGE) {
    read_message(at, message, field, false);
  } else {
    read_scalar(at, message, field, false);
  }
}

void MessageReader::read_list(std::size_t at, Message& message, const Field& field) {
  if (!expect(at, EventKind::kSeqStart, "a list")) {
    return;
  }
  std::size_t index = 0;
  for (std::size_t i = at + 1; events_.at(i).kind != EventKind::kSeqEnd; i = events_.behind(i)) {
    const PathStep step(path_, "[" + std::to_string(index++) + "]");
    if (field.cpp_type() == Field::CPPTYPE_MESSAGE) {
      read_message(i, message, field, true);
    } else {
      read_scalar(i, message, field, true);
    }
  }
}

void MessageReader::read_entries(std::size_t at, Message& message, const Field& field) {
  if (!expect(at, EventKind::kMapStart, "a mapping")) {
    return;
  }
  std::set<std::string_view> seen;
  for (std::size_t i = at + 1; events_.at(i).kind != EventKind::kMapEnd;
       i = events_.behind(i + 1)) {
    const auto key = events_.text(i);
    const PathStep step(path_, "[" + std::string(key) + "]");
    if (!seen.insert(key).second) {
      fail(i, "the key appears twice");
      continue;
    }
    auto& entry = *message.GetReflection()->AddMessage(&message, &field);
    const auto& type = *entry.GetDescriptor();
    entry.GetReflection()->SetString(&entry, type.map_key(), std::string(key));
    if (events_.at(i + 1).kind != EventKind::kNull) {
      read_scalar(i + 1, entry, *type.map_value(), false);
    }
  }
}

void MessageReader::read_scalar(std::size_t at, Message& message, const Field& field, bool add) {
  const auto& reflection = *message.GetReflection();
  if (field.cpp_type() == Field::CPPTYPE_STRING) {
    std::string value;
    if (text(at, value)) {
      add ? reflection.AddString(&message, &field, std::move(value))
          : reflection.SetString(&message, &field, std::move(value));
    }
  } else if (field.cpp_type() == Field::CPPTYPE_INT32) {
    std::int32_t value = 0;
    if (number(at, value)) {
      reflection.SetInt32(&message, &field, value);
    }
  } else {
    bool value = false;
    if (boolean(at, value)) {
      reflection.SetBool(&message, &field, value);
    }
  }
}

void MessageReader::read_message(std::size_t at, Message& message, const Field& field, bool add) {
  const auto& reflection = *message.GetReflection();
  const auto target = [&]() -> Message& {
    return add ? *reflection.AddMessage(&message, &field)
               : *reflection.MutableMessage(&message, &field);
  };
  if (field.message_type() == google::protobuf::Timestamp::descriptor()) {
    std::string value;
    google::protobuf::Timestamp time;
    if (!text(at, value)) {
      return;
    }
    if (!google::protobuf::util::TimeUtil::FromString(value, &time)) {
      fail(at, "expected a time such as 2026-01-31T12:00:00Z, got " + describe(at));
      return;
    }
    target().CopyFrom(time);
  } else if (field.message_type() == google::protobuf::Value::descriptor()) {
    if (!expect(at, EventKind::kScalar, "a number or a name")) {
      return;
    }
    google::protobuf::Value value;
    std::int32_t port = 0;
    if (!events_.at(at).quoted && looks_like_number_or_bool(events_.text(at))) {
      if (!number(at, port)) {
        return;
      }
      value.set_number_value(port);
    } else {
      value.set_string_value(std::string(events_.text(at)));
    }
    target().CopyFrom(value);
  } else if (expect(at, EventKind::kMapStart, "a mapping")) {
    read_map(at, target());
  }
}

bool MessageReader::text(std::size_t at, std::string& out) {
  if (!expect(at, EventKind::kScalar, "text")) {
    return false;
  }
  const auto value = events_.text(at);
  if (!events_.at(at).quoted && looks_like_number_or_bool(value)) {
    fail(at, "expected text, got the bare word " + std::string(value) + "; put it in quotes");
    return false;
  }
  out = value;
  return true;
}

bool MessageReader::number(std::size_t at, std::int32_t& out) {
  if (!expect(at, EventKind::kScalar, "a number")) {
    return false;
  }
  const auto value = events_.text(at);
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), out);
  if (events_.at(at).quoted || error != std::errc{} || end != value.data() + value.size()) {
    fail(at, "expected a whole number, got " + describe(at));
    return false;
  }
  return true;
}

bool MessageReader::boolean(std::size_t at, bool& out) {
  if (!expect(at, EventKind::kScalar, "true or false")) {
    return false;
  }
  const auto value = events_.text(at);
  if (events_.at(at).quoted || (value != "true" && value != "false")) {
    fail(at, "expected true or false, got " + describe(at));
    return false;
  }
  out = value == "true";
  return true;
}

}  // namespace sluice::codec
