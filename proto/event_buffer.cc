#include "proto/event_buffer.h"

#include <charconv>

namespace sluice::codec {
namespace {

/// Takes the next step off `path`: a key, or an index in brackets. @return empty at the end.
std::string_view next_step(std::string_view& path, bool& bracket) {
  if (!path.empty() && path.front() == '.') {
    path.remove_prefix(1);
  }
  bracket = !path.empty() && path.front() == '[';
  const auto end = bracket ? path.find(']') : path.find_first_of(".[");
  const auto step =
      path.substr(bracket ? 1 : 0, end == path.npos ? path.npos : end - (bracket ? 1 : 0));
  path = end == path.npos ? std::string_view{} : path.substr(end + (bracket ? 1 : 0));
  return step;
}

}  // namespace

std::size_t EventBuffer::behind(std::size_t i) const {
  int depth = 0;
  do {
    const auto kind = events_[i++].kind;
    depth += kind == EventKind::kMapStart || kind == EventKind::kSeqStart ? 1 : 0;
    depth -= kind == EventKind::kMapEnd || kind == EventKind::kSeqEnd ? 1 : 0;
  } while (depth > 0 && i < events_.size());
  return i;
}

std::size_t EventBuffer::value_of(std::size_t map, std::string_view key) const {
  if (map >= events_.size() || events_[map].kind != EventKind::kMapStart) {
    return 0;
  }
  for (std::size_t i = map + 1; i + 1 < events_.size() && events_[i].kind != EventKind::kMapEnd;
       i = behind(i + 1)) {
    if (text(i) == key) {
      return i + 1;
    }
  }
  return 0;
}

std::string_view EventBuffer::scalar_of(std::size_t map, std::string_view key) const {
  const auto i = value_of(map, key);
  return i != 0 && events_[i].kind == EventKind::kScalar ? text(i) : std::string_view{};
}

std::size_t EventBuffer::find(std::string_view path) const {
  std::size_t at = 0;
  while (!path.empty()) {
    bool bracket = false;
    const auto step = next_step(path, bracket);
    std::size_t next = 0;
    if (events_[at].kind == EventKind::kMapStart) {
      next = value_of(at, step);
    } else if (events_[at].kind == EventKind::kSeqStart && bracket) {
      std::size_t index = 0;
      std::from_chars(step.data(), step.data() + step.size(), index);
      next = at + 1;
      while (index-- > 0 && events_[next].kind != EventKind::kSeqEnd) {
        next = behind(next);
      }
    }
    if (next == 0) {
      return at;
    }
    at = next;
  }
  return at;
}

}  // namespace sluice::codec
