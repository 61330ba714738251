#include "proto/object_reader.h"

#include <map>
#include <optional>
#include <set>
#include <tuple>

#include "proto/codec.h"
#include "proto/message_reader.h"
#include "proto/object_splitter.h"
#include "proto/text_reader.h"

namespace sluice::codec {
namespace {

/// Thrown to end the reading after too many errors.
struct TooManyProblems {};

bool is_core(std::string_view api) {
  return api == "v1";
}

/// The kind when it is one of ours in a version we read.
std::optional<std::string_view> our_kind(std::string_view api, std::string_view kind) {
  const bool ours = ((kind == "Service" || kind == "Node") && is_core(api)) ||
                    (kind == "EndpointSlice" && api == "discovery.k8s.io/v1") ||
                    (kind == "ServiceCIDR" &&
                     (api == "networking.k8s.io/v1" || api == "networking.k8s.io/v1beta1"));
  return ours ? std::optional(kind) : std::nullopt;
}

class Reader {
 public:
  Reader(const ReadOptions& options, ReadResult& result) : options_(options), result_(result) {}

  void object(const EventBuffer& events) {
    const auto api = events.scalar_of(0, "apiVersion");
    const auto kind = events.scalar_of(0, "kind");
    if (kind == "List" && is_core(api)) {
      return;  // items: null
    }
    if (api.empty() || kind.empty()) {
      error(events.at(0).line, "", kind.empty() ? "kind" : "apiVersion",
            "is missing: this is no Kubernetes object");
      return;
    }
    const auto known = our_kind(api, kind);
    if (!known) {
      other_kind(events, api, kind);
    } else if (options_.names_only) {
      name_only(events, *known);
    } else if (*known == "Service") {
      read<v1::Service>(events, "service", *known, true, *result_.objects.mutable_services());
    } else if (*known == "EndpointSlice") {
      read<v1::EndpointSlice>(events, "endpointslice", *known, true,
                              *result_.objects.mutable_endpoint_slices());
    } else if (*known == "Node") {
      read<v1::NodeObject>(events, "node", *known, false, *result_.objects.mutable_nodes());
    } else {
      read<v1::ServiceCIDR>(events, "servicecidr", *known, false,
                            *result_.objects.mutable_service_cidrs());
    }
  }

  void error(std::uint32_t line, std::string object, std::string field, std::string message) {
    result_.errors.push_back(
        {options_.file, line, std::move(object), std::move(field), std::move(message)});
    if (result_.errors.size() >= options_.max_problems) {
      throw TooManyProblems{};
    }
  }

 private:
  /// "service ns/name" as the text has it, for messages before the object is read.
  static std::string name_in(const EventBuffer& events, std::string_view kind) {
    const auto meta = events.value_of(0, "metadata");
    v1::ObjectMeta names;
    if (meta != 0) {
      names.set_name(std::string(events.scalar_of(meta, "name")));
      names.set_namespace_(std::string(events.scalar_of(meta, "namespace")));
    }
    return object_text(kind, names);
  }

  void other_kind(const EventBuffer& events, std::string_view api, std::string_view kind) {
    const auto line = events.at(0).line;
    const auto what = std::string(api) + " " + std::string(kind);
    if (options_.skip_other_kinds) {
      result_.warnings.push_back({options_.file, line, name_in(events, what), "", "skipped"});
      return;
    }
    error(line, name_in(events, what), "",
          "a service proxy takes v1 Service, discovery.k8s.io/v1 EndpointSlice, v1 Node and "
          "networking.k8s.io/v1 ServiceCIDR only");
  }

  void name_only(const EventBuffer& events, std::string_view kind) {
    const auto meta = events.value_of(0, "metadata");
    v1::ObjectRef ref;
    ref.set_kind(std::string(kind));
    ref.set_name(meta == 0 ? "" : std::string(events.scalar_of(meta, "name")));
    if (kind == "Service" || kind == "EndpointSlice") {
      const auto ns = meta == 0 ? std::string_view{} : events.scalar_of(meta, "namespace");
      ref.set_namespace_(ns.empty() ? options_.default_namespace : std::string(ns));
    }
    if (ref.name().empty()) {
      error(events.at(0).line, name_in(events, kind), "metadata.name", "is missing");
      return;
    }
    result_.refs.push_back(std::move(ref));
  }

  template <class Message, class List>
  void read(const EventBuffer& events, std::string_view word, std::string_view kind,
            bool namespaced, List& list) {
    auto& message = *list.Add();
    const auto errors_before = result_.errors.size();
    MessageReader reader(events, [&](MessageReader::Severity severity, std::uint32_t line,
                                     const std::string& field, const std::string& text) {
      if (severity == MessageReader::Severity::kError) {
        error(line, name_in(events, word), field, text);
      } else {
        result_.warnings.push_back({options_.file, line, name_in(events, word), field, text});
      }
    });
    reader.read(message);
    auto& meta = *message.mutable_metadata();
    if (namespaced && meta.namespace_().empty()) {
      meta.set_namespace_(options_.default_namespace);
    }
    if (result_.errors.size() == errors_before) {
      check(events, message);
    }
    note(events, word, kind, meta);
  }

  /// What the server would say, with the line.
  template <class Message>
  void check(const EventBuffer& events, const Message& message) {
    std::vector<FieldError> found;
    (void)decode(message, found);
    for (auto& one : found) {
      const auto line = events.at(events.find(one.field)).line;
      error(line, std::move(one.object), std::move(one.field), std::move(one.message));
    }
  }

  void note(const EventBuffer& events, std::string_view word, std::string_view kind,
            const v1::ObjectMeta& meta) {
    const auto line = events.at(0).line;
    const auto [it, fresh] = first_line_.try_emplace(
        std::make_tuple(std::string(kind), meta.namespace_(), meta.name()), line);
    if (!fresh) {
      error(line, object_text(word, meta), "",
            "appears twice in this text, first at line " + std::to_string(it->second));
    }
    v1::ObjectRef ref;
    ref.set_kind(std::string(kind));
    ref.set_namespace_(meta.namespace_());
    ref.set_name(meta.name());
    result_.refs.push_back(std::move(ref));
  }

  const ReadOptions& options_;
  ReadResult& result_;
  std::map<std::tuple<std::string, std::string, std::string>, std::uint32_t> first_line_;
};

}  // namespace

std::string to_string(const Problem& problem) {
  std::string text = problem.file + ":";
  if (problem.line > 0) {
    text += std::to_string(problem.line) + ":";
  }
  for (const auto* part : {&problem.object, &problem.field}) {
    if (!part->empty()) {
      text += " " + *part + ":";
    }
  }
  return text + " " + problem.message;
}

ReadResult read_objects(std::istream& in, const ReadOptions& options) {
  ReadResult result;
  Reader reader(options, result);
  ObjectSplitter splitter([&](const EventBuffer& events) { reader.object(events); });
  try {
    read_text(in, splitter);
    if (in.bad()) {
      reader.error(0, "", "", "cannot be read");
    } else if (result.refs.empty() && result.errors.empty() && result.warnings.empty()) {
      reader.error(0, "", "", "no objects found");
    }
  } catch (const SyntaxError& error) {
    result.errors.push_back({options.file, error.line, "", "", error.message});
  } catch (const TooManyProblems&) {
    result.errors.push_back({options.file, 0, "", "", "too many errors, stopped reading"});
  } catch (const std::exception& error) {
    result.errors.push_back({options.file, 0, "", "", error.what()});
  }
  return result;
}

}  // namespace sluice::codec
