#include "dataplane/dpdk/port_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "dataplane/dpdk/eal.h"

namespace sluice::dpdk {
namespace {

PortSettings port(DeviceKind kind, const char* target) {
  PortSettings settings;
  settings.name = "net0";
  settings.kind = kind;
  settings.target = target;
  return settings;
}

TEST(PlanPort, RefusesAnUnknownPciAddress) {
  std::uint32_t numbers = 0;

  const auto plan = plan_port(port(DeviceKind::kPci, "0000:7f:1f.7"), 1, numbers);

  ASSERT_FALSE(plan);
  EXPECT_EQ(plan.error().message, "port net0: no PCI device has the address 0000:7f:1f.7");
}

TEST(PlanPort, RefusesAnUnknownInterface) {
  for (const DeviceKind kind : {DeviceKind::kAfXdp, DeviceKind::kAfPacket, DeviceKind::kAuto}) {
    std::uint32_t numbers = 0;

    const auto plan = plan_port(port(kind, "nosuchif0"), 1, numbers);

    ASSERT_FALSE(plan);
    EXPECT_EQ(plan.error().message, "port net0: interface nosuchif0: no such interface");
  }
}

// F94: fewer queues than workers.
TEST(PlanPort, RefusesMoreWorkersThanQueues) {
  PortSettings settings = port(DeviceKind::kVdev, "net_null0");
  settings.queues = 2;
  std::uint32_t numbers = 0;

  const auto plan = plan_port(settings, 3, numbers);

  ASSERT_FALSE(plan);
  EXPECT_EQ(plan.error().message, "port net0: 3 workers need as many queues, it has 2");
}

// Frames of a client with one queue came back damaged.
TEST(PlanPort, RefusesAMemifServerWithSeveralQueues) {
  const PortSettings server = port(DeviceKind::kVdev, "net_memif0,role=server,socket=/run/m");
  PortSettings two_queues = server;
  two_queues.queues = 2;
  std::uint32_t numbers = 0;

  const auto two_workers = plan_port(server, 2, numbers);

  ASSERT_FALSE(two_workers);
  EXPECT_EQ(two_workers.error().message,
            "port net0: net_memif as server does not learn how many queues its client has, and "
            "damages frames when it has fewer than 2; be the client (role=client), or use one "
            "worker");
  EXPECT_FALSE(plan_port(two_queues, 1, numbers));
  EXPECT_TRUE(plan_port(server, 1, numbers));
}

TEST(PlanPort, TakesAMemifClientWithSeveralQueuesBecauseTheServerRefusesFewer) {
  std::uint32_t numbers = 0;

  EXPECT_TRUE(plan_port(port(DeviceKind::kVdev, "net_memif0,role=client"), 2, numbers));
  EXPECT_TRUE(plan_port(port(DeviceKind::kVdev, "net_memif0"), 2, numbers));
}

TEST(PlanPort, KnowsWhichVdevsAKernelFeeds) {
  std::uint32_t numbers = 0;

  EXPECT_TRUE(plan_port(port(DeviceKind::kVdev, "net_tap0,iface=t0"), 1, numbers)->kernel_fed);
  EXPECT_TRUE(plan_port(port(DeviceKind::kVdev, "net_af_packet0,iface=x"), 1, numbers)->kernel_fed);
  EXPECT_FALSE(plan_port(port(DeviceKind::kVdev, "net_memif0"), 1, numbers)->kernel_fed);
}

TEST(PlanPort, KnowsWhichVdevsShareMemoryWithTheirPeer) {
  std::uint32_t numbers = 0;
  const auto shares = [&](const char* device) {
    return plan_port(port(DeviceKind::kVdev, device), 1, numbers)->shares_memory;
  };

  EXPECT_TRUE(shares("net_memif0,role=client,zero-copy=yes"));
  EXPECT_TRUE(shares("net_virtio_user0,path=/x"));
  EXPECT_FALSE(shares("net_memif0,role=client"));
}

TEST(EalArguments, TakeSharedMemoryWholeAndInOneFile) {
  MemoryChoice memory;
  memory.hugepages = true;
  memory.mib = 300;
  EalSettings settings;
  const auto given = [&] { return eal_arguments(settings, memory, {0, 1}); };

  EXPECT_THAT(given(), testing::Not(testing::Contains("-m")));
  settings.shared_memory = true;
  EXPECT_THAT(given(), testing::IsSupersetOf({"--single-file-segments", "-m", "300"}));
}

TEST(EalArguments, LeaveAddressesVirtualUnlessADeviceReadsMemoryItself) {
  EalSettings settings;
  EXPECT_THAT(eal_arguments(settings, {}, {0}), testing::Contains("--iova-mode=va"));
  settings.pci = {"0000:03:00.0"};
  EXPECT_THAT(eal_arguments(settings, {}, {0}), testing::Not(testing::Contains("--iova-mode=va")));
}

}  // namespace
}  // namespace sluice::dpdk
