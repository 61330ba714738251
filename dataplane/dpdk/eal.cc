#include "dataplane/dpdk/eal.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <set>

#include <unistd.h>

#include <rte_dev.h>
#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_ethdev.h>

#include "dataplane/dpdk/cores.h"

namespace sluice::dpdk {
namespace {

std::string first_line(const std::string& text) {
  const std::size_t begin = text.find_first_not_of(" \n");
  return begin == std::string::npos ? "" : text.substr(begin, text.find('\n', begin) - begin);
}

std::set<std::uint16_t> present_ports() {
  std::set<std::uint16_t> ports;
  for (std::uint16_t id = 0; id < RTE_MAX_ETHPORTS; ++id) {
    if (rte_eth_dev_is_valid_port(id) != 0) {
      ports.insert(id);
    }
  }
  return ports;
}

bool is_pci_address(const std::string& device) {
  return device.find(':') != std::string::npos && device.find(',') == std::string::npos &&
         device.find('=') == std::string::npos;
}

}  // namespace

std::vector<std::string> eal_arguments(const EalSettings& settings, const MemoryChoice& memory,
                                       const std::vector<std::uint32_t>& available) {
  std::vector<std::string> arguments = {
      settings.program,
      "--lcores=" + lcores_argument(settings.worker_cores, available),
      "--main-lcore=0",
      "--file-prefix=" + (settings.file_prefix.empty() ? "sluice-" + std::to_string(getpid())
                                                       : settings.file_prefix),
      "--no-telemetry",
  };
  if (memory.hugepages) {
    arguments.push_back("--in-memory");
    if (settings.shared_memory) {
      arguments.push_back("--single-file-segments");
      arguments.push_back("-m");
      arguments.push_back(std::to_string(memory.mib));
    }
  } else {
    // --no-huge excludes --in-memory; --no-shconf keeps files out of the runtime directory.
    arguments.push_back("--no-huge");
    arguments.push_back("--no-shconf");
    arguments.push_back("-m");
    arguments.push_back(std::to_string(memory.mib));
  }
  if (settings.pci.empty()) {
    arguments.push_back("--no-pci");
    // No device reads memory by bus addresses. By physical ones a pool on huge pages would fall into
    // pieces, which net_af_xdp does not take.
    arguments.push_back("--iova-mode=va");
  }
  for (const std::string& address : settings.pci) {
    arguments.push_back("-a");
    arguments.push_back(address);
  }
  if (!settings.driver_dir.empty()) {
    arguments.push_back("-d");
    arguments.push_back(settings.driver_dir);
  }
  arguments.insert(arguments.end(), settings.extra_args.begin(), settings.extra_args.end());
  return arguments;
}

core::Result<std::unique_ptr<Eal>> Eal::start(const EalSettings& settings,
                                              const MemoryChoice& memory, LogSink sink) {
  std::unique_ptr<Eal> eal(new Eal(sink));
  // libxdp would look for its dispatcher in a bpffs that a network namespace does not have.
  setenv("LIBXDP_SKIP_DISPATCHER", "1", 0);
  std::vector<std::string> arguments = eal_arguments(settings, memory, available_cores());
  std::vector<char*> argv;
  for (std::string& argument : arguments) {
    argv.push_back(argument.data());
  }
  StderrCapture capture;
  const int rc = rte_eal_init(static_cast<int>(argv.size()), argv.data());
  const std::string printed = capture.finish();
  if (rc < 0) {
    std::string reason = eal->log_.take_last_error();
    reason = reason.empty() ? first_line(printed) : reason;
    return tl::make_unexpected(core::Error{
        "dpdk: the EAL does not start: " + std::string(rte_strerror(rte_errno)) +
        (reason.empty() ? "" : " (" + reason + ")")});
  }
  if (sink && !printed.empty()) {
    sink(Severity::kDebug, printed);
  }
  eal->running_ = true;
  eal->runtime_dir_ = rte_eal_get_runtime_dir();
  DpdkLog::quiet_bpf_libraries();
  return eal;
}

Eal::~Eal() {
  if (!running_) {
    return;
  }
  rte_eal_cleanup();
  // The EAL leaves its directory; ours carries the process id and would pile up.
  std::error_code ignored;
  if (std::filesystem::path(runtime_dir_).filename().string().rfind("sluice-", 0) == 0) {
    std::filesystem::remove_all(runtime_dir_, ignored);
  }
}

core::Result<std::vector<std::uint16_t>> Eal::add_device(const std::string& device) {
  const auto fail = [&](const std::string& reason) {
    return tl::make_unexpected(core::Error{"port device '" + device + "': " + reason});
  };
  std::vector<std::uint16_t> added;
  if (is_pci_address(device)) {
    if (!std::filesystem::exists("/sys/bus/pci/devices/" + device)) {
      return fail("no PCI device has this address");
    }
    std::uint16_t id = 0;
    if (rte_eth_dev_get_port_by_name(device.c_str(), &id) != 0) {
      return fail("no DPDK driver took it; is it bound to vfio-pci?");
    }
    added.push_back(id);
    return added;
  }
  // A device that is there already: made by an extra EAL argument, or by a test.
  std::uint16_t there = 0;
  if (rte_eth_dev_get_port_by_name(device.c_str(), &there) == 0) {
    added.push_back(there);
    return added;
  }
  const std::set<std::uint16_t> before = present_ports();
  (void)log_.take_last_error();
  StderrCapture capture;
  const int rc = rte_dev_probe(device.c_str());
  const std::string printed = first_line(capture.finish());
  std::string reason = log_.take_last_error();
  reason = reason.empty() ? printed : reason;
  if (rc != 0) {
    // The vdev bus knows a device by a driver whose name begins it; none is told as EFAULT.
    return fail(rc == -EFAULT || rc == -ENODEV ? "no such device or driver"
                                               : std::string(std::strerror(-rc)) +
                                                     (reason.empty() ? "" : " (" + reason + ")"));
  }
  for (const std::uint16_t id : present_ports()) {
    if (before.count(id) == 0) {
      added.push_back(id);
    }
  }
  if (added.empty()) {
    return fail("it is no network device");
  }
  return added;
}

}  // namespace sluice::dpdk
