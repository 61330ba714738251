#include "proto/object_splitter.h"

namespace sluice::codec {
namespace {

constexpr std::string_view kLastApplied = "kubectl.kubernetes.io/last-applied-configuration";

bool opens(EventKind kind) {
  return kind == EventKind::kMapStart || kind == EventKind::kSeqStart;
}
bool closes(EventKind kind) {
  return kind == EventKind::kMapEnd || kind == EventKind::kSeqEnd;
}

void check_root(EventKind kind, std::uint32_t line) {
  if (kind != EventKind::kMapStart && kind != EventKind::kNull) {
    throw SyntaxError{line, "expected a Kubernetes object (a mapping with apiVersion and kind)"};
  }
}

}  // namespace

void ObjectSplitter::on_document() {
  root_.clear();
  frames_.clear();
  in_list_ = had_list_ = items_key_ = false;
  skip_value_ = false;
  skip_depth_ = 0;
}

/// Remembers which key the next value belongs to, as far as something hangs on it.
void ObjectSplitter::note_key(std::string_view text) {
  const auto depth = object_depth();
  if (depth == 1) {
    items_key_ = !in_list_ && text == "items";
    metadata_key_ = text == "metadata";
  } else if (depth == 2 && metadata_key_) {
    annotations_key_ = text == "annotations";
    skip_value_ = text == "managedFields";
  } else if (depth == 3 && metadata_key_ && annotations_key_) {
    skip_value_ = text == kLastApplied;
  }
}

void ObjectSplitter::track(EventKind kind) {
  if (closes(kind)) {
    frames_.pop_back();
  }
  if (opens(kind)) {
    frames_.push_back({kind == EventKind::kMapStart, kind == EventKind::kMapStart});
  } else if (!frames_.empty() && frames_.back().map) {
    frames_.back().key_next = !frames_.back().key_next;
  }
}

/// Leaves out a value nobody reads. @return whether the event was part of one.
bool ObjectSplitter::skipped(EventKind kind) {
  if (skip_depth_ > 0) {
    skip_depth_ += opens(kind) ? 1 : 0;
    skip_depth_ -= closes(kind) ? 1 : 0;
    return true;
  }
  if (!skip_value_) {
    return false;
  }
  skip_value_ = false;
  skip_depth_ = opens(kind) ? 1 : 0;
  current().remove_last();  // the key
  frames_.back().key_next = true;
  return true;
}

/// Enters the list of objects, steps to its next one, or leaves it.
/// @return whether the event is thereby done.
bool ObjectSplitter::list_step(EventKind kind, std::uint32_t line) {
  if (kind == EventKind::kSeqStart && frames_.size() == 1 && items_key_ && !in_list_) {
    in_list_ = had_list_ = true;
    root_.add(EventKind::kNull, line);  // the items are not kept
    frames_.push_back({});
    return true;
  }
  if (!in_list_ || frames_.size() != 2) {
    return false;
  }
  if (kind == EventKind::kSeqEnd) {
    in_list_ = items_key_ = false;
    frames_.pop_back();
    frames_.back().key_next = true;
    return true;
  }
  if (kind != EventKind::kMapStart) {
    throw SyntaxError{line, "items must be Kubernetes objects"};
  }
  item_.clear();
  return false;
}

void ObjectSplitter::on_event(EventKind kind, std::uint32_t line, bool quoted,
                              std::string_view text) {
  if (skipped(kind)) {
    return;
  }
  if (frames_.empty()) {
    check_root(kind, line);
  }
  if (is_key() && !closes(kind)) {
    if (kind != EventKind::kScalar) {
      throw SyntaxError{line, "a key must be text"};
    }
    note_key(text);
  }
  if (list_step(kind, line)) {
    return;
  }
  current().add(kind, line, quoted, text);
  track(kind);
  if (in_list_ && frames_.size() == 2) {
    on_object_(item_);
  } else if (frames_.empty()) {
    end_document(line);
  }
}

void ObjectSplitter::end_document(std::uint32_t line) {
  if (root_.at(0).kind == EventKind::kNull) {
    return;  // an empty document
  }
  if (!had_list_) {
    on_object_(root_);
  } else if (!root_.scalar_of(0, "kind").ends_with("List")) {
    throw SyntaxError{line, "an object with items must be of kind List"};
  }
}

}  // namespace sluice::codec
