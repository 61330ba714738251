#pragma once

#include <memory>
#include <string>
#include <vector>

#include "kni/conntrack/conntrack_sink.h"
#include "kni/nftables/kernel.h"
#include "kni/nftables/nftables_sink.h"
#include "kni/nftables/socket.h"
#include "test/conformance/kernel_probe.h"
#include "test/conformance/socket_flow.h"

namespace sluice::conformance {

/// The adapter and what tests ask its kernel, in the namespace of the thread that made it.
class NftablesNode {
 public:
  NftablesNode();

  /// Applies a table and looks at the kernel behind it: read back, by nft as JSON, by nft as text.
  /// @return what is wrong.
  std::vector<std::string> apply(const core::TablePtr& table);

  [[nodiscard]] SocketNet::Refusals refusals();
  [[nodiscard]] KernelProbeJudge::Memory memory();

 private:
  std::vector<std::string> remembering_sets(core::Family family);
  void wipe();
  std::vector<std::uint32_t> remembered(const core::IpAddress& source);
  void check_read_back(const kni::nft::Rendered& wanted, std::vector<std::string>& failures);
  static void check_json(const kni::nft::Ruleset& wanted, std::vector<std::string>& failures);

  std::unique_ptr<kni::nft::Kernel> reader_;
  kni::nft::Socket socket_;
  std::unique_ptr<kni::NftablesSink> nftables_;
  std::unique_ptr<kni::ConntrackSink> sink_;  ///< the adapter and the removal of stale flows
};

}  // namespace sluice::conformance
