// Our own knobs: sluice.dev/scheduler, sluice.dev/scheduler-flags, sluice.dev/forwarding-mode,
// sluice.dev/weights, sluice.dev/maglev-table-size (design section 4). A misspelt key of ours or a
// bad value is a fault with its field path.
//
// sluice.dev/weights: "10.0.0.1=3, 10.0.0.2:8080=0, [fd00::1]:80=2, fd00::2=5".
// sluice.dev/scheduler-flags: "mh-port, mh-fallback".
#include "control/compile/annotations.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include "dataplane/core/fwd/text.h"
#include "dataplane/core/sched/maglev.h"
#include "dataplane/core/sched/pick_plan.h"

namespace sluice::compile {
namespace {

constexpr std::string_view kPrefix = "sluice.dev/";
constexpr std::int64_t kMaxWeight = 65535;

std::string_view trimmed(std::string_view text) {
  const auto first = text.find_first_not_of(" \t\r\n");
  return first == std::string_view::npos
             ? std::string_view{}
             : text.substr(first, text.find_last_not_of(" \t\r\n") - first + 1);
}

std::optional<std::int64_t> parse_number(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc{} && end == text.data() + text.size() && !text.empty()
             ? std::optional(value)
             : std::nullopt;
}

/// Canonical form of "ip" or "ip:port"; nullopt: neither.
std::optional<std::string> endpoint_key(std::string_view text) {
  if (const auto address = core::parse_address(text)) {
    return core::to_string(*address);
  }
  const auto colon = text.rfind(':');
  if (colon == std::string_view::npos) {
    return std::nullopt;
  }
  std::string_view host = text.substr(0, colon);
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') {
    host = host.substr(1, host.size() - 2);
  }
  const auto address = core::parse_address(host);
  const auto port = parse_number(text.substr(colon + 1));
  if (!address || !port || *port < 1 || *port > 65535) {
    return std::nullopt;
  }
  return core::to_string(*address, static_cast<std::uint16_t>(*port));
}

/// Reads the knobs of one Service; `good` turns false at the first fault.
class Reader {
 public:
  Reader(const model::Service& service, Reporter& report) : service_(service), report_(report) {}

  std::optional<Extensions> read(core::SchedulerKind default_scheduler) {
    Extensions out;
    out.scheduler = default_scheduler;
    find_annotations();
    read_scheduler(out);
    read_flags(out);
    read_mode(out);
    read_maglev_size(out);
    read_weights(out);
    return good_ ? std::optional(std::move(out)) : std::nullopt;
  }

 private:
  void fault(const std::string& field, const std::string& reason) {
    report_.invalid(field, reason);
    good_ = false;
  }

  static std::string path(std::string_view key) {
    return "metadata.annotations[" + std::string(key) + "]";
  }

  /// Ours, in the order of kKnown.
  enum Knob : std::size_t { kScheduler, kFlags, kMode, kWeights, kMaglevSize, kKnobs };
  static constexpr std::array<std::string_view, kKnobs> kKnown = {
      "sluice.dev/scheduler", "sluice.dev/scheduler-flags", "sluice.dev/forwarding-mode",
      "sluice.dev/weights", "sluice.dev/maglev-table-size"};

  void find_annotations() {
    for (const auto& [key, value] : service_.annotations) {
      if (!key.starts_with(kPrefix)) {
        continue;
      }
      const auto at = std::find(kKnown.begin(), kKnown.end(), key);
      if (at != kKnown.end()) {
        annotations_[static_cast<std::size_t>(at - kKnown.begin())] = &value;
      } else {
        fault(path(key),
              "unknown annotation; known are sluice.dev/scheduler, scheduler-flags, "
              "forwarding-mode, weights, maglev-table-size");
      }
    }
  }

  /// The annotation's value, or the typed field's; different values of both are a fault.
  /// @return {value, field path}, empty value: not given.
  std::pair<std::string, std::string> value_of(Knob knob, const std::string& typed,
                                               const char* typed_path) {
    const std::string* const given = annotations_[knob];
    if (given == nullptr) {
      return typed.empty() ? std::pair<std::string, std::string>{}
                           : std::pair<std::string, std::string>{typed, typed_path};
    }
    if (!typed.empty() && typed != *given) {
      fault(path(kKnown[knob]),
            "'" + *given + "' contradicts " + typed_path + " '" + typed + "'");
    } else if (trimmed(*given).empty()) {
      fault(path(kKnown[knob]), "is empty");
    }
    return {std::string(trimmed(*given)), path(kKnown[knob])};
  }

  void read_scheduler(Extensions& out) {
    const auto [value, field] =
        value_of(kScheduler, service_.scheduler, "spec.scheduler");
    if (!value.empty()) {
      const auto kind = core::scheduler_by_name(value);
      if (!kind) {
        fault(field, "unknown scheduler '" + value + "'; known are " + core::scheduler_names());
        return;
      }
      out.scheduler = *kind;
      scheduler_named_ = true;
    }
  }

  void read_flags(Extensions& out) {
    std::string typed;
    for (const std::string& flag : service_.scheduler_flags) {
      typed += (typed.empty() ? "" : ",") + flag;
    }
    const std::string* const given = annotations_[kFlags];
    if (given == nullptr && typed.empty()) {
      return;
    }
    const std::string field = given != nullptr ? path(kKnown[kFlags]) : "spec.schedulerFlags";
    const std::uint8_t by_type = flags_of(typed, "spec.schedulerFlags", out.scheduler);
    out.scheduler_flags = given != nullptr ? flags_of(*given, field, out.scheduler) : by_type;
    if (given != nullptr && trimmed(*given).empty()) {
      fault(field, "is empty");
    } else if (given != nullptr && !typed.empty() && by_type != out.scheduler_flags) {
      fault(field, "'" + *given + "' contradicts spec.schedulerFlags '" + typed + "'");
    }
  }

  /// A flag belongs to a scheduler the Service itself names: another node's default may differ.
  std::uint8_t flags_of(std::string_view list, const std::string& field,
                        core::SchedulerKind scheduler) {
    std::uint8_t flags = 0;
    for_each_item(list, [&](std::string_view item) {
      const auto flag =
          std::find_if(core::kSchedulerFlags.begin(), core::kSchedulerFlags.end(),
                       [&](const core::SchedulerFlag& f) { return f.name == item; });
      const std::string name = "'" + std::string(item) + "'";
      if (flag == core::kSchedulerFlags.end()) {
        fault(field, "unknown scheduler flag " + name +
                         "; known are mh-port, mh-fallback, sh-port, sh-fallback");
      } else if (!scheduler_named_ || flag->scheduler != scheduler) {
        fault(field, "flag " + name + " is for a Service that names the scheduler " +
                         std::string(core::name_of(flag->scheduler)));
      } else {
        flags |= flag->bit;
      }
    });
    return flags;
  }

  void read_mode(Extensions& out) {
    const auto [value, field] =
        value_of(kMode, service_.forwarding_mode, "spec.forwardingMode");
    if (value.empty()) {
      return;
    }
    const auto mode = mode_by_name(value);
    if (!mode) {
      fault(field, "unknown forwarding mode '" + value + "'; known are nat, fullnat, dr, ipip");
    } else {
      out.mode = *mode;
    }
  }

  void read_maglev_size(Extensions& out) {
    const std::string typed =
        service_.maglev_table_size ? std::to_string(*service_.maglev_table_size) : "";
    const auto [value, field] =
        value_of(kMaglevSize, typed, "spec.maglevTableSize");
    if (value.empty()) {
      return;
    }
    const auto size = parse_number(value);
    const auto& known = core::kMaglevSizes;
    if (!size || std::find(known.begin(), known.end(), *size) == known.end()) {
      fault(field, "'" + value + "' is not 1021, 4093, 16381, 65521 or 131071");
      return;
    }
    out.maglev_size = static_cast<std::uint32_t>(*size);
    if (!core::picks_by_hash(out.scheduler)) {
      report_.warning(field, "has no effect: scheduler " +
                                 std::string(core::name_of(out.scheduler)) + " has no table");
    }
  }

  void read_weights(Extensions& out) {
    for (const auto& [key, weight] : service_.weights) {
      add_weight(out, "spec.weights[" + key + "]", key, weight);
    }
    if (annotations_[kWeights] == nullptr) {
      return;
    }
    for_each_item(*annotations_[kWeights], [&](std::string_view item) {
      const auto equals = item.rfind('=');
      const auto weight = equals == std::string_view::npos
                              ? std::nullopt
                              : parse_number(trimmed(item.substr(equals + 1)));
      if (!weight) {
        fault(path(kKnown[kWeights]), "'" + std::string(item) + "' is not endpoint=weight");
        return;
      }
      add_weight(out, path(kKnown[kWeights]), std::string(trimmed(item.substr(0, equals))),
                 *weight);
    });
  }

  void add_weight(Extensions& out, const std::string& field, const std::string& endpoint,
                  std::int64_t weight) {
    const auto key = endpoint_key(endpoint);
    if (!key) {
      fault(field, "'" + endpoint + "' is not an address or address:port");
    } else if (!is_weight(weight)) {
      fault(field, "weight " + std::to_string(weight) + " of " + endpoint + " is not in 0..65535");
    } else {
      out.weights[*key] = static_cast<std::uint16_t>(weight);
    }
  }

  template <class Visit>
  static void for_each_item(std::string_view list, Visit&& visit) {
    while (!list.empty()) {
      const auto comma = list.find(',');
      const std::string_view item = trimmed(list.substr(0, comma));
      if (!item.empty()) {
        visit(item);
      }
      list = comma == std::string_view::npos ? std::string_view{} : list.substr(comma + 1);
    }
  }

  const model::Service& service_;
  Reporter& report_;
  std::array<const std::string*, kKnobs> annotations_{};  ///< null: not given
  bool good_ = true;
  bool scheduler_named_ = false;
};

}  // namespace

std::optional<Extensions> extensions_of(const model::Service& service,
                                        core::SchedulerKind default_scheduler, Reporter& report) {
  return Reader(service, report).read(default_scheduler);
}

void check_annotations_of_slice(const model::EndpointSlice& slice, Reporter& report) {
  for (const auto& [key, value] : slice.annotations) {
    if (key.starts_with(kPrefix)) {
      report.invalid("metadata.annotations[" + key + "]",
                     "unknown annotation: those of sluice.dev belong on the Service");
    }
  }
}

bool is_weight(std::int64_t value) {
  return value >= 0 && value <= kMaxWeight;
}

std::uint16_t weight_of(const Extensions& extensions, const core::IpAddress& address,
                        std::uint16_t port,
                        const std::optional<std::int64_t>& slice_weight) {
  if (!extensions.weights.empty()) {
    for (const std::string& key : {core::to_string(address, port), core::to_string(address)}) {
      if (const auto at = extensions.weights.find(key); at != extensions.weights.end()) {
        return at->second;
      }
    }
  }
  return slice_weight && is_weight(*slice_weight) ? static_cast<std::uint16_t>(*slice_weight) : 1;
}

std::optional<core::ForwardingMode> mode_by_name(std::string_view name) {
  for (const auto mode : {core::ForwardingMode::kNat, core::ForwardingMode::kFullNat,
                          core::ForwardingMode::kDr, core::ForwardingMode::kIpip}) {
    if (core::name_of(mode) == name) {
      return mode;
    }
  }
  return std::nullopt;
}

}  // namespace sluice::compile
