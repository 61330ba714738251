// sluice-generator: the embedded traffic generator. It carries out commands from standard input,
// one a line, and answers each, and its own start, with one line of JSON:
//
//   open                                           waits for the link and opens all flows
//   load seconds=1 window=512                      closed loop
//   load seconds=1 rate=2e6 fresh=0.1 foreign=0    open loop
//   save FILE                                      every frame, for a generator that replays them
//
// bench/harness drives it. It ends with standard input.

#include <algorithm>
#include <cstdio>
#include <iostream>
#include <map>
#include <sstream>
#include <string>

#include <poll.h>
#include <sched.h>
#include <unistd.h>

#include <CLI/CLI.hpp>

#include "bench/clock.h"
#include "bench/generator/capture_file.h"
#include "bench/generator/device_port.h"
#include "bench/generator/load.h"
#include "bench/generator/memif_port.h"

namespace sluice::bench {
namespace {

struct Options {
  DeviceOptions device;
  std::string memif;
  bool memif_server = false;
  std::string mac = "02:00:00:00:00:09";
  FlowPlan plan;
  std::string to = "02:00:00:00:00:01";
  int family = 4;
  std::string proto = "tcp";
  double link_seconds = 10;
};

void print_result(const LoadResult& r) {
  const double micros = 1e6 / ticks_per_second();
  std::printf("{\"seconds\": %.6f, \"offered\": %lu, \"refused\": %lu, \"received\": %lu, "
              "\"fresh_sent\": %lu, \"fresh_received\": %lu, \"foreign_sent\": %lu, "
              "\"skipped\": %lu, \"stalls\": %lu, \"bad_checksums\": %lu, \"bursts\": %lu, "
              "\"bursts_refused\": %lu, \"idle\": %.4f, \"held\": %.4f, \"latency_us\": {",
              r.seconds, r.offered, r.refused, r.received, r.fresh_sent, r.fresh_received,
              r.foreign_sent, r.skipped, r.stalls, r.bad_checksums, r.bursts, r.bursts_refused,
              r.idle, r.held);
  const std::pair<const char*, double> shares[] = {
      {"p50", 0.5}, {"p90", 0.9}, {"p99", 0.99}, {"p99.9", 0.999}, {"p99.99", 0.9999}};
  for (const auto& [name, share] : shares) {
    std::printf("\"%s\": %.2f, ", name,
                static_cast<double>(r.latency.percentile(share)) * micros);
  }
  std::printf("\"max\": %.2f}}\n", static_cast<double>(r.latency.most()) * micros);
}

/// "seconds=1 window=512" as a map; what is no number is an error.
bool read_numbers(std::istringstream& words, std::map<std::string, double>& values) {
  for (std::string word; words >> word;) {
    const std::size_t equals = word.find('=');
    char* end = nullptr;
    const double value =
        equals == std::string::npos ? 0 : std::strtod(word.c_str() + equals + 1, &end);
    if (end == nullptr || *end != '\0') {
      return false;
    }
    values[word.substr(0, equals)] = value;
  }
  return true;
}

bool wait_for_link(Port& port, double seconds) {
  const auto end = tsc() + static_cast<std::uint64_t>(seconds * ticks_per_second());
  while (!port.link_up() && tsc() < end) {
    ::usleep(1000);
  }
  return port.link_up();
}

/// A client tries again for as long as a link may take: DPDK's server refuses between the creation
/// of its device and its start. Errors: the last one.
core::Result<std::unique_ptr<MemifPort>> open_patiently(const MemifOptions& memif,
                                                        double seconds) {
  constexpr unsigned kPauseMicros = 50'000;
  const auto end = tsc() + static_cast<std::uint64_t>(seconds * ticks_per_second());
  auto port = MemifPort::open(memif);
  while (!port && !memif.server && tsc() < end) {
    ::usleep(kPauseMicros);
    port = MemifPort::open(memif);
  }
  return port;
}

core::Result<std::unique_ptr<Port>> open_memif(const Options& options) {
  const auto mac = core::parse_mac(options.mac);
  if (!mac) {
    return tl::make_unexpected(core::Error{"generator: --mac is no MAC address"});
  }
  cpu_set_t cpus;
  CPU_ZERO(&cpus);
  CPU_SET(options.device.core, &cpus);
  if (::sched_setaffinity(0, sizeof cpus, &cpus) != 0) {
    return tl::make_unexpected(core::Error{"generator: no such CPU"});
  }
  return open_patiently({options.memif, options.memif_server, *mac, options.device.hugepages,
                         options.device.descriptors, options.device.frame},
                        options.link_seconds);
}

core::Result<std::unique_ptr<Port>> open_port(const Options& options) {
  if (!options.memif.empty()) {
    return open_memif(options);
  }
  return Device::open(options.device).map([](std::unique_ptr<Device> device) {
    return std::make_unique<DevicePort>(std::move(device));
  });
}

/// Commands on one port. Thread: main.
class Session {
 public:
  Session(const Options& options, Port& port)
      : options_(options),
        port_(port),
        flows_(FlowSet::make(options.family == 4 ? core::Family::kIpv4 : core::Family::kIpv6,
                             options.plan)) {}

  /// @return exit status.
  int run() {
    std::printf("{\"device\": \"%s\"}\n", core::to_string(port_.mac()).c_str());
    std::fflush(stdout);
    for (std::string line; wait_for_command() && std::getline(std::cin, line);) {
      if (!carry_out(line)) {
        std::fprintf(stderr, "generator: not understood, or before open: %s\n", line.c_str());
        return 2;
      }
      std::fflush(stdout);
    }
    return 0;
  }

 private:
  bool carry_out(const std::string& line) {
    std::istringstream words(line);
    std::string verb;
    words >> verb;
    if (verb == "open") {
      return open();
    }
    if (verb == "save") {
      return images_ != nullptr && save(words);
    }
    std::map<std::string, double> values = {
        {"seconds", 1}, {"window", 0}, {"rate", 0}, {"fresh", 0}, {"foreign", 0}};
    const std::size_t known = values.size();
    if (load_ == nullptr || verb != "load" || !read_numbers(words, values) ||
        values.size() != known) {
      return false;
    }
    print_result(load_->run({values["seconds"], values["rate"],
                             static_cast<std::uint32_t>(values["window"]), values["fresh"],
                             values["foreign"]}));
    return true;
  }

  bool open() {
    if (!wait_for_link(port_, options_.link_seconds)) {
      std::fprintf(stderr, "generator: no link\n");
      return false;
    }
    const std::uint64_t start = tsc();
    const OpenReport report = flows_->open(port_);
    images_ = std::make_unique<Images>(flows_->images());
    load_ = std::make_unique<Load>(port_, *flows_, *images_);
    std::printf("{\"opened\": %u, \"asked\": %u, \"bad_checksums\": %lu, "
                "\"seconds\": %.3f}\n",
                report.opened, report.asked, report.bad_checksums,
                static_cast<double>(tsc() - start) / ticks_per_second());
    return true;
  }

  bool save(std::istringstream& words) {
    std::string path;
    words >> path;
    CaptureFile file(path);
    for (std::uint32_t i = 0; i < images_->count(); ++i) {
      file.add({images_->at(i), images_->stride()}, flows_->length_of(i));
    }
    if (auto done = file.close(); !done) {
      std::fprintf(stderr, "generator: %s\n", done.error().message.c_str());
      return false;
    }
    std::printf("{\"saved\": %u}\n", images_->count());
    return true;
  }

  /// Neighbours are answered between two commands too.
  bool wait_for_command() {
    pollfd input{0, POLLIN, 0};
    Frame frames[Port::kBurst];
    while (std::cin.rdbuf()->in_avail() <= 0 && ::poll(&input, 1, 1) == 0) {
      std::uint16_t got = 0;
      while (port_.link_up() && (got = port_.receive(frames)) != 0) {
        std::for_each(frames, frames + got,
                      [this](const Frame& frame) { answer_request(port_, frame, *flows_); });
        port_.release();
      }
    }
    return true;
  }

  const Options& options_;
  Port& port_;
  std::unique_ptr<FlowSet> flows_;
  std::unique_ptr<Images> images_;
  std::unique_ptr<Load> load_;
};

void add_options(CLI::App& app, Options& options) {
  auto* link = app.add_option_group("link")->require_option(1);
  link->add_option("--vdev", options.device.vdev, "DPDK device");
  link->add_option("--memif", options.memif, "socket of a memif, without DPDK");
  app.add_flag("--memif-server", options.memif_server, "the peer is the client");
  app.add_option("--mac", options.mac, "MAC address of this end of a memif");
  app.add_option("--core", options.device.core, "CPU");
  app.add_flag("--hugepages", options.device.hugepages);
  app.add_option("--memory-mib", options.device.memory_mib);
  app.add_option("--descriptors", options.device.descriptors);
  app.add_option("--to", options.to, "MAC address of the device under test");
  app.add_option("--family", options.family, "4 or 6")->check(CLI::IsMember({4, 6}));
  app.add_option("--proto", options.proto)->check(CLI::IsMember({"tcp", "udp"}));
  app.add_option("--flows", options.plan.flows)->check(CLI::Range(1u, 1u << 30));
  app.add_option("--services", options.plan.services)->check(CLI::PositiveNumber);
  app.add_option("--lengths", options.plan.lengths, "of frames without FCS, used in turn")
      ->delimiter(',');
  app.add_flag("--one-way", options.plan.one_way, "dr and ipip: no answers");
  app.add_flag("--reflect", options.plan.reflect, "nothing is translated, nothing to open");
}

}  // namespace
}  // namespace sluice::bench

int main(int argc, char** argv) {
  using namespace sluice;
  bench::Options options;
  CLI::App app("Traffic generator of bench/run");
  bench::add_options(app, options);
  CLI11_PARSE(app, argc, argv);
  const auto to = core::parse_mac(options.to);
  if (!to) {
    std::fprintf(stderr, "generator: --to is no MAC address\n");
    return 2;
  }
  for (const std::uint32_t length : options.plan.lengths) {
    options.device.frame = std::max(options.device.frame, length);
  }
  auto port = bench::open_port(options);
  if (!port) {
    std::fprintf(stderr, "%s\n", port.error().message.c_str());
    return 1;
  }
  options.plan.shape = {*to, (*port)->mac(),
                        options.proto == "tcp" ? core::kIpProtoTcp : core::kIpProtoUdp};
  return bench::Session(options, **port).run();
}
