// Neighbours while somebody sends from addresses he made up: a worker, the mirror's books, and a
// kernel in which only some addresses answer.

#include <chrono>
#include <map>
#include <set>

#include "dataplane/pipeline/next_hop_places.h"
#include "kni/exception/wish_book.h"
#include "test/unit/pipeline/fixture.h"

namespace sluice::test {
namespace {

using kni::HostNeighbour;
using kni::NeighbourWish;
using pipeline::NeighbourState;
using pipeline::PortIndex;

/// What kni::Mirror and dpdk::WorkerGroup are together, over a kernel whose neighbours answer a
/// step after they were asked for.
class FakeMirror {
 public:
  explicit FakeMirror(SteppedGroup& group) : group_(group), places_(group.hops()) {}

  std::set<core::IpAddress> answering;
  std::uint64_t asks = 0;

  void step(std::uint64_t ms) {
    const kni::WishBook::Time now{std::chrono::milliseconds(1'000'000 + ms)};
    places_.turn_over(group_.publisher().cell(), [&] { return group_.publisher().renew_epoch(); });
    for (const core::IpAddress& address : std::exchange(asked_, {})) {
      kernel_[address] = answering.contains(address) ? HostNeighbour::State::kReachable
                                                     : HostNeighbour::State::kFailed;
      tell(address, now);
    }
    std::vector<core::IpAddress> lost;
    for (const auto& [address, state] : kernel_) {
      if (state == HostNeighbour::State::kReachable && !answering.contains(address)) {
        lost.push_back(address);
      }
    }
    for (const core::IpAddress& address : lost) {
      kernel_[address] = HostNeighbour::State::kFailed;
      tell(address, now);
    }
    std::vector<NeighbourWish> wishes;
    for (const pipeline::NeighbourRequest& request : group_.take_requests()) {
      if (places_.request(request)) {
        wishes.push_back({0, request.address, request.vouched, request.seen});
      }
    }
    book_.take(wishes, now);
    book_.refresh(now);
  }
  [[nodiscard]] std::size_t wished() const { return book_.size(); }
  [[nodiscard]] std::size_t kernel_size() const { return kernel_.size(); }
  static core::MacAddress mac_of(const core::IpAddress& address) {
    const std::uint8_t* a = address.data();
    return core::MacAddress{{2, 1, a[0], a[1], a[2], a[3]}};
  }

 private:
  kni::WishBook::Calls calls() {
    kni::WishBook::Calls calls;
    calls.state = [this](const NeighbourWish& wish) { return state_of(wish.address); };
    calls.taken = [this](const NeighbourWish& wish) { write(wish.address); };
    calls.ask = [this](const NeighbourWish& wish) {
      ++asks;
      asked_.insert(wish.address);
      kernel_.try_emplace(wish.address, HostNeighbour::State::kUnresolved);
      return true;
    };
    calls.forget = [this](const NeighbourWish& wish) {
      kernel_.erase(wish.address);
      asked_.erase(wish.address);
      places_.forget(PortIndex{0}, wish.address);
    };
    return calls;
  }
  HostNeighbour::State state_of(const core::IpAddress& address) const {
    const auto at = kernel_.find(address);
    return at == kernel_.end() ? HostNeighbour::State::kUnresolved : at->second;
  }
  void write(const core::IpAddress& address) {
    const auto state = state_of(address);
    places_.set(PortIndex{0}, address, mac_of(address),
                state == HostNeighbour::State::kReachable ? NeighbourState::kReachable
                : state == HostNeighbour::State::kFailed  ? NeighbourState::kFailed
                                                          : NeighbourState::kUnresolved);
  }
  void tell(const core::IpAddress& address, kni::WishBook::Time now) {
    if (book_.changed({0, address, {}, state_of(address)}, now)) {
      write(address);
    }
  }

  SteppedGroup& group_;
  pipeline::NextHopPlaces places_;
  std::map<core::IpAddress, HostNeighbour::State> kernel_;
  std::set<core::IpAddress> asked_;
  kni::WishBook book_{{}, calls()};
};

SteppedGroupConfig small_directory() {
  SteppedGroupConfig config;
  config.next_hops = 256;
  config.connections = 65535;
  config.resolve_neighbours = false;
  return config;
}

class HopFloodTest : public PipelineTest {
 protected:
  HopFloodTest() : PipelineTest(small_directory()), mirror_(group_) { answers(kB1); }

  void answers(const std::string& address) {
    mirror_.answering.insert(*core::parse_address(address));
  }
  /// A datagram of `client` and the backend's answer to it.
  void talk(const std::string& client) {
    group_.inject(0, udp4(client, "203.0.113.53", 5000, 53));
    group_.inject(0, udp4(backend_, client, 5353, 5000));
  }
  /// One millisecond, with `made_up` clients that nobody has seen before.
  void tick(int made_up) {
    for (int n = 0; n < made_up; ++n, ++made_up_) {
      talk("100." + std::to_string(made_up_ >> 16 & 0xff) + "." +
           std::to_string(made_up_ >> 8 & 0xff) + "." + std::to_string(made_up_ & 0xff));
    }
    group_.advance_ms(2);
    group_.step(0);
    mirror_.step(ms_ += 2);
    for (const SentFrame& f : group_.take_sent()) {
      const PacketView view(f.bytes);
      if (!view.is_v4()) {
        continue;  // an announcement
      }
      ASSERT_EQ(view.eth_dst(),
                core::to_string(FakeMirror::mac_of(*core::parse_address(view.dst()))));
      ++reached_[view.dst()];
    }
  }
  /// Milliseconds until something reaches `address`, `send` being done every 20 ms; at most 4 s.
  template <class Send>
  std::uint64_t time_to_reach(const std::string& address, int made_up, Send&& send) {
    const std::uint64_t begin = ms_;
    for (int n = 0; reached_[address] == 0 && n < 2000; ++n) {
      if (n % 10 == 0) {
        send();
      }
      tick(made_up);
    }
    return ms_ - begin;
  }

  FakeMirror mirror_;
  std::string backend_ = kB1;
  std::uint32_t made_up_ = 0;
  std::uint64_t ms_ = 0;
  std::map<std::string, int> reached_;
};

TEST_F(HopFloodTest, ANewBackendIsReachedAtOnceDuringIt) {
  for (int n = 0; n < 1000; ++n) {
    tick(7);
  }
  answers(kB2);
  tables_.services["dns"].endpoints = {"10.244.2.22:5353"};
  apply();
  backend_ = kB2;
  EXPECT_LE(time_to_reach(kB2, 7, [&] { talk(kClient); }), 10u);
}

TEST_F(HopFloodTest, ANewClientIsReachedAfterItAtOnceAndDuringItAfterAWhile) {
  for (int n = 0; n < 1000; ++n) {
    tick(7);
  }
  answers(kClient);
  answers(kClient2);
  EXPECT_LE(time_to_reach(kClient, 7, [&] { talk(kClient); }), 1500u);
  EXPECT_LE(time_to_reach(kClient2, 0, [&] { talk(kClient2); }), 20u);
  EXPECT_GT(count(Counter::kHopQueueEvicted), 0u);
}

TEST_F(HopFloodTest, ANewClientThatAsksForTheVipIsReachedAtOnceDuringIt) {
  tables_.announce_vips = true;
  apply();
  for (int n = 0; n < 1000; ++n) {
    tick(7);
  }
  answers(kClient);
  group_.inject(
      0, PacketBuilder().eth(kPeerMac, kBroadcastMac).arp_request(kClient, "203.0.113.53").build());
  group_.advance_ms(1);
  group_.step(0);
  group_.take_sent();
  tick(7);
  EXPECT_LE(time_to_reach(kClient, 7, [&] { talk(kClient); }), 6u);
}

TEST_F(HopFloodTest, WhatTheKernelIsAskedForIsBoundedAndForgotten) {
  for (int n = 0; n < 2000; ++n) {
    tick(7);
    ASSERT_LE(mirror_.kernel_size(), 300u);
  }
  EXPECT_LE(mirror_.asks, 4u * 1000 + 200);
  EXPECT_GT(group_.hops().available(), 250u);
  for (int n = 0; n < 17'500; ++n) {
    tick(0);
  }
  EXPECT_LE(mirror_.wished(), 1u);  // the backend
}

// Clients that were there once and left make room for those that come, and a flow of one that left
// never uses the place that another one has by now.
TEST_F(HopFloodTest, PlacesOfClientsThatLeftGoToOthers) {
  const auto client = [](int n) { return "198.18.0." + std::to_string(n); };
  const auto come = [&](int first, int last) {
    for (int n = first; n < last; ++n) {
      answers(client(n));
      talk(client(n));
      tick(0);
      for (int wait = 0; wait < 5 && reached_[client(n)] == 0; ++wait) {
        tick(0);
      }
    }
  };
  come(0, 185);
  EXPECT_EQ(reached_[client(184)], 1);
  for (int n = 0; n < 185; ++n) {
    mirror_.answering.erase(*core::parse_address(client(n)));
  }
  for (int n = 0; n < 17'000; ++n) {
    tick(0);
  }
  come(185, 250);
  EXPECT_EQ(reached_[client(249)], 1);
  group_.inject(0, udp4(kB1, client(1), 5353, 5000));
  tick(0);
  EXPECT_EQ(count(Counter::kHeldNeighbour), 1u);
  EXPECT_EQ(reached_[client(1)], 1);
}

}  // namespace
}  // namespace sluice::test
