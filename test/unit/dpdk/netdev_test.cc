#include "dataplane/dpdk/netdev.h"

#include <gtest/gtest.h>

namespace sluice::dpdk {
namespace {

TEST(AfXdpVdevs, AreOneDevicePerQueueInCopyModeWithoutBusyPolling) {
  const auto vdevs = af_xdp_vdevs("gw0", 2, 3);

  ASSERT_EQ(vdevs.size(), 2u);
  EXPECT_EQ(vdevs[0],
            "net_af_xdp3,iface=gw0,start_queue=0,queue_count=1,force_copy=1,busy_budget=0");
  EXPECT_EQ(vdevs[1],
            "net_af_xdp4,iface=gw0,start_queue=1,queue_count=1,force_copy=1,busy_budget=0");
}

TEST(AfPacketVdev, HasFramesThatHoldTheMtu) {
  EXPECT_EQ(af_packet_vdev("gw0", 2, 0, 1500),
            "net_af_packet0,iface=gw0,qpairs=2,blocksz=4096,framesz=2048,framecnt=1024");
  EXPECT_EQ(af_packet_vdev("gw0", 1, 1, 9000),
            "net_af_packet1,iface=gw0,qpairs=1,blocksz=16384,framesz=16384,framecnt=1024");
}

TEST(ReadNetdev, RefusesAnUnknownInterface) {
  const auto info = read_netdev("nosuchif0");

  ASSERT_FALSE(info);
  EXPECT_EQ(info.error().message, "interface nosuchif0: no such interface");
}

TEST(ReadNetdev, RefusesWhatIsNotEthernet) {
  const auto info = read_netdev("lo");

  ASSERT_FALSE(info);
  EXPECT_EQ(info.error().message, "interface lo: it is not Ethernet");
}

}  // namespace
}  // namespace sluice::dpdk
