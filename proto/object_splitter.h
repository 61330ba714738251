#pragma once

#include <functional>
#include <vector>

#include "proto/event_buffer.h"

namespace sluice::codec {

/// Cuts the events of a text into objects: a document is an object, or a List of them under
/// `items`. Kubernetes writes `kind` behind `items` and behind an EndpointSlice's endpoints, so an
/// object is collected before its kind is known. metadata.managedFields (often most of the text)
/// and the annotation that repeats the object are left out at once. Throws SyntaxError.
class ObjectSplitter final : public EventSink {
 public:
  using OnObject = std::function<void(const EventBuffer&)>;
  explicit ObjectSplitter(OnObject on_object) : on_object_(std::move(on_object)) {}

  void on_document() override;
  void on_event(EventKind kind, std::uint32_t line, bool quoted, std::string_view text) override;

 private:
  struct Frame {
    bool map = false;
    bool key_next = false;  ///< in a map: the next event is a key
  };
  void end_document(std::uint32_t line);
  [[nodiscard]] EventBuffer& current() { return in_list_ ? item_ : root_; }
  [[nodiscard]] bool is_key() const { return !frames_.empty() && frames_.back().key_next; }
  [[nodiscard]] std::size_t object_depth() const { return frames_.size() - (in_list_ ? 2 : 0); }
  bool skipped(EventKind kind);
  bool list_step(EventKind kind, std::uint32_t line);
  void note_key(std::string_view text);
  void track(EventKind kind);

  OnObject on_object_;
  EventBuffer root_;
  EventBuffer item_;
  std::vector<Frame> frames_;
  bool in_list_ = false;  ///< inside the sequence of root key `items`
  bool had_list_ = false;
  bool items_key_ = false;     ///< the last root key was `items`
  bool metadata_key_ = false;  ///< the last key of the object was `metadata`
  bool annotations_key_ = false;
  bool skip_value_ = false;     ///< the value that comes now is left out
  std::size_t skip_depth_ = 0;  ///< > 0: inside a value that is left out
};

}  // namespace sluice::codec
