#include "test/conformance/http_expectation.h"

#include <algorithm>
#include <cctype>

namespace sluice::conformance {
namespace {

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

/// JSON is YAML, but for the tabs.
YAML::Node parse_json(std::string text) {
  std::replace(text.begin(), text.end(), '\t', ' ');
  return YAML::Load(text);
}

void expect_equal(const std::string& what, const std::string& want, const std::string& got,
                  std::vector<std::string>& failures) {
  if (want != got) {
    failures.push_back(what + ": expected " + want + ", got " + got);
  }
}

/// Every field of `want` is in `got`; what else is there does not matter.
void expect_subset(const std::string& what, const YAML::Node& want, const YAML::Node& got,
                   std::vector<std::string>& failures) {
  if (want.IsMap()) {
    for (const auto& item : want) {
      const auto key = item.first.as<std::string>();
      expect_subset(what + "." + key, item.second,
                    got.IsMap() ? got[key] : YAML::Node(YAML::NodeType::Undefined), failures);
    }
    return;
  }
  const bool scalar = got.IsDefined() && got.IsScalar();
  expect_equal(what, want.Scalar(), scalar ? got.Scalar() : "no such value", failures);
}

void judge_body(const std::string& what, const YAML::Node& want, const std::string& text,
                std::vector<std::string>& failures) {
  if (!want["body"] && !want["bodyAbsent"] && !want["bodyKeys"]) {
    return;
  }
  const YAML::Node body = parse_json(text);
  if (want["body"]) {
    expect_subset(what + " body", want["body"], body, failures);
  }
  for (const YAML::Node& key : want["bodyAbsent"]) {
    if (body[key.as<std::string>()]) {
      failures.push_back(what + " body: expected no " + key.as<std::string>());
    }
  }
  for (const YAML::Node& key : want["bodyKeys"]) {
    if (!body[key.as<std::string>()]) {
      failures.push_back(what + " body: expected " + key.as<std::string>());
    }
  }
}

}  // namespace

void judge_answer(const std::string& what, const YAML::Node& want, const test::HttpAnswer& got,
                  std::vector<std::string>& failures) {
  if (want["code"]) {
    expect_equal(what + " code", want["code"].as<std::string>(), std::to_string(got.status),
                 failures);
  }
  for (const auto& item : want["headers"]) {
    const auto name = item.first.as<std::string>();
    const auto at = got.headers.find(lower(name));
    expect_equal(what + " header " + name, item.second.as<std::string>(),
                 at == got.headers.end() ? "none" : at->second, failures);
  }
  if (want["text"]) {
    expect_equal(what + " text", want["text"].as<std::string>(), got.body, failures);
  }
  judge_body(what, want, got.body, failures);
}

YAML::Node service_expectation(const YAML::Node& health_check) {
  YAML::Node out = YAML::Clone(health_check);
  if (health_check["localEndpoints"]) {
    const auto count = health_check["localEndpoints"].as<std::string>();
    out["body"]["localEndpoints"] = count;
    out["headers"]["X-Load-Balancing-Endpoint-Weight"] = count;
  }
  if (health_check["serviceProxyHealthy"]) {
    out["body"]["serviceProxyHealthy"] = health_check["serviceProxyHealthy"].as<std::string>();
  }
  return out;
}

}  // namespace sluice::conformance
