#include "dataplane/core/conn/states.h"

#include <gtest/gtest.h>

namespace sluice::core {
namespace {

constexpr auto kForward = Direction::kForward;
constexpr auto kReply = Direction::kReply;
constexpr std::uint8_t kSynAck = kTcpSyn | kTcpAck;

class TcpStates : public testing::Test {
 protected:
  ConnState packet(Direction d, std::uint8_t signal) {
    state_ = next_state(state_, d, signal, replies_seen_, flags_);
    return state_;
  }
  void establish() {
    packet(kReply, kSynAck);
    packet(kForward, kTcpAck);
  }
  ConnState state_ = initial_state(6);
  std::uint8_t flags_ = 0;
  bool replies_seen_ = true;
};

TEST_F(TcpStates, HandshakeEstablishes) {
  EXPECT_EQ(state_, ConnState::kSynSent);
  EXPECT_EQ(packet(kReply, kSynAck), ConnState::kSynReceived);
  EXPECT_EQ(packet(kForward, kTcpAck), ConnState::kEstablished);
}

TEST_F(TcpStates, RetransmittedHandshakePacketsChangeNothing) {
  EXPECT_EQ(packet(kForward, kTcpSyn), ConnState::kSynSent);
  packet(kReply, kSynAck);
  EXPECT_EQ(packet(kForward, kTcpSyn), ConnState::kSynReceived);
  EXPECT_EQ(packet(kReply, kSynAck), ConnState::kSynReceived);
}

TEST_F(TcpStates, AckOfTheClientAloneDoesNotEstablishWhenRepliesAreSeen) {
  EXPECT_EQ(packet(kForward, kTcpAck), ConnState::kSynSent);
}

TEST_F(TcpStates, AckOfTheClientEstablishesWhenRepliesPassElsewhere) {
  replies_seen_ = false;
  EXPECT_EQ(packet(kForward, kTcpAck), ConnState::kEstablished);
}

TEST_F(TcpStates, FinOfBothSidesClosesInTwoSteps) {
  establish();
  EXPECT_EQ(packet(kForward, kTcpFin | kTcpAck), ConnState::kFinWait);
  EXPECT_EQ(packet(kForward, kTcpFin | kTcpAck), ConnState::kFinWait);
  EXPECT_EQ(packet(kReply, kTcpFin | kTcpAck), ConnState::kTimeWait);
  EXPECT_EQ(flags_ & kEntryBackendClosedFirst, 0);
}

TEST_F(TcpStates, RemembersThatTheBackendClosedFirst) {
  establish();
  packet(kReply, kTcpFin | kTcpAck);
  EXPECT_EQ(packet(kForward, kTcpFin | kTcpAck), ConnState::kTimeWait);
  EXPECT_NE(flags_ & kEntryBackendClosedFirst, 0);
}

TEST_F(TcpStates, ResetClosesFromEveryOpenState) {
  EXPECT_EQ(packet(kReply, kTcpRst | kTcpAck), ConnState::kClosed);
  state_ = initial_state(6);
  establish();
  EXPECT_EQ(packet(kForward, kTcpRst), ConnState::kClosed);
}

TEST_F(TcpStates, NothingReopensAFinishedConnection) {
  for (const ConnState over : {ConnState::kTimeWait, ConnState::kClosed, ConnState::kHeld}) {
    for (const std::uint8_t signal : {kTcpAck, kTcpSyn, kTcpRst, kTcpFin}) {
      state_ = over;
      EXPECT_EQ(packet(kForward, signal), over);
    }
  }
}

// F4, F19: the SYN that meets a finished entry starts a new connection itself.
TEST(Reuse, OnlyASynOfTheClientReusesAFinishedConnection) {
  EXPECT_TRUE(reusable_by(ConnState::kTimeWait, kTcpSyn, true));
  EXPECT_TRUE(reusable_by(ConnState::kClosed, kTcpSyn, true));
  EXPECT_TRUE(reusable_by(ConnState::kHeld, kTcpSyn, true));
  EXPECT_FALSE(reusable_by(ConnState::kTimeWait, kTcpAck, true));
  EXPECT_FALSE(reusable_by(ConnState::kTimeWait, kSynAck, true));
  EXPECT_FALSE(reusable_by(ConnState::kFinWait, kTcpSyn, true));
  EXPECT_FALSE(reusable_by(ConnState::kEstablished, kTcpSyn, true));
  EXPECT_FALSE(reusable_by(ConnState::kSynSent, kTcpSyn, true));
}

TEST(Reuse, HalfClosedIsReusableWhereTheOtherFinIsNeverSeen) {
  EXPECT_TRUE(reusable_by(ConnState::kFinWait, kTcpSyn, false));
}

TEST(UdpStates, ReplyMakesAStream) {
  std::uint8_t flags = 0;
  EXPECT_EQ(initial_state(17), ConnState::kUdpNew);
  EXPECT_EQ(next_state(ConnState::kUdpNew, kForward, 0, true, flags), ConnState::kUdpNew);
  EXPECT_EQ(next_state(ConnState::kUdpNew, kReply, 0, true, flags), ConnState::kUdpStream);
  EXPECT_EQ(next_state(ConnState::kUdpNew, kForward, 0, false, flags), ConnState::kUdpStream);
}

TEST(SctpStates, FollowsTheAssociation) {
  std::uint8_t flags = 0;
  EXPECT_EQ(initial_state(132), ConnState::kSctpInit);
  EXPECT_EQ(next_state(ConnState::kSctpInit, kReply, sctp_signal(2), true, flags),
            ConnState::kSctpEstablished);
  EXPECT_EQ(next_state(ConnState::kSctpEstablished, kForward, sctp_signal(0), true, flags),
            ConnState::kSctpEstablished);
  EXPECT_EQ(next_state(ConnState::kSctpEstablished, kForward, sctp_signal(7), true, flags),
            ConnState::kSctpShutdown);
  EXPECT_EQ(next_state(ConnState::kSctpInit, kReply, sctp_signal(6), true, flags),
            ConnState::kSctpShutdown);
  EXPECT_TRUE(reusable_by(ConnState::kSctpShutdown, sctp_signal(1), true));
}

TEST(Steady, OnlyPlainPacketsOfSteadyStatesTakeTheFastPath) {
  EXPECT_TRUE(is_steady(ConnState::kEstablished, kTcpAck));
  EXPECT_TRUE(is_steady(ConnState::kUdpStream, 0));
  EXPECT_FALSE(is_steady(ConnState::kEstablished, kTcpFin | kTcpAck));
  EXPECT_FALSE(is_steady(ConnState::kEstablished, kTcpRst));
  EXPECT_FALSE(is_steady(ConnState::kSynSent, kTcpAck));
}

TEST(Steady, EveryStateButFreeIsInExactlyOneGroup) {
  for (std::size_t s = 1; s < kConnStates; ++s) {
    const auto state = static_cast<ConnState>(s);
    const int groups = in_states(state, kHalfOpenStates) + in_states(state, kSteadyStates) +
                       in_states(state, kClosingStates);
    EXPECT_EQ(groups, 1) << state_name(state);
    EXPECT_GT(ConnTimeouts{}[state], 0u) << state_name(state);
  }
  EXPECT_FALSE(in_states(ConnState::kFree, kListedStates | kSteadyStates));
}

TEST(Ticks, RoundUpAndClamp) {
  EXPECT_EQ(ticks_of_ms(0), 0u);
  EXPECT_EQ(ticks_of_ms(1), 1u);
  EXPECT_EQ(ticks_of_ms(2), 2u);
  EXPECT_GE(std::uint64_t{ticks_of_ms(900'000)} << kTickShift, 900'000'000'000u);
  EXPECT_LT(ticks_of_ms(UINT64_MAX), 0x80000000u);
}

}  // namespace
}  // namespace sluice::core
