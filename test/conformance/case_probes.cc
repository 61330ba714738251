#include "test/conformance/case_probes.h"

#include <algorithm>
#include <set>

namespace sluice::conformance {
namespace {

std::string address_part(const std::string& endpoint) {
  return endpoint.substr(0, endpoint.rfind(':'));
}

}  // namespace

std::vector<const Probe*> probes_of(const Case& c) {
  std::vector<const Probe*> probes;
  for (const Step& step : c.steps) {
    if (const auto* probe = std::get_if<Probe>(&step)) {
      probes.push_back(probe);
    }
  }
  return probes;
}

bool any_probe(const Case& c, const std::function<bool(const Probe&)>& is) {
  const auto probes = probes_of(c);
  return std::any_of(probes.begin(), probes.end(), [&](const Probe* p) { return is(*p); });
}

std::vector<std::string> interfaces_of(const Case& c) {
  std::vector<std::string> names;
  for (const Probe* probe : probes_of(c)) {
    if (!probe->iface.empty() &&
        std::find(names.begin(), names.end(), probe->iface) == names.end()) {
      names.push_back(probe->iface);
    }
  }
  return names;
}

bool FreeProbes::any() const {
  return std::any_of(probes_.begin(), probes_.end(), [](const Probe* p) { return p->free; });
}

std::vector<std::string> FreeProbes::failures() const {
  std::vector<std::string> out;
  for (std::size_t i = 0; i < probes_.size(); ++i) {
    if (probes_[i]->free && probes_[i]->endpoints && probes_[i]->endpoints->size() > 1) {
      judge(i, out);
    }
  }
  return out;
}

void FreeProbes::judge(std::size_t i, std::vector<std::string>& out) const {
  const std::string what = "probe " + std::to_string(i + 1) + " without a pin: ";
  std::set<std::string> got;
  for (const auto& run : runs_) {
    got.insert(run[i]);
  }
  if (got != std::set<std::string>(probes_[i]->endpoints->begin(), probes_[i]->endpoints->end())) {
    out.push_back(what + "expected every endpoint in " + std::to_string(runs_.size()) +
                  " runs, got " + std::to_string(got.size()));
  }
  for (std::size_t before = 0; before < i; ++before) {
    const bool follows = std::all_of(runs_.begin(), runs_.end(), [&](const auto& run) {
      return address_part(run[i]) == address_part(run[before]);
    });
    if (follows) {
      out.push_back(what + "expected free, got always the endpoint of probe " +
                    std::to_string(before + 1));
    }
  }
}

}  // namespace sluice::conformance
