#pragma once

#include <string_view>

namespace sluice::codec {

/// Whether Kubernetes has a field `key` in the object that message type `message` mirrors and no
/// proxy reads it: not worth a warning. Types whose other fields are too many to list (Node's) are
/// wholly tolerant.
[[nodiscard]] bool is_ignored_field(std::string_view message, std::string_view key);

}  // namespace sluice::codec
