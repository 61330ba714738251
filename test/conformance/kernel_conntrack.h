#pragma once

#include <yaml-cpp/yaml.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

struct nf_conntrack;
struct nfct_handle;

namespace sluice::conformance {

/// The conntrack steps of a case in the kernel's own table: installs flows, looks whether they are
/// still there. Flows of one case that have equal addresses and ports get ports of their own.
/// Thread: the one whose network namespace is meant.
class KernelConntrack {
 public:
  KernelConntrack();
  ~KernelConntrack();
  KernelConntrack(const KernelConntrack&) = delete;
  KernelConntrack& operator=(const KernelConntrack&) = delete;

  /// @return what is wrong.
  std::vector<std::string> perform(const YAML::Node& step);

 private:
  struct Free {
    void operator()(nf_conntrack* flow) const noexcept;
  };
  void install(const YAML::Node& entry, std::vector<std::string>& failures);
  void check(const YAML::Node& ids, bool kept, std::vector<std::string>& failures);

  nfct_handle* handle_;
  std::map<std::string, std::unique_ptr<nf_conntrack, Free>> flows_;
};

}  // namespace sluice::conformance
