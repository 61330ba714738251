#pragma once

#include <cstdint>
#include <istream>
#include <string>
#include <string_view>
#include <vector>

#include "sluice/v1/cluster.pb.h"
#include "sluice/v1/objects.pb.h"

namespace sluice::codec {

/// Something wrong in a text. Printed: "file:line: object: field: message".
struct Problem {
  std::string file;
  std::uint32_t line = 0;  ///< from 1; 0: unknown
  std::string object;      ///< may be empty
  std::string field;       ///< may be empty
  std::string message;
};
[[nodiscard]] std::string to_string(const Problem& problem);

struct ReadOptions {
  std::string file = "-";                     ///< for messages
  std::string default_namespace = "default";  ///< for objects that name none
  bool skip_other_kinds = false;              ///< kinds that are not ours: warn instead of refuse
  /// Only kind, namespace and name matter (delete -f).
  bool names_only = false;
  std::size_t max_problems = 20;  ///< errors after which reading ends
};

struct ReadResult {
  v1::Objects objects;
  std::vector<v1::ObjectRef> refs;  ///< every object, in the order of the text
  std::vector<Problem> errors;      ///< not empty: do not use the objects
  std::vector<Problem> warnings;
};

/// Reads Services, EndpointSlices, Nodes and ServiceCIDRs from YAML or JSON: one or many documents,
/// each an object or a List. Each object is also checked as the server will check it, so that an
/// error names file, line and field. Memory: the result and one object. Never throws.
[[nodiscard]] ReadResult read_objects(std::istream& in, const ReadOptions& options);

}  // namespace sluice::codec
