// explain: why a flow gets what it gets.
#include <algorithm>
#include <charconv>
#include <utility>

#include "control/cli/commands.h"

namespace sluice::cli {
namespace {

struct Target {
  std::string address;
  std::uint32_t port = 0;  ///< 0: none given
};

/// Splits "10.0.0.1:80", "[fd00::1]:80", "10.0.0.1", "fd00::1". Whether the address is one, the
/// daemon says. @return nullopt: `fault` says why.
std::optional<Target> split_target(const std::string& text, std::string& fault) {
  const bool bracketed = text.starts_with('[');
  const auto close = text.find(']');
  auto colon = text.rfind(':');
  if (bracketed ? close == text.npos : text.find(':') != colon) {
    colon = text.npos;  // an IPv6 address without a port
  } else if (bracketed && colon < close) {
    colon = text.npos;
  }
  Target target{text.substr(0, colon), 0};
  if (bracketed && close != text.npos) {
    target.address = text.substr(1, close - 1);
    if (close + 1 != (colon == text.npos ? text.size() : colon)) {
      fault = "\"" + text + "\" is not ADDRESS:PORT";
      return std::nullopt;
    }
  }
  if (colon == text.npos) {
    return target;
  }
  const char* const first = text.data() + colon + 1;
  const char* const last = text.data() + text.size();
  const auto [end, error] = std::from_chars(first, last, target.port);
  if (error != std::errc{} || end != last || target.port == 0 || target.port > 65535) {
    fault = "\"" + std::string(first, last) + "\" is not a port in 1 to 65535";
    return std::nullopt;
  }
  return target;
}

Exit bad_input(const Output& output, const std::string& message) {
  return output.fail({Exit::kRefused, "INPUT", message, {}});
}

/// The first option whose word cannot be sent or printed as one line; "" when all can.
std::string unprintable_option(const FlowWords& words) {
  for (const auto& [option, word] :
       {std::pair{"--from", &words.from}, std::pair{"--to", &words.to},
        std::pair{"--proto", &words.protocol}, std::pair{"--iface", &words.interface}}) {
    if (std::any_of(word->begin(), word->end(), [](char c) { return c < ' ' || c > '~'; })) {
      return option;
    }
  }
  return "";
}

void print_steps(const v1::ExplainResponse& response, std::ostream& out) {
  for (const auto& step : response.steps()) {
    out << "[" << step.rule() << "] " << step.text() << "\n";
  }
  out << "verdict: " << response.summary() << "\n";
}

}  // namespace

Exit explain(Client& client, const Output& output, const FlowWords& words) {
  if (const auto option = unprintable_option(words); !option.empty()) {
    return bad_input(output, option + " holds a character that is not printable ASCII");
  }
  std::string fault;
  const auto from = split_target(words.from, fault);
  if (!from) {
    return bad_input(output, "--from: " + fault);
  }
  const auto to = split_target(words.to, fault);
  if (!to) {
    return bad_input(output, "--to: " + fault);
  }
  if (to->port == 0) {
    return bad_input(output, "--to: \"" + words.to +
                                 "\" has no port: give ADDRESS:PORT, or "
                                 "[ADDRESS]:PORT for IPv6");
  }
  if (auto failure = client.unreachable()) {
    return output.fail(*failure);
  }
  v1::ExplainRequest request;
  request.set_from(from->address);
  request.set_from_port(from->port);
  request.set_to(to->address);
  request.set_to_port(to->port);
  request.set_protocol(words.protocol);
  request.set_interface(words.interface);
  request.set_from_host(words.from_host);
  Call call(client);
  v1::ExplainResponse response;
  if (auto failure = call.failure(client.node().Explain(&call.context(), request, &response))) {
    return output.fail(*failure);
  }
  output.json ? output.print(response) : print_steps(response, output.out);
  return Exit::kOk;
}

}  // namespace sluice::cli
