#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::codec {

/// One parser event of a YAML or JSON text.
enum class EventKind : std::uint8_t { kNull, kScalar, kMapStart, kMapEnd, kSeqStart, kSeqEnd };

struct Event {
  EventKind kind = EventKind::kNull;
  bool quoted = false;     ///< scalar that is text whatever it looks like
  std::uint32_t line = 0;  ///< from 1
  std::uint32_t offset = 0;
  std::uint32_t length = 0;
};

/// The events of one object, in order, with their text in one piece of memory that is reused for
/// the next object: what one object needs, not what the file needs.
class EventBuffer {
 public:
  void clear() {
    events_.clear();
    text_.clear();
  }
  void add(EventKind kind, std::uint32_t line, bool quoted = false, std::string_view text = {}) {
    events_.push_back({kind, quoted, line, static_cast<std::uint32_t>(text_.size()),
                       static_cast<std::uint32_t>(text.size())});
    text_.append(text);
  }
  void remove_last() { events_.pop_back(); }
  [[nodiscard]] std::size_t size() const { return events_.size(); }
  [[nodiscard]] const Event& at(std::size_t i) const { return events_[i]; }
  [[nodiscard]] std::string_view text(std::size_t i) const {
    return std::string_view(text_).substr(events_[i].offset, events_[i].length);
  }
  /// Index behind the value that starts at `i`.
  [[nodiscard]] std::size_t behind(std::size_t i) const;
  /// Index of the value at `path` ("spec.ports[1].port", "metadata.annotations[key]") under the map
  /// that starts at 0; of the deepest part that exists when the path does not.
  [[nodiscard]] std::size_t find(std::string_view path) const;
  /// Text of the scalar `key` of the map that starts at `map`; "" when absent or no scalar.
  [[nodiscard]] std::string_view scalar_of(std::size_t map, std::string_view key) const;
  /// Index of the value of `key` in the map that starts at `map`; 0 when absent.
  [[nodiscard]] std::size_t value_of(std::size_t map, std::string_view key) const;

 private:
  std::vector<Event> events_;
  std::string text_;
};

/// A text that cannot be read on: what and where. Thrown by readers and sinks, caught in
/// read_objects().
struct SyntaxError {
  std::uint32_t line = 0;
  std::string message;
};

/// Takes the events of a text as they are read.
class EventSink {
 public:
  virtual ~EventSink() = default;
  virtual void on_document() = 0;
  virtual void on_event(EventKind kind, std::uint32_t line, bool quoted, std::string_view text) = 0;
};

}  // namespace sluice::codec
