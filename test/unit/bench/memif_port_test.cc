// Both ends of a memif as the generator has them, against each other.

#include "bench/generator/memif_port.h"

#include <array>
#include <atomic>
#include <cstring>
#include <memory>
#include <string>
#include <thread>

#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "bench/generator/flow_set.h"

namespace sluice::bench {
namespace {

constexpr std::uint16_t kSlots = 128;

class MemifPortTest : public testing::Test {
 protected:
  MemifPortTest() {
    options_.socket = testing::TempDir() + "memif-" + std::to_string(getpid());
    options_.descriptors = kSlots;
    options_.frame = 1514;
  }
  ~MemifPortTest() override { unlink(options_.socket.c_str()); }

  void listen() {
    MemifOptions options = options_;
    options.server = true;
    auto server = MemifPort::open(options);
    ASSERT_TRUE(server) << server.error().message;
    server_ = std::move(*server);
  }
  void connect() {
    std::atomic<bool> done = false;
    std::thread other([this, &done] {
      if (auto client = MemifPort::open(options_)) {
        client_ = std::move(*client);
      }
      done = true;
    });
    while (!server_->link_up() && !done) {
      std::this_thread::yield();
    }
    other.join();
    ASSERT_TRUE(client_ != nullptr && client_->link_up());
  }

  /// @return how many of n frames were sent; each begins with a number of its own.
  static std::uint16_t send(Port& port, std::uint16_t n, std::uint32_t& number,
                            std::uint32_t length = 60) {
    Frame frames[Port::kBurst];
    n = port.reserve(frames, n);
    for (std::uint16_t i = 0; i < n; ++i) {
      std::memcpy(frames[i].data, &number, sizeof number);
      frames[i].length = length;
      ++number;
    }
    return port.send(frames, n);
  }
  /// @return how many frames came, which must have the numbers expected.
  static std::uint16_t receive(Port& port, std::uint32_t& expected, std::uint32_t length = 60) {
    Frame frames[Port::kBurst];
    const std::uint16_t got = port.receive(frames);
    for (std::uint16_t i = 0; i < got; ++i, ++expected) {
      std::uint32_t number = 0;
      std::memcpy(&number, frames[i].data, sizeof number);
      EXPECT_EQ(number, expected);
      EXPECT_EQ(frames[i].length, length);
    }
    port.release();
    return got;
  }

  MemifOptions options_;
  std::unique_ptr<MemifPort> server_;
  std::unique_ptr<MemifPort> client_;
};

TEST_F(MemifPortTest, CarriesFramesBothWaysInTheirOrderForLongerThanItsCountersLast) {
  listen();
  connect();

  std::uint32_t sent[2] = {}, seen[2] = {};
  while (seen[1] < 70'000) {  // they have 16 bits
    ASSERT_EQ(send(*client_, 60, sent[0]), 60);
    ASSERT_EQ(send(*server_, 60, sent[1]), 60);
    ASSERT_EQ(receive(*server_, seen[0]), 60);
    ASSERT_EQ(receive(*client_, seen[1]), 60);
  }
}

TEST_F(MemifPortTest, HasRoomForARingOfFramesUntilThePeerTakesThem) {
  listen();
  connect();

  for (const auto& [from, to] : {std::pair<Port*, Port*>{client_.get(), server_.get()},
                                 std::pair<Port*, Port*>{server_.get(), client_.get()}}) {
    std::uint32_t sent = 0, seen = 0;
    while (send(*from, 50, sent) == 50) {
    }
    EXPECT_EQ(sent, kSlots);
    EXPECT_EQ(send(*from, 1, sent), 0);
    EXPECT_EQ(receive(*to, seen), Port::kBurst);
    EXPECT_EQ(send(*from, 64, sent), Port::kBurst);
  }
}

TEST_F(MemifPortTest, TellsTheLengthOfEachFrame) {
  listen();
  connect();

  std::uint32_t sent = 0, seen = 0;
  for (const std::uint32_t length : {60u, 1514u, 60u, 90u}) {
    for (std::uint16_t i = 0; i < 2; ++i) {
      ASSERT_EQ(send(*client_, 64, sent, length), 64);
      ASSERT_EQ(receive(*server_, seen, length), 64);
    }
  }
}

TEST_F(MemifPortTest, ClearsWhatAPeersBufferHeld) {
  listen();
  connect();

  for (Port* port : {static_cast<Port*>(client_.get()), static_cast<Port*>(server_.get())}) {
    Frame frame;
    ASSERT_EQ(port->reserve(&frame, 1), 1);
    frame.data[100] = port == server_.get() ? 1 : 0;
    frame.length = 128;
    port->clear_from(frame, 64);
    EXPECT_EQ(frame.data[100], 0);
  }
}

TEST_F(MemifPortTest, AnswersOnlyWithFramesThatLeaveNothingBehindInASlot) {
  listen();
  connect();
  std::array<std::uint8_t, 86> solicitation{};
  core::store_be16(&solicitation[12], core::kEtherTypeIpv6);
  solicitation[14 + core::ipv6::kNextHeader] = 58;
  solicitation[14 + core::ipv6::kSrc] = 0xfd;
  solicitation[54] = core::kNdNeighborSolicitation;

  for (const auto& [family, answers] : {std::pair{core::Family::kIpv4, 0},  // 64 bytes are written
                                        std::pair{core::Family::kIpv6, 1}}) {
    const auto flows = FlowSet::make(family, {});
    answer_request(*client_, {solicitation.data(), solicitation.size(), nullptr}, *flows);
    Frame frames[Port::kBurst];
    EXPECT_EQ(server_->receive(frames), answers);
    server_->release();
  }
}

/// Tells a server a message of that type, with a file that nobody asked for.
bool tell(int socket, std::uint8_t type) {
  std::array<std::uint8_t, 128> message{type};
  iovec part{message.data(), message.size()};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr header = {};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  header.msg_control = control;
  header.msg_controllen = sizeof control;
  cmsghdr* beside = CMSG_FIRSTHDR(&header);
  beside->cmsg_level = SOL_SOCKET;
  beside->cmsg_type = SCM_RIGHTS;
  beside->cmsg_len = CMSG_LEN(sizeof socket);
  std::memcpy(CMSG_DATA(beside), &socket, sizeof socket);
  return sendmsg(socket, &header, MSG_NOSIGNAL) == static_cast<ssize_t>(message.size());
}

TEST_F(MemifPortTest, KeepsNoFileOfAClientThatDoesNotFollowTheProtocol) {
  listen();
  const auto next = [] {  // the lowest free descriptor
    const int file = dup(0);
    close(file);
    return file;
  };
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  options_.socket.copy(address.sun_path, sizeof address.sun_path - 1);
  constexpr std::uint8_t kDisconnect = 8, kUnknown = 99;
  for (const std::uint8_t wrong : {kDisconnect, kUnknown}) {
    const int before = next();
    const int client = socket(AF_UNIX, SOCK_SEQPACKET, 0);
    ASSERT_EQ(::connect(client, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    ASSERT_TRUE(tell(client, 3) && tell(client, 5) && tell(client, 5) && tell(client, wrong));

    EXPECT_FALSE(server_->link_up());

    close(client);
    EXPECT_EQ(next(), before);
  }
}

TEST_F(MemifPortTest, IsDownUntilAClientComesAndOneThatGoesAtOnceIsNone) {
  listen();
  EXPECT_FALSE(server_->link_up());
  Frame frame;
  EXPECT_EQ(server_->reserve(&frame, 1), 0);
  EXPECT_EQ(server_->receive(&frame), 0);

  {
    auto gone = MemifChannel::connect(options_.socket);
    ASSERT_TRUE(gone);
  }
  EXPECT_FALSE(server_->link_up());
  connect();
}

TEST_F(MemifPortTest, WakesAPeerThatDoesNotPoll) {
  auto listening = MemifChannel::listen(options_.socket);
  ASSERT_TRUE(listening);
  MemifLayout layout;
  std::thread peer([&] {
    auto channel = listening->accept();
    if (channel && channel->learn(layout)) {
      (void)channel->connected();
    }
  });
  auto client = MemifPort::open(options_);
  peer.join();
  ASSERT_TRUE(client);

  eventfd_t seen = 0;
  ASSERT_LT(eventfd_read(layout.to_server.event, &seen), 0);
  std::uint32_t sent = 0;
  ASSERT_EQ(send(**client, 3, sent), 3);
  EXPECT_EQ(eventfd_read(layout.to_server.event, &seen), 0);
  close(layout.to_server.event);
  close(layout.to_client.event);
  munmap(layout.regions.at(0).base, layout.regions.at(0).bytes);
  close(layout.regions.at(0).file);
}

TEST_F(MemifPortTest, WithoutAServerIsAnError) {
  EXPECT_FALSE(MemifPort::open(options_));
}

}  // namespace
}  // namespace sluice::bench
