#pragma once

#include <map>
#include <optional>
#include <random>
#include <set>
#include <vector>

#include <gtest/gtest.h>

#include "test/support/conn_fixture.h"

namespace sluice::test {

// A table and a plain model of it take the same random steps and must agree after each: which flow
// exists, in which state, who had to go for a new one, who expired and when. The model scans
// everything and keeps no lists, so it shares nothing with the table but next_state().
template <class F, class Index>
class ConnModelRun {
 public:
  using Key = typename F::Key;
  using State = core::ConnState;

  ConnModelRun(Index index, const core::ConnTableConfig& config, std::uint64_t seed)
      : under_(std::move(index), config), random_(seed) {}

  void run(int steps) {
    for (step_ = 0; step_ < steps && !testing::Test::HasFailure(); ++step_) {
      under_.advance_ms(2);  // every step has its own tick: "oldest" is never a tie
      const auto dice = random_() % 100;
      if (dice < 55) {
        create();
      } else if (dice < 85) {
        packet();
      } else if (dice < 90) {
        remove();
      } else if (dice < 98) {
        expire(random_() % 20);
      } else {
        expire(random_() % 70'000);
      }
      compare();
    }
    expire(2'000'000);
    expire(100'000);
    expire(10'000);
    EXPECT_TRUE(model_.empty());
    EXPECT_EQ(under_.table().size(), 0u);
  }

 private:
  struct Flow {
    Key forward;
    Key reply;
    State state;
    std::uint8_t flags;
    core::Tick seen;
  };
  using Flows = std::map<core::EntryIndex, Flow>;

  core::NewConn<F> random_flow() {
    constexpr std::uint8_t kProtos[] = {kTcp, kTcp, kTcp, kUdp, kSctp};
    const std::uint8_t proto = kProtos[random_() % 5];
    const auto n = static_cast<std::uint32_t>(random_() % 3000);
    auto flow = random_() % 3 == 0
                    ? fullnat_flow<F>(n, static_cast<std::uint16_t>(5000 + random_() % 200), proto)
                    : nat_flow<F>(n, proto);
    flow.forward.dst = numbered_address<F>(0xcb00710a + random_() % 2);
    return flow;
  }

  typename Flows::iterator holder(const Key& key) {
    for (auto it = model_.begin(); it != model_.end(); ++it) {
      if (it->second.forward == key || it->second.reply == key) {
        return it;
      }
    }
    return model_.end();
  }

  std::optional<core::EntryIndex> oldest(std::uint32_t states) {
    std::optional<core::EntryIndex> found;
    core::Tick best = 0;
    for (const auto& [i, flow] : model_) {
      const core::Tick age = under_.now() - flow.seen;
      if (core::in_states(flow.state, states) && (!found || age > best)) {
        found = i;
        best = age;
      }
    }
    return found;
  }

  std::uint32_t count(std::uint32_t states) {
    std::uint32_t n = 0;
    for (const auto& [i, flow] : model_) {
      n += core::in_states(flow.state, states) ? 1 : 0;
    }
    return n;
  }

  /// What must go so that a new half-open flow has room; nullopt in `ok` = false: nobody.
  std::optional<core::EntryIndex> victim(bool& ok) {
    ok = true;
    if (model_.size() < under_.table().capacity() &&
        count(core::kHalfOpenStates) < under_.table().half_open_limit()) {
      return std::nullopt;
    }
    for (const std::uint32_t states :
         {core::kHalfOpenStates, core::kFinishedStates, core::state_bit(State::kFinWait)}) {
      if (const auto i = oldest(states)) {
        return i;
      }
    }
    ok = false;
    return std::nullopt;
  }

  void create() {
    auto conn = random_flow();
    const bool known = holder(conn.forward) != model_.end();
    conn.forward_is_absent = !known && random_() % 2 == 0;  // as workers say, who looked it up
    std::vector<core::EntryIndex> gone;
    auto expected = core::CreateResult::kCreated;
    if (known) {
      expected = core::CreateResult::kExists;
    } else if (const auto it = holder(conn.reply);
               it != model_.end() && !core::in_states(it->second.state, core::kFinishedStates)) {
      expected = core::CreateResult::kReplyClash;
    } else {
      if (it != model_.end()) {
        gone.push_back(it->first);
        model_.erase(it);
      }
      bool ok = false;
      if (const auto v = victim(ok)) {
        gone.push_back(*v);
        model_.erase(*v);
      }
      expected = ok ? core::CreateResult::kCreated : core::CreateResult::kFull;
    }
    const std::size_t before = under_.log.count();

    const auto outcome = under_.create(conn);

    ASSERT_EQ(outcome.result(), expected) << "step " << step_;
    ASSERT_EQ(under_.log.count() - before, gone.size()) << "step " << step_;
    for (std::size_t g = 0; g < gone.size(); ++g) {
      ASSERT_EQ(under_.log.log()[before + g].first, gone[g]) << "step " << step_;
    }
    if (outcome.result() == core::CreateResult::kCreated) {
      ASSERT_EQ(model_.count(outcome.index()), 0u) << "step " << step_;
      model_[outcome.index()] = {conn.forward, conn.reply, core::initial_state(conn.forward.proto),
                               conn.flags, under_.now()};
    }
  }

  typename Flows::iterator random_entry() {
    auto it = model_.begin();
    std::advance(it, static_cast<long>(random_() % model_.size()));
    return it;
  }

  void packet() {
    if (model_.empty()) {
      return;
    }
    constexpr std::uint8_t kSignals[] = {
        core::kTcpSyn, core::kTcpSyn | core::kTcpAck, core::kTcpAck, core::kTcpAck,
        core::kTcpAck, core::kTcpFin | core::kTcpAck, core::kTcpRst, 0};
    auto& [i, flow] = *random_entry();
    const auto direction = static_cast<core::Direction>(random_() % 2);
    const std::uint8_t signal = kSignals[random_() % 8];
    under_.packet(i, direction, signal);
    flow.state = core::next_state(flow.state, direction, signal, true, flow.flags);
    flow.seen = under_.now();
  }

  void remove() {
    if (!model_.empty()) {
      const auto it = random_entry();
      under_.table().remove(it->first, under_.log);
      model_.erase(it);
    }
  }

  void expire(std::uint64_t ms) {
    const core::Tick sweep = core::ticks_of_ms(under_.table().kSweepSeconds * 1000) + 1000;
    under_.advance_ms(ms);
    const std::size_t before = under_.log.count();
    for (int i = 0; i < 100; ++i) {
      under_.table().expire(under_.now(), under_.log);
    }
    for (std::size_t n = before; n < under_.log.count(); ++n) {
      const auto it = model_.find(under_.log.log()[n].first);
      ASSERT_NE(it, model_.end()) << "released twice, step " << step_;
      ASSERT_TRUE(is_idle(it->second)) << "released early, step " << step_;
      model_.erase(it);
    }
    for (auto& [i, flow] : model_) {
      if (!is_idle(flow)) {
        continue;
      }
      if (under_.table().entry(i).state == State::kHeld && flow.state != State::kHeld) {
        ASSERT_NE(flow.flags & core::kEntrySnatPort, 0);
        flow.state = State::kHeld;
        flow.seen = under_.table().entry(i).last_seen;
        continue;
      }
      const core::Tick late = under_.now() - flow.seen - under_.table().timeouts()[flow.state];
      const bool steady = core::in_states(flow.state, core::kSteadyStates);
      ASSERT_TRUE(steady && late <= sweep) << core::state_name(flow.state) << " step " << step_;
    }
  }

  bool is_idle(const Flow& flow) {
    return under_.now() - flow.seen >= under_.table().timeouts()[flow.state];
  }

  void compare() {
    ASSERT_EQ(under_.table().size(), model_.size()) << "step " << step_;
    ASSERT_EQ(under_.table().half_open(), count(core::kHalfOpenStates)) << "step " << step_;
    if (!model_.empty()) {
      const auto& [i, flow] = *random_entry();
      const auto forward = under_.table().find(flow.forward);
      const auto reply = under_.table().find(flow.reply);
      ASSERT_EQ(forward.index, i);
      ASSERT_EQ(reply.index, i);
      ASSERT_EQ(reply.direction, core::Direction::kReply);
      ASSERT_EQ(under_.table().entry(i).state, flow.state) << "step " << step_;
      ASSERT_EQ(under_.table().entry(i).last_seen, flow.seen) << "step " << step_;
    }
    const auto probe = random_flow();
    ASSERT_EQ(bool(under_.table().find(probe.forward)), holder(probe.forward) != model_.end());
  }

  TableUnderTest<F, Index> under_;
  std::mt19937_64 random_;
  Flows model_;
  int step_ = 0;
};

}  // namespace sluice::test
