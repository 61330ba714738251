#include "test/conformance/case_reader.h"

#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "test/conformance/object_reader.h"

namespace sluice::conformance {
namespace {

std::string text(const YAML::Node& yaml, const char* key) {
  const YAML::Node value = yaml[key];
  return value && !value.IsNull() ? value.as<std::string>() : std::string();
}

Probe read_probe(const YAML::Node& yaml) {
  Probe p;
  const YAML::Node from = yaml["from"];
  p.from_kind = text(from, "kind");
  p.from_ip = text(from, "ip");
  p.iface = text(from, "iface");
  p.to = text(yaml, "to");
  p.port = yaml["port"].as<std::uint16_t>();
  p.sport = yaml["sport"] ? yaml["sport"].as<std::uint16_t>() : std::uint16_t{0};
  p.protocol = text(yaml, "proto");
  p.verdict = text(yaml, "verdict");
  if (const YAML::Node endpoints = yaml["endpoints"]) {
    p.endpoints = read_strings(endpoints);
  }
  p.snat = text(yaml, "snat");
  for (const auto& pair : yaml["snatIfEndpoint"]) {
    p.snat_if_endpoint[pair.first.as<std::string>()] = pair.second.as<std::string>();
  }
  p.affinity = text(yaml, "affinity");
  p.pick = text(yaml, "pick");
  p.same_as = text(yaml, "sameAs");
  p.free = yaml["free"] && yaml["free"].as<bool>();
  return p;
}

std::vector<model::ObjectName> read_names(const YAML::Node& yaml) {
  std::vector<model::ObjectName> out;
  for (const std::string& name : read_strings(yaml)) {
    const auto slash = name.find('/');
    out.push_back({name.substr(0, slash), name.substr(slash + 1)});
  }
  return out;
}

/// Reads the steps of one case; `node` is the case's node as the steps before left it.
class StepReader {
 public:
  explicit StepReader(YAML::Node node) : node_(std::move(node)) {}

  Step read(const YAML::Node& yaml) {
    const auto kind = yaml.begin()->first.as<std::string>();
    const YAML::Node value = yaml.begin()->second;
    if (kind == "probe") {
      return read_probe(value);
    }
    if (kind == "apply") {
      return read_apply(value);
    }
    if (kind == "delete") {
      return Delete{read_names(value["services"]), read_names(value["endpointSlices"])};
    }
    if (kind == "advance") {
      return Advance{value.as<double>()};
    }
    if (kind == "unsynced") {
      return Unsynced{};
    }
    if (kind == "synced") {
      return Synced{value.as<std::string>()};
    }
    return HostStep{kind, value};
  }

 private:
  Step read_apply(const YAML::Node& yaml) {
    Apply out;
    for (const YAML::Node& s : yaml["services"]) {
      out.services.push_back(read_service(s));
    }
    for (const YAML::Node& s : yaml["endpointSlices"]) {
      out.slices.push_back(read_slice(s));
    }
    if (const YAML::Node over = yaml["node"]; over && !over.IsNull()) {
      node_ = overlay(node_, over);
      out.node = read_node(node_);
    }
    return out;
  }

  YAML::Node node_;
};

Case read_case(const std::string& file, const YAML::Node& yaml) {
  Case c;
  c.file = file;
  c.name = text(yaml, "name");
  c.spec = read_strings(yaml["spec"]);
  c.modes = read_strings(yaml["modes"]);
  c.node = read_node(yaml["node"]);
  for (const YAML::Node& s : yaml["services"]) {
    c.services.push_back(read_service(s));
  }
  for (const YAML::Node& s : yaml["endpointSlices"]) {
    c.slices.push_back(read_slice(s));
  }
  for (const YAML::Node& p : yaml["expect"]) {
    c.steps.emplace_back(read_probe(p));
  }
  for (const char* kind : {"healthCheck", "http"}) {
    if (const YAML::Node value = yaml[kind]) {
      c.steps.emplace_back(HostStep{kind, value});
    }
  }
  StepReader steps(YAML::Clone(yaml["node"]));
  for (const YAML::Node& s : yaml["steps"]) {
    c.steps.push_back(steps.read(s));
  }
  c.asks_functions = yaml["compute"] || yaml["sync"];
  c.renders = yaml["render"].IsDefined();
  c.yaml = yaml;
  return c;
}

void read_file(const std::filesystem::path& path, std::vector<Case>& out) {
  const YAML::Node yaml = YAML::LoadFile(path.string());
  for (const YAML::Node& c : yaml["cases"]) {
    out.push_back(read_case(path.filename().string(), c));
  }
}

}  // namespace

core::Result<std::vector<Case>> read_cases(const std::string& path) {
  std::vector<std::filesystem::path> files;
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) {
    for (const auto& entry : std::filesystem::directory_iterator(path, error)) {
      if (entry.path().extension() == ".yaml") {
        files.push_back(entry.path());
      }
    }
    std::sort(files.begin(), files.end());
  } else {
    files.emplace_back(path);
  }
  std::vector<Case> cases;
  for (const auto& file : files) {
    try {
      read_file(file, cases);
    } catch (const YAML::Exception& e) {
      return tl::make_unexpected(core::Error{file.string() + ": " + e.what()});
    }
  }
  if (cases.empty()) {
    return tl::make_unexpected(core::Error{path + ": no cases"});
  }
  return cases;
}

}  // namespace sluice::conformance
