#pragma once

#include <istream>
#include <optional>
#include <string>
#include <vector>

#include "control/cli/client.h"
#include "control/cli/output.h"

namespace sluice::cli {

/// What apply, replace and delete have in common.
struct FileOptions {
  std::vector<std::string> files;  ///< "-": standard input
  std::string ns = "default";      ///< for objects that name no namespace
  bool skip_other_kinds = false;
  std::chrono::milliseconds wait{5000};  ///< for the change to be in effect; 0: do not wait
};

Exit apply(Client& client, const Output& output, const FileOptions& options, std::istream& in);
Exit replace(Client& client, const Output& output, const FileOptions& options, std::istream& in);
/// @param kind, names: `delete service ns/name ...`; or options.files.
Exit remove(Client& client, const Output& output, const FileOptions& options,
            const std::string& kind, const std::vector<std::string>& names, std::istream& in);

struct NameFilter {
  std::string ns;    ///< empty: all
  std::string name;  ///< "name" or "ns/name"; empty: all
};
/// `no such service "ns/name"` when nothing of that name is there; kind as kind_of() gives it.
/// @return nullopt: it exists, or the filter names none.
[[nodiscard]] std::optional<Failure> no_such_object(Client& client, const std::string& kind,
                                                    const NameFilter& filter);
Exit get(Client& client, const Output& output, const std::string& kind, NameFilter filter);
Exit services(Client& client, const Output& output, NameFilter filter);
Exit backends(Client& client, const Output& output, NameFilter filter);
Exit connections(Client& client, const Output& output, const v1::ListConnectionsRequest& request);
Exit counters(Client& client, const Output& output, bool all, bool per_worker);
Exit status(Client& client, const Output& output);

/// A flow as the command line says it.
struct FlowWords {
  std::string from;  ///< ADDRESS[:PORT]
  std::string to;    ///< ADDRESS:PORT
  std::string protocol = "tcp";
  std::string interface;
  bool from_host = false;
};
/// One line `[rule-id] text` for each step, the verdict last.
Exit explain(Client& client, const Output& output, const FlowWords& words);

/// The kind a word means (services, service, svc, ...); "" when it means none.
[[nodiscard]] std::string kind_of(const std::string& word);
/// Splits "ns/name".
void split_name(NameFilter& filter);

/// The whole program. @param in, out, err: the standard streams, or a test's.
int run(int argc, const char* const* argv, std::istream& in, std::ostream& out, std::ostream& err);

}  // namespace sluice::cli
