#include "proto/annotations.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <span>

#include "dataplane/core/fwd/text.h"
#include "dataplane/core/net/address.h"
#include "dataplane/core/sched/maglev.h"

namespace sluice::codec {
namespace {

constexpr std::array<std::string_view, 5> kKnown = {
    "scheduler", "scheduler-flags", "forwarding-mode", "weights", "maglev-table-size"};
constexpr std::array<std::string_view, 4> kModes = {"nat", "fullnat", "dr", "ipip"};
constexpr std::int64_t kMaxWeight = 65535;

std::string path_of(std::string_view name) {
  return "metadata.annotations[" + std::string(kAnnotationPrefix) + std::string(name) + "]";
}

std::string list_of(std::span<const std::string_view> words) {
  std::string text;
  for (const auto word : words) {
    text += (text.empty() ? "" : ", ") + std::string(word);
  }
  return text;
}

std::optional<std::int64_t> number(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) {
    return std::nullopt;
  }
  return value;
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\n')) {
    text.remove_prefix(1);
  }
  while (!text.empty() && (text.back() == ' ' || text.back() == '\n')) {
    text.remove_suffix(1);
  }
  return text;
}

/// "10.0.0.1", "10.0.0.1:80", "fd00::1" or "[fd00::1]:80".
bool is_endpoint_key(std::string_view key) {
  if (core::parse_address(key)) {
    return true;
  }
  const auto colon = key.rfind(':');
  if (colon == std::string_view::npos) {
    return false;
  }
  auto host = key.substr(0, colon);
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') {
    host = host.substr(1, host.size() - 2);
  }
  const auto port = number(key.substr(colon + 1));
  return core::parse_address(host) && port && *port >= 1 && *port <= 65535;
}

/// "10.0.0.1=3, [fd00::1]:80=0". @return what is wrong, or "".
std::string read_weights(std::string_view text, std::map<std::string, std::int64_t>& out) {
  while (!text.empty()) {
    const auto comma = text.find(',');
    const auto item = trimmed(text.substr(0, comma));
    text = comma == std::string_view::npos ? std::string_view{} : text.substr(comma + 1);
    const auto equals = item.rfind('=');
    const auto weight =
        equals == std::string_view::npos ? std::nullopt : number(trimmed(item.substr(equals + 1)));
    if (!weight) {
      return "expected address=weight or address:port=weight, got \"" + std::string(item) + "\"";
    }
    if (!out.emplace(trimmed(item.substr(0, equals)), *weight).second) {
      return "\"" + std::string(item.substr(0, equals)) + "\" appears twice";
    }
  }
  return "";
}

/// "mh-port, mh-fallback".
std::vector<std::string> read_list(std::string_view text) {
  std::vector<std::string> out;
  while (!text.empty()) {
    const auto comma = text.find(',');
    out.emplace_back(trimmed(text.substr(0, comma)));
    text = comma == std::string_view::npos ? std::string_view{} : text.substr(comma + 1);
  }
  return out;
}

/// Takes the annotation's value unless the typed field already says something else.
template <class T>
void merge(T& field, const T& empty, const T& value, std::string_view name,
           const std::string& object, std::vector<FieldError>& errors) {
  if (field == empty || field == value) {
    field = value;
    return;
  }
  errors.push_back({object, path_of(name), "contradicts the typed field of the same meaning"});
}

void read_one(model::Service& service, std::string_view name, const std::string& value,
              const std::string& object, std::vector<FieldError>& errors) {
  if (name == "scheduler") {
    merge(service.scheduler, std::string(), value, name, object, errors);
  } else if (name == "scheduler-flags") {
    const std::vector<std::string> flags = read_list(value);
    if (flags.empty()) {
      errors.push_back({object, path_of(name), "is empty"});
      return;
    }
    merge(service.scheduler_flags, {}, flags, name, object, errors);
  } else if (name == "forwarding-mode") {
    merge(service.forwarding_mode, std::string(), value, name, object, errors);
  } else if (name == "weights") {
    std::map<std::string, std::int64_t> weights;
    if (const auto wrong = read_weights(value, weights); !wrong.empty()) {
      errors.push_back({object, path_of(name), wrong});
      return;
    }
    merge(service.weights, {}, weights, name, object, errors);
  } else if (const auto size = number(value)) {
    merge(service.maglev_table_size, {}, size, name, object, errors);
  } else {
    errors.push_back({object, path_of(name), "expected a number, got \"" + value + "\""});
  }
}

/// Where the value came from, for the error.
std::string source_of(const model::Service& service, std::string_view name,
                      std::string_view field) {
  const auto key = std::string(kAnnotationPrefix) + std::string(name);
  return service.annotations.contains(key) ? path_of(name) : "sluice." + std::string(field);
}

void check_flags(const model::Service& service, const std::string& object,
                 std::vector<FieldError>& errors) {
  if (service.scheduler_flags.empty()) {
    return;
  }
  const std::string field = source_of(service, "scheduler-flags", "schedulerFlags");
  for (const std::string& flag : service.scheduler_flags) {
    const auto known =
        std::find_if(core::kSchedulerFlags.begin(), core::kSchedulerFlags.end(),
                     [&](const core::SchedulerFlag& f) { return f.name == flag; });
    if (known == core::kSchedulerFlags.end()) {
      errors.push_back({object, field,
                        "\"" + flag +
                            "\" is not one of mh-port, mh-fallback, sh-port, sh-fallback"});
    } else if (core::name_of(known->scheduler) != service.scheduler) {
      errors.push_back({object, field,
                        "\"" + flag + "\" is for a Service that names the scheduler " +
                            std::string(core::name_of(known->scheduler))});
    }
  }
}

void check_weights(const model::Service& service, const std::string& object,
                   std::vector<FieldError>& errors) {
  if (service.weights.empty()) {
    return;
  }
  const std::string field = source_of(service, "weights", "weights");
  for (const auto& [key, weight] : service.weights) {
    if (!is_endpoint_key(key)) {
      errors.push_back({object, field, "\"" + key + "\" is no address or address:port"});
    }
    if (weight < 0 || weight > kMaxWeight) {
      errors.push_back({object, field, "weight of " + key + " must be 0 to 65535"});
    }
  }
}

}  // namespace

void read_annotations(model::Service& service, const std::string& object,
                      std::vector<FieldError>& errors) {
  const std::string prefix(kAnnotationPrefix);
  for (auto it = service.annotations.lower_bound(prefix);
       it != service.annotations.end() && it->first.starts_with(prefix); ++it) {
    const auto name = std::string_view(it->first).substr(prefix.size());
    if (std::find(kKnown.begin(), kKnown.end(), name) == kKnown.end()) {
      errors.push_back({object, path_of(name), "unknown annotation; known are " + list_of(kKnown)});
      continue;
    }
    read_one(service, name, it->second, object, errors);
  }
}

void refuse_annotations(const std::map<std::string, std::string>& annotations,
                        const std::string& object, std::vector<FieldError>& errors) {
  const std::string prefix(kAnnotationPrefix);
  const auto it = annotations.lower_bound(prefix);
  if (it != annotations.end() && it->first.starts_with(prefix)) {
    errors.push_back({object, path_of(std::string_view(it->first).substr(prefix.size())),
                      "annotations of this prefix belong on a Service"});
  }
}

void check_options(const model::Service& service, const std::string& object,
                   std::vector<FieldError>& errors) {
  if (!service.scheduler.empty() && !core::scheduler_by_name(service.scheduler)) {
    errors.push_back({object, source_of(service, "scheduler", "scheduler"),
                      "\"" + service.scheduler + "\" is not one of " + core::scheduler_names()});
  }
  check_flags(service, object, errors);
  const std::string& mode = service.forwarding_mode;
  if (!mode.empty() && std::find(kModes.begin(), kModes.end(), mode) == kModes.end()) {
    errors.push_back({object, source_of(service, "forwarding-mode", "forwardingMode"),
                      "\"" + mode + "\" is not one of " + list_of(kModes)});
  }
  check_weights(service, object, errors);
  const auto size = service.maglev_table_size;
  const auto& sizes = core::kMaglevSizes;
  if (size && std::find(sizes.begin(), sizes.end(), *size) == sizes.end()) {
    errors.push_back({object, source_of(service, "maglev-table-size", "maglevTableSize"),
                      "must be 1021, 4093, 16381, 65521 or 131071"});
  }
}

}  // namespace sluice::codec
