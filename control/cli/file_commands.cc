// apply, replace, delete: what changes the node's state.
#include <filesystem>
#include <fstream>

#include "control/cli/commands.h"
#include "proto/object_reader.h"

namespace sluice::cli {
namespace {

constexpr std::size_t kPageBytes = 256u << 10;
constexpr int kMaxRaces = 3;

struct Input {
  v1::Objects objects;
  std::vector<v1::ObjectRef> refs;
};

Failure input_failure(const std::string& message) {
  return {Exit::kRefused, "INPUT", message, {}};
}

/// Reads every file; prints all errors. @return false: there were some.
bool read_files(const FileOptions& options, bool names_only, std::istream& in, const Output& output,
                Input& input) {
  std::vector<std::string> errors;
  for (const auto& file : options.files) {
    codec::ReadOptions read;
    read.file = file == "-" ? "stdin" : file;
    read.default_namespace = options.ns;
    read.skip_other_kinds = options.skip_other_kinds;
    read.names_only = names_only;
    std::ifstream stream;
    if (file != "-") {
      stream.open(file);
      std::error_code unknown;
      const bool folder = std::filesystem::is_directory(file, unknown);
      if (!stream || folder) {
        errors.push_back(file + (folder ? ": is a directory" : ": cannot be opened"));
        continue;
      }
    }
    auto result = codec::read_objects(file == "-" ? in : stream, read);
    for (const auto& warning : result.warnings) {
      output.warn(codec::to_string(warning));
    }
    for (const auto& error : result.errors) {
      errors.push_back(codec::to_string(error));
    }
    input.objects.MergeFrom(result.objects);
    input.refs.insert(input.refs.end(), result.refs.begin(), result.refs.end());
  }
  if (!output.json) {
    for (const auto& error : errors) {
      output.err << "sluicectl: " << error << "\n";
    }
  } else if (!errors.empty()) {
    std::string all;
    for (const auto& error : errors) {
      all += (all.empty() ? "" : "; ") + error;
    }
    (void)output.fail(input_failure(all));
  }
  return errors.empty();
}

std::string counted(const v1::Objects& objects) {
  std::string text;
  const auto add = [&](int count, const std::string& word) {
    if (count > 0) {
      text +=
          (text.empty() ? "" : ", ") + std::to_string(count) + " " + word + (count == 1 ? "" : "s");
    }
  };
  add(objects.services_size(), "service");
  add(objects.endpoint_slices_size(), "endpointslice");
  add(objects.nodes_size(), "node");
  add(objects.service_cidrs_size(), "servicecidr");
  return text.empty() ? "nothing" : text;
}

/// Says what became of a change.
Exit report(const v1::Outcome& outcome, const std::string& what, bool waited,
            const Output& output) {
  const bool late = waited && !outcome.applied();
  if (output.json) {
    output.print(outcome);
    return late ? Exit::kNotInEffect : Exit::kOk;
  }
  for (const auto& warning : outcome.warnings()) {
    output.warn(warning.object() + (warning.object().empty() ? "" : ": ") +
                (warning.field().empty() ? "" : warning.field() + ": ") + warning.message());
  }
  for (const auto& ref : outcome.not_found()) {
    output.warn(ref.kind() + " " + (ref.namespace_().empty() ? "" : ref.namespace_() + "/") +
                ref.name() + " did not exist");
  }
  output.out << what << ": " << (outcome.changed() ? "" : "unchanged, ") << "version "
             << outcome.version() << (outcome.applied() ? ", in effect" : "") << "\n";
  if (late) {
    for (const auto& error : outcome.sink_errors()) {
      output.err << "sluicectl: " << error << "\n";
    }
    output.err << "sluicectl: accepted, but not in effect in time; see sluicectl status\n";
  }
  return late ? Exit::kNotInEffect : Exit::kOk;
}

/// Hands the objects on in pages of bounded size.
template <class Send>
bool send_pages(v1::Objects& objects, Send send) {
  v1::Objects page;
  std::size_t bytes = 0;
  const auto flush = [&] {
    bytes = 0;
    const bool went = send(page);
    page.Clear();
    return went;
  };
  const auto move_all = [&](auto& from, auto* to) {
    for (auto& message : from) {
      bytes += message.ByteSizeLong();
      to->Add()->Swap(&message);
      if (bytes >= kPageBytes && !flush()) {
        return false;
      }
    }
    return true;
  };
  return move_all(*objects.mutable_services(), page.mutable_services()) &&
         move_all(*objects.mutable_endpoint_slices(), page.mutable_endpoint_slices()) &&
         move_all(*objects.mutable_nodes(), page.mutable_nodes()) &&
         move_all(*objects.mutable_service_cidrs(), page.mutable_service_cidrs()) && flush();
}

std::uint32_t wait_ms(const FileOptions& options) {
  return static_cast<std::uint32_t>(options.wait.count());
}

std::optional<Failure> send_snapshot(Client& client, v1::Objects objects,
                                     const FileOptions& options,
                                     std::optional<std::uint64_t> if_version,
                                     v1::Outcome& outcome) {
  Call call(client, options.wait);
  v1::ReplaceSnapshotResponse response;
  auto stream = client.cluster().ReplaceSnapshot(&call.context(), &response);
  v1::ReplaceSnapshotRequest part;
  part.mutable_header()->set_wait_applied_ms(wait_ms(options));
  if (if_version) {
    part.mutable_header()->set_if_version(*if_version);
  }
  const auto count =
      static_cast<std::uint64_t>(objects.services_size() + objects.endpoint_slices_size() +
                                 objects.nodes_size() + objects.service_cidrs_size());
  bool going = stream->Write(part);
  going = going && send_pages(objects, [&](v1::Objects& page) {
            part.mutable_objects()->Swap(&page);
            const bool went = stream->Write(part);
            page.Clear();
            call.progress();
            return went;
          });
  part.mutable_commit()->set_objects(count);
  if (going && stream->Write(part)) {
    stream->WritesDone();
  }
  const auto status = stream->Finish();
  outcome = response.outcome();
  return call.failure(status);
}

std::optional<Failure> send_update(Client& client, const v1::UpdateRequest& request,
                                   const FileOptions& options, v1::Outcome& outcome) {
  Call call(client, options.wait);
  v1::UpdateResponse response;
  const auto status = client.cluster().Update(&call.context(), request, &response);
  outcome = response.outcome();
  return call.failure(status);
}

bool is(const std::optional<Failure>& failure, v1::Refusal::Reason reason) {
  return failure && failure->refusal.reason() == reason;
}

}  // namespace

Exit apply(Client& client, const Output& output, const FileOptions& options, std::istream& in) {
  Input input;
  if (!read_files(options, false, in, output, input)) {
    return Exit::kRefused;
  }
  if (auto failure = client.unreachable()) {
    return output.fail(*failure);
  }
  v1::UpdateRequest request;
  *request.mutable_upserts() = std::move(input.objects);
  request.set_wait_applied_ms(wait_ms(options));
  v1::Outcome outcome;
  std::optional<Failure> failure;
  // A node without a snapshot takes no update: the file then is the first snapshot, unless another
  // one comes in between.
  for (int i = 0; i < kMaxRaces; ++i) {
    failure = send_update(client, request, options, outcome);
    if (!is(failure, v1::Refusal::NO_SNAPSHOT)) {
      break;
    }
    failure = send_snapshot(client, request.upserts(), options, 0, outcome);
    if (!is(failure, v1::Refusal::OTHER_VERSION)) {
      break;
    }
  }
  if (failure) {
    return output.fail(*failure);
  }
  return report(outcome, "applied " + counted(request.upserts()), options.wait.count() > 0, output);
}

Exit replace(Client& client, const Output& output, const FileOptions& options, std::istream& in) {
  Input input;
  if (!read_files(options, false, in, output, input)) {
    return Exit::kRefused;
  }
  if (auto failure = client.unreachable()) {
    return output.fail(*failure);
  }
  const auto what = "replaced by " + counted(input.objects);
  v1::Outcome outcome;
  if (auto failure =
          send_snapshot(client, std::move(input.objects), options, std::nullopt, outcome)) {
    return output.fail(*failure);
  }
  return report(outcome, what, options.wait.count() > 0, output);
}

Exit remove(Client& client, const Output& output, const FileOptions& options,
            const std::string& kind, const std::vector<std::string>& names, std::istream& in) {
  Input input;
  if (!options.files.empty() && !read_files(options, true, in, output, input)) {
    return Exit::kRefused;
  }
  for (const auto& name : names) {
    NameFilter filter{options.ns, name};
    split_name(filter);
    v1::ObjectRef ref;
    ref.set_kind(kind);
    ref.set_name(filter.name);
    if (kind == "Service" || kind == "EndpointSlice") {
      ref.set_namespace_(filter.ns);
    }
    input.refs.push_back(std::move(ref));
  }
  if (auto failure = client.unreachable()) {
    return output.fail(*failure);
  }
  v1::UpdateRequest request;
  request.set_wait_applied_ms(wait_ms(options));
  request.mutable_deletes()->Assign(input.refs.begin(), input.refs.end());
  v1::Outcome outcome;
  if (auto failure = send_update(client, request, options, outcome)) {
    return output.fail(*failure);
  }
  const int gone = request.deletes_size() - outcome.not_found_size();
  const Exit exit =
      report(outcome, "deleted " + std::to_string(gone) + (gone == 1 ? " object" : " objects"),
             options.wait.count() > 0, output);
  return exit == Exit::kOk && outcome.not_found_size() > 0 ? Exit::kRefused : exit;
}

}  // namespace sluice::cli
