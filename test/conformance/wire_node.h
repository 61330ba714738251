#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "dataplane/core/fwd/forwarding_table.h"
#include "test/support/stepped_group.h"

namespace sluice::conformance {

/// The node of a case as the wire and the host see it: workers over in-memory ports, stepped by a
/// clock of its own. Every neighbour answers; frames come to the workers in turn, so that most of
/// them have to find their owner. Port 0 has every route and the node's addresses on its tap.
/// Thread: one.
class WireNode {
 public:
  /// More than one, so that the owner procedure runs; odd, so that the turns do not fall in step.
  static constexpr std::size_t kWorkers = 3;
  /// Source ports of translation without addresses of its own (design section 5).
  static constexpr std::uint16_t kFirstPoolPort = 40960;

  struct Config {
    /// Ingress names, by port; the first is that of probes that name none.
    std::vector<std::string> interfaces;
    std::uint64_t seed = 1;            ///< of the workers' random choices
    std::uint32_t connections = 8192;  ///< per worker and family
  };
  /// What came out while one frame was served.
  struct Seen {
    std::vector<test::SentFrame> sent;
    std::vector<test::SentFrame> to_host;
  };

  explicit WireNode(const Config& config);
  ~WireNode();

  /// Addresses of the host, on the tap of port 0.
  void set_addresses(const std::vector<core::IpAddress>& addresses);
  [[nodiscard]] bool has_address(const core::IpAddress& address) const;
  void apply(core::TablePtr table);
  /// Time passes, with polls between.
  void advance(double seconds);

  /// Serves one frame from the wire (or the host) of `port`, at the next worker in turn.
  Seen offer(const test::Bytes& frame, std::size_t port,
             pipeline::Origin origin = pipeline::Origin::kWire);

  [[nodiscard]] std::size_t port_of(const std::string& interface) const;
  /// MAC of a port, as text.
  [[nodiscard]] static std::string mac_of(std::size_t port);
  /// Empty when every frame is accounted for.
  [[nodiscard]] std::string balance_error() const { return group_->balance_error(); }

 private:
  std::vector<std::string> interfaces_;
  std::vector<core::IpAddress> addresses_;
  std::unique_ptr<test::SteppedGroup> group_;
  std::size_t turn_ = 0;
};

}  // namespace sluice::conformance
