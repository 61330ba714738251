#include "bench/modes.h"

#include <cstdio>
#include <string>
#include <vector>

#include "bench/sides.h"

namespace sluice::bench {
namespace {

constexpr std::uint32_t kFlows = 64'000;

/// The rows of one family. Thread: one.
template <class F>
class Modes {
 public:
  Modes(const TurnsConfig& turns, const Section& section)
      : turns_(turns, kFlows),
        section_(section),
        number_(F::kFamily == core::Family::kIpv4 ? "4" : "6") {}

  /// Each with its flows. @return false: told on standard error.
  [[nodiscard]] bool make() {
    const auto nothing = [](RigConfig&) {};
    const auto udp = [](RigConfig& c) { c.protocol = core::Protocol::kUdp; };
    const auto fullnat = [](RigConfig& c) { c.fullnat = true; };
    const auto dr = [](RigConfig& c) { c.dr = true; };
    const auto ipip = [](RigConfig& c) { c.ipip = true; };
    return both_ways("nat", nothing) && both_ways("nat_udp", udp) &&
           both_ways("fullnat", fullnat) &&
           requests("nat_clients", nothing) &&  // beside the next two, which see no answers
           one_way("dr", dr) && one_way("ipip", ipip) && split(0) && split(25) && split(50) &&
           split(100);
  }

  [[nodiscard]] bool measure(Results& results) {
    if (!turns_.run()) {
      return false;
    }
    turns_.tell(results);
    if (!section_.alone()) {
      const std::string clients = "modes_nat_clients" + number_;
      const std::string ipip = "modes_ipip" + number_;
      results["ipip" + number_ + "-nat" + number_] = turns_.difference(ipip, clients);
      print();
    }
    return true;
  }

 private:
  /// Of both directions.
  template <class Change>
  bool both_ways(const std::string& name, Change&& change) {
    return add(name + number_, change, [](const RigConfig& c) { return WorkerSide<F>::make(c); });
  }

  /// `share` percent of each burst arrive at the wrong worker; cycles of both workers together.
  bool split(std::uint32_t share) {
    const auto handed = static_cast<std::uint32_t>(pipeline::kBurst * share / 100);
    return add("handed" + std::to_string(share) + "%_" + number_,
               [](RigConfig& c) { c.handed_over = true; },
               [handed](const RigConfig& c) {
                 return WorkerSide<F>::make(c, {.handed = handed});
               });
  }

  /// Of flows that both sides opened, what clients send.
  template <class Change>
  bool requests(const std::string& name, Change&& change) {
    return add(name + number_, change, [](const RigConfig& c) {
      return WorkerSide<F>::make(c, {.answers = false});
    });
  }

  /// Only clients send.
  template <class Change>
  bool one_way(const std::string& name, Change&& change) {
    return add(name + number_, change, [](const RigConfig& c) { return OneWaySide<F>::make(c); });
  }

  template <class Change, class Make>
  bool add(const std::string& name, Change&& change, Make&& make) {
    if (!section_.has("modes_" + name)) {
      return true;
    }
    RigConfig config;
    config.family = F::kFamily;
    config.connections = kFlows;
    change(config);
    names_.push_back(name);
    return turns_.add_made("modes_" + name, make(config));
  }

  void print() const {
    for (const std::string& name : names_) {
      const Figure figure = turns_.cycles("modes_" + name);
      std::printf("%-14s %8.1f cycles per packet, median %.1f\n", name.c_str(), figure.told,
                  *figure.median);
    }
    std::fflush(stdout);
  }

  Turns turns_;
  const Section& section_;
  std::string number_;
  std::vector<std::string> names_;
};

}  // namespace

bool measure_modes(const TurnsConfig& turns, const Section& section, Results& results) {
  std::printf("# modes at %u flows, in turn; dr and ipip: clients only\n", kFlows);
  Modes<core::Ipv4> ipv4(turns, section);
  if (!ipv4.make() || !ipv4.measure(results)) {
    return false;
  }
  Modes<core::Ipv6> ipv6(turns, section);
  return ipv6.make() && ipv6.measure(results);
}

}  // namespace sluice::bench
