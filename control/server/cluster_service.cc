#include "control/server/cluster_service.h"

#include <algorithm>
#include <set>

#include "control/server/object_pages.h"
#include "control/server/snapshot_decoder.h"

namespace sluice::server {
namespace {

constexpr std::size_t kMaxErrors = 20;  // named in one refusal
constexpr std::uint32_t kMaxWaitMs = 60000;
constexpr const char* kRefusalKey = "sluice-error-bin";

void fill(const codec::FieldError& from, v1::ObjectError& to) {
  to.set_object(from.object);
  to.set_field(from.field);
  to.set_message(from.message);
}

/// Tolerated faults skip no object; compile warns of them.
void fill_skipped(const std::vector<codec::FieldError>& errors, v1::Outcome& outcome) {
  for (const auto& error : errors) {
    if (!error.tolerated) {
      fill(error, *outcome.add_skipped());
    }
  }
}

void fill_not_found(const model::Delta& deletes, v1::Outcome& outcome) {
  const auto add = [&](const char* kind, const std::string& ns, const std::string& name) {
    auto& ref = *outcome.add_not_found();
    ref.set_kind(kind);
    ref.set_namespace_(ns);
    ref.set_name(name);
  };
  for (const auto& name : deletes.deleted_services) {
    add("Service", name.ns, name.name);
  }
  for (const auto& name : deletes.deleted_slices) {
    add("EndpointSlice", name.ns, name.name);
  }
  for (const auto& name : deletes.deleted_nodes) {
    add("Node", "", name);
  }
  for (const auto& name : deletes.deleted_service_cidrs) {
    add("ServiceCIDR", "", name);
  }
}

grpc::Status refuse(grpc::ServerContext& context, grpc::StatusCode code, const std::string& text,
                    const v1::Refusal& refusal) {
  context.AddTrailingMetadata(kRefusalKey, refusal.SerializeAsString());
  return {code, text};
}

/// INVALID_ARGUMENT with the first error in the text and up to kMaxErrors in the details.
grpc::Status refuse_invalid(grpc::ServerContext& context,
                            const std::vector<codec::FieldError>& errors) {
  v1::Refusal refusal;
  refusal.set_reason(v1::Refusal::INVALID);
  for (std::size_t i = 0; i < std::min(errors.size(), kMaxErrors); ++i) {
    fill(errors[i], *refusal.add_errors());
  }
  std::string text = codec::to_string(errors.front());
  if (errors.size() > 1) {
    text += " (and " + std::to_string(errors.size() - 1) + " more)";
  }
  return refuse(context, grpc::StatusCode::INVALID_ARGUMENT, text, refusal);
}

grpc::Status refuse_by_publisher(grpc::ServerContext& context, const publish::Refused& refused) {
  v1::Refusal refusal;
  refusal.set_current_version(refused.version);
  switch (refused.why) {
    case publish::Refused::Why::kNoSnapshot:
      refusal.set_reason(v1::Refusal::NO_SNAPSHOT);
      return refuse(context, grpc::StatusCode::FAILED_PRECONDITION,
                    "no snapshot yet: send a full one first", refusal);
    case publish::Refused::Why::kOtherBase:
      refusal.set_reason(v1::Refusal::OTHER_VERSION);
      return refuse(context, grpc::StatusCode::FAILED_PRECONDITION,
                    "the state is at version " + std::to_string(refused.version) +
                        ", the request is against another",
                    refusal);
    case publish::Refused::Why::kFailed:
      return {grpc::StatusCode::INTERNAL, refused.message};
    case publish::Refused::Why::kStopped:
      break;
  }
  return {grpc::StatusCode::UNAVAILABLE, "the daemon is stopping"};
}

}  // namespace

/// A snapshot on its way in.
struct ClusterService::Incoming {
  v1::SnapshotHeader header;
  bool has_header = false;
  bool committed = false;
  std::size_t bytes = 0;
  std::uint64_t objects = 0;
  SnapshotDecoder pages;
  [[nodiscard]] bool lenient() const { return header.strictness() == v1::STRICTNESS_LENIENT; }
};

grpc::Status ClusterService::read_snapshot(grpc::ServerContext& context,
                                           grpc::ServerReader<v1::ReplaceSnapshotRequest>& reader,
                                           Incoming& in) {
  StreamGuard::Watched call(guard_, context);
  while (!in.committed) {
    v1::ReplaceSnapshotRequest* const part = in.pages.fresh();
    if (!call.step([&] { return reader.Read(part); })) {
      return {grpc::StatusCode::ABORTED, "the stream ended without a commit; nothing was changed"};
    }
    if (auto taken = take_part(context, *part, in); !taken.ok()) {
      return taken;
    }
  }
  in.pages.finish();
  return grpc::Status::OK;
}

grpc::Status ClusterService::take_part(grpc::ServerContext& context,
                                       const v1::ReplaceSnapshotRequest& part, Incoming& in) {
  const auto bad = [](const std::string& text) {
    return grpc::Status(grpc::StatusCode::INVALID_ARGUMENT, text);
  };
  if (part.has_header() == in.has_header) {
    return bad(in.has_header ? "the header comes twice" : "the first message must be the header");
  }
  if (part.has_header()) {
    in.header = part.header();
    in.has_header = true;
    if (!in.lenient()) {
      in.pages.limit_errors(kMaxErrors);
    }
    return grpc::Status::OK;
  }
  if (part.has_commit()) {
    if (part.commit().objects() != in.objects) {
      return bad("commit of " + std::to_string(part.commit().objects()) + " objects, but " +
                 std::to_string(in.objects) + " were received");
    }
    in.committed = true;
    return grpc::Status::OK;
  }
  return take_objects(context, part, in);
}

grpc::Status ClusterService::take_objects(grpc::ServerContext& context,
                                          const v1::ReplaceSnapshotRequest& part, Incoming& in) {
  const std::size_t bytes = part.ByteSizeLong();
  in.bytes += bytes;
  if (in.bytes > options_.max_snapshot_bytes) {
    return {grpc::StatusCode::RESOURCE_EXHAUSTED,
            "the snapshot has more than " + std::to_string(options_.max_snapshot_bytes) +
                " bytes, the limit of this node; it had " + std::to_string(in.bytes) +
                " when reading stopped"};
  }
  const auto& page = part.objects();
  in.objects += static_cast<std::uint64_t>(page.services_size() + page.endpoint_slices_size() +
                                           page.nodes_size() + page.service_cidrs_size());
  in.pages.take(bytes);
  if (in.pages.enough_errors()) {
    in.pages.finish();
    return refuse_invalid(context, in.pages.errors());
  }
  return grpc::Status::OK;
}

/// Lenient: a bad object keeps its former state.
void ClusterService::keep_former_of_skipped(Incoming& in) const {
  const auto& errors = in.pages.errors();
  if (errors.empty()) {
    return;
  }
  const auto former = publisher_.state();
  if (former == nullptr) {
    return;
  }
  std::set<std::string> skipped;
  for (const auto& error : errors) {
    skipped.insert(error.object);
  }
  const auto keep = [&](const auto& from, auto& to, const auto& text) {
    for (const auto& [name, object] : from) {
      if (skipped.contains(text(name))) {
        to.try_emplace(name, object);
      }
    }
  };
  model::ClusterState& state = in.pages.state();
  keep(former->services, state.services, [](const auto& name) { return "service " + name.text(); });
  keep(former->slices, state.slices,
       [](const auto& name) { return "endpointslice " + name.text(); });
  keep(former->nodes, state.nodes, [](const auto& name) { return "node " + name; });
  keep(former->service_cidrs, state.service_cidrs,
       [](const auto& name) { return "servicecidr " + name; });
}

grpc::Status ClusterService::finish(grpc::ServerContext& context,
                                    const tl::expected<publish::Accepted, publish::Refused>& result,
                                    std::uint32_t wait_ms, v1::Outcome& outcome) {
  if (!result) {
    return refuse_by_publisher(context, result.error());
  }
  outcome.set_version(result->version);
  outcome.set_changed(result->changed);
  for (const auto& line : result->report) {
    fill({line.object, line.field, line.reason}, *outcome.add_warnings());
  }
  const std::chrono::milliseconds wait(std::min(wait_ms, kMaxWaitMs));
  outcome.set_applied(publisher_.wait_applied(result->version, wait,
                                              [&] { return stopping_ || context.IsCancelled(); }));
  if (!outcome.applied()) {
    for (const auto& sink : publisher_.status().sinks) {
      if (sink.applied_version < result->version && !sink.last_error.empty()) {
        outcome.add_sink_errors(sink.name + ": " + sink.last_error);
      }
    }
  }
  return grpc::Status::OK;
}

grpc::Status ClusterService::ReplaceSnapshot(grpc::ServerContext* context,
                                             grpc::ServerReader<v1::ReplaceSnapshotRequest>* reader,
                                             v1::ReplaceSnapshotResponse* response) {
  Incoming in;
  if (auto read = read_snapshot(*context, *reader, in); !read.ok()) {
    return read;
  }
  if (!in.pages.errors().empty() && !in.lenient()) {
    return refuse_invalid(*context, in.pages.errors());
  }
  keep_former_of_skipped(in);
  const auto if_version =
      in.header.has_if_version() ? std::optional(in.header.if_version()) : std::nullopt;
  const auto result = publisher_.replace(std::move(in.pages.state()), if_version);
  auto& outcome = *response->mutable_outcome();
  fill_skipped(in.pages.errors(), outcome);
  return finish(*context, result, in.header.wait_applied_ms(), outcome);
}

grpc::Status ClusterService::Update(grpc::ServerContext* context, const v1::UpdateRequest* request,
                                    v1::UpdateResponse* response) {
  model::Delta delta;
  std::vector<codec::FieldError> errors;
  add_page(request->upserts(), delta, errors);
  for (const auto& ref : request->deletes()) {
    if (const auto wrong = add_delete(ref, delta); !wrong.empty()) {
      errors.push_back({"delete of " + ref.kind() + " " + ref.name(), "", wrong});
    }
  }
  if (!errors.empty() && request->strictness() != v1::STRICTNESS_LENIENT) {
    return refuse_invalid(*context, errors);
  }
  auto& outcome = *response->mutable_outcome();
  fill_skipped(errors, outcome);
  const auto base =
      request->has_base_version() ? std::optional(request->base_version()) : std::nullopt;
  const auto result = publisher_.update(std::move(delta), base);
  if (result) {
    fill_not_found(result->not_found, outcome);
  }
  return finish(*context, result, request->wait_applied_ms(), outcome);
}

grpc::Status ClusterService::GetSnapshot(grpc::ServerContext* context,
                                         const v1::GetSnapshotRequest* request,
                                         grpc::ServerWriter<v1::GetSnapshotResponse>* writer) {
  const ObjectFilter filter{
      {request->kinds().begin(), request->kinds().end()}, request->namespace_(), request->name()};
  const auto state = publisher_.state();
  StreamGuard::Watched call(guard_, *context);
  v1::GetSnapshotResponse response;
  response.mutable_header()->set_version(state == nullptr ? 0 : state->version);
  if (!call.step([&] { return writer->Write(response); }) || state == nullptr) {
    return grpc::Status::OK;
  }
  for_each_page(*state, filter, [&](const v1::Objects& page) {
    *response.mutable_objects() = page;
    return !stopping_ && call.step([&] { return writer->Write(response); });
  });
  return grpc::Status::OK;
}

}  // namespace sluice::server
