#pragma once

#include <google/protobuf/message.h>

#include <functional>
#include <string>
#include <vector>

#include "proto/event_buffer.h"

namespace sluice::codec {

/// Fills a message from the events of one object, field by field through the JSON names of its
/// descriptor: the messages mirror Kubernetes, so no field is named twice.
///
/// Types are taken strictly, as the Kubernetes API does: a number where text is expected is an
/// error (labels: {version: 1.0}), so is text where a list is expected. A repeated key is an error.
/// null is an absent field. Fields of Kubernetes that no proxy reads are skipped; other unknown
/// ones are reported as warnings.
class MessageReader {
 public:
  enum class Severity : std::uint8_t { kError, kWarning };
  using Report = std::function<void(Severity, std::uint32_t line, const std::string& field,
                                    const std::string& message)>;

  MessageReader(const EventBuffer& events, Report report)
      : events_(events), report_(std::move(report)) {}

  /// Reads the map that starts at event 0 into `message`.
  void read(google::protobuf::Message& message);

 private:
  using Field = google::protobuf::FieldDescriptor;
  using Message = google::protobuf::Message;

  void read_map(std::size_t at, Message& message);
  void read_field(std::size_t at, Message& message, const Field& field);
  void read_list(std::size_t at, Message& message, const Field& field);
  void read_entries(std::size_t at, Message& message, const Field& field);
  void read_scalar(std::size_t at, Message& message, const Field& field, bool add);
  void read_message(std::size_t at, Message& message, const Field& field, bool add);
  void unknown(std::size_t at, const Message& message, std::string_view key);
  bool text(std::size_t at, std::string& out);
  bool number(std::size_t at, std::int32_t& out);
  bool boolean(std::size_t at, bool& out);
  void fail(std::size_t at, const std::string& message);
  [[nodiscard]] bool expect(std::size_t at, EventKind kind, const char* wanted);
  [[nodiscard]] std::string describe(std::size_t at) const;

  const EventBuffer& events_;
  Report report_;
  std::string path_;
};

/// True for plain text that YAML reads as a number, true or false.
[[nodiscard]] bool looks_like_number_or_bool(std::string_view text);

}  // namespace sluice::codec
