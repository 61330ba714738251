#include "control/compile/validate.h"

#include <algorithm>
#include <utility>

#include "control/compile/service_ports.h"
#include "control/compile/slices.h"

namespace sluice::compile {
namespace {

/// Runs `check` with a reporter and keeps the faults, without the warnings.
template <class Check>
std::vector<ReportLine> faults_of(const std::string& object, Check&& check) {
  std::vector<ReportLine> lines;
  {
    Reporter report(object, lines);
    check(report);
  }
  std::erase_if(lines, [](const ReportLine& l) { return l.kind != ReportLine::Kind::kSkipped; });
  return lines;
}

void check_name(const std::string& name, Reporter& report) {
  if (name.empty()) {
    report.invalid("metadata.name", "is empty");
  }
}

}  // namespace

std::vector<ReportLine> validate(const model::Service& service) {
  return faults_of("service " + service.name.text(),
                   [&](Reporter& report) { (void)normalise(service, NodeContext{}, report); });
}

std::vector<ReportLine> validate(const model::EndpointSlice& slice) {
  const std::string object = "endpointslice " + slice.name.text();
  auto lines = faults_of(object, [&](Reporter& report) {
    if (slice.name.ns.empty()) {
      report.invalid("metadata.namespace", "is empty");
    }
    check_name(slice.name.name, report);
    if (slice.address_type == "IPv4" || slice.address_type == "IPv6") {
      const auto family = slice.address_type == "IPv4" ? core::Family::kIpv4 : core::Family::kIpv6;
      check_slice_of(family, slice, report);
    } else {
      check_slice(slice, report);
    }
  });
  return lines;
}

std::vector<ReportLine> validate(const model::Node& node) {
  return faults_of("node " + node.name, [&](Reporter& report) {
    check_name(node.name, report);
    for (std::size_t i = 0; i < node.pod_cidrs.size(); ++i) {
      if (!core::parse_cidr(node.pod_cidrs[i])) {
        report.invalid(indexed("spec.podCIDRs", i), "'" + node.pod_cidrs[i] + "' is not a CIDR");
      }
    }
    for (std::size_t i = 0; i < node.addresses.size(); ++i) {
      const model::NodeAddress& a = node.addresses[i];
      const bool is_ip = a.type == "InternalIP" || a.type == "ExternalIP";
      if (is_ip && !core::parse_address(a.address)) {
        report.invalid(indexed("status.addresses", i, ".address"),
                       "'" + a.address + "' is not an address");
      }
    }
  });
}

std::vector<ReportLine> validate(const model::ServiceCidr& cidr) {
  return faults_of("servicecidr " + cidr.name, [&](Reporter& report) {
    check_name(cidr.name, report);
    for (std::size_t i = 0; i < cidr.cidrs.size(); ++i) {
      if (!core::parse_cidr(cidr.cidrs[i])) {
        report.invalid(indexed("spec.cidrs", i), "'" + cidr.cidrs[i] + "' is not a CIDR");
      }
    }
  });
}

}  // namespace sluice::compile
