// What of the control side runs on several threads at once: the result is that of one thread, and
// ThreadSanitizer sees it.
#include <gtest/gtest.h>

#include <sched.h>

#include <atomic>
#include <numeric>
#include <stdexcept>
#include <thread>

#include "control/compile/compiler.h"
#include "control/publish/all_cores.h"
#include "control/publish/assembly_line.h"
#include "control/server/object_pages.h"
#include "control/server/snapshot_decoder.h"
#include "dataplane/core/fwd/text.h"
#include "test/support/small_cluster.h"

namespace sluice {
namespace {

constexpr std::size_t kServices = 2000;

std::string address(const char* net, std::size_t i) {
  return net + std::to_string(i / 250) + "." + std::to_string(i % 250 + 1);
}

/// Services of two endpoints each; `revision` moves the first one of every third.
model::ClusterState cluster(std::size_t revision) {
  model::ClusterState state;
  for (std::size_t i = 0; i < kServices; ++i) {
    const std::string name = "s" + std::to_string(i);
    const std::string net = i % 3 == 0 ? "10." + std::to_string(50 + revision) + "." : "10.42.";
    auto service = test::service(name, address("10.43.", i));
    auto slice = test::slice(name, {address(net.c_str(), i), address("10.44.", i)});
    state.services.emplace(service.name, std::move(service));
    state.slices.emplace(slice.name, std::move(slice));
  }
  return state;
}

TEST(AllCores, EveryIndexIsTakenOnce) {
  for (const std::size_t n : {0U, 1U, 2U, 7U, 1000U}) {
    std::vector<std::atomic<int>> taken(n);
    publish::on_all_cores(n, [&](std::size_t i) { ++taken[i]; });
    for (const auto& times : taken) {
      EXPECT_EQ(times, 1);
    }
  }
}

TEST(AllCores, WhatOneThrowsIsThrownWhenAllHaveEnded) {
  std::atomic<int> running{0};
  EXPECT_THROW(publish::on_all_cores(500,
                                     [&](std::size_t i) {
                                       ++running;
                                       --running;
                                       if (i == 250) {
                                         throw std::runtime_error("no");
                                       }
                                     }),
               std::runtime_error);
  EXPECT_EQ(running, 0);
}

// Threads inherit where their parent may run: on one core they would only take turns.
TEST(AllCores, AThreadThatIsPinnedToOneCoreStartsNoOther) {
  std::atomic<int> elsewhere{0};
  std::thread pinned([&] {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(static_cast<unsigned>(sched_getcpu()), &one);
    ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
    const auto self = std::this_thread::get_id();
    publish::on_all_cores(1000,
                          [&](std::size_t) { elsewhere += std::this_thread::get_id() != self; });
  });
  pinned.join();
  EXPECT_EQ(elsewhere, 0);
}

/// Tables of a state and then of another one, as text, and how many Services were short of ids.
std::vector<std::string> compiled(const core::ParallelFor& parallel, const core::BatchLine& line,
                                  compile::IdRegistry::Limits limits) {
  test::SmallCluster node;
  compile::IdRegistry ids(limits);
  compile::Compiler compiler(compile::Profile::kNftables, ids, nullptr, parallel, line);
  model::ClusterState state;
  std::vector<std::string> out;
  for (const std::size_t revision : {0U, 1U, 2U}) {
    auto next = cluster(revision);
    const auto changes = model::exchange(state, next, parallel);
    const auto result = compiler.update(state, changes, node.config, node.host);
    EXPECT_TRUE(result.has_value()) << result.error().message;
    out.push_back(result ? core::to_text(*result->table) : "");
    out.push_back(result ? std::to_string(result->report.lines.size()) : "");
    out.push_back(std::to_string(changes.services.size() + changes.slices.size()));
  }
  return out;
}

void backwards(std::size_t n, const std::function<void(std::size_t)>& body) {
  for (std::size_t i = n; i-- > 0;) {
    body(i);
  }
}

/// As far from one after the other as a line may be: the newest batch of a window first.
void backwards_line(std::size_t n, const std::vector<core::Station>& stations) {
  for (std::size_t from = 0; from < n; from += core::kBatchWindow) {
    const std::size_t end = std::min(n, from + core::kBatchWindow);
    for (const core::Station& station : stations) {
      for (std::size_t i = from; i < end; ++i) {
        station.work(station.in_order ? i : from + end - 1 - i);
      }
    }
  }
}

TEST(AssemblyLine, StationsInOrderTakeOneAfterTheOtherWhateverTheThreads) {
  constexpr std::size_t kBatches = 500;
  std::vector<std::size_t> first;
  std::vector<std::size_t> second;
  std::atomic<int> inside{0};
  std::vector<int> free(kBatches);
  const auto in_order = [&](std::vector<std::size_t>& seen) {
    return core::Station{[&inside, &seen](std::size_t batch) {
                           EXPECT_EQ(inside.fetch_add(1), 0);
                           seen.push_back(batch);
                           --inside;
                         },
                         true};
  };
  publish::on_a_line(kBatches, {{[&](std::size_t batch) { ++free[batch]; }, false},
                                in_order(first),
                                {[&](std::size_t batch) { ++free[batch]; }, false},
                                in_order(second)});
  std::vector<std::size_t> wanted(kBatches);
  std::iota(wanted.begin(), wanted.end(), 0U);
  EXPECT_EQ(first, wanted);
  EXPECT_EQ(second, wanted);
  EXPECT_EQ(free, std::vector<int>(kBatches, 2));
}

TEST(AssemblyLine, WhatAStationThrowsEndsAllThreads) {
  EXPECT_THROW(publish::on_a_line(500, {{[](std::size_t) {}, false},
                                        {[](std::size_t batch) {
                                           if (batch == 100) {
                                             throw std::runtime_error("no");
                                           }
                                         },
                                         true}}),
               std::runtime_error);
}

TEST(CompileOnManyThreads, MakesTheTableOfOne) {
  const auto wanted = compiled(core::one_after_another, core::batch_after_batch, {});
  EXPECT_EQ(wanted, compiled(publish::on_all_cores, publish::on_a_line, {}));
  EXPECT_EQ(wanted, compiled(backwards, backwards_line, {}));
}

TEST(CompileOnManyThreads, RefusesTheSameObjectsWhenIdsRunOut) {
  const compile::IdRegistry::Limits few{kServices - 100, kServices + 700};
  const auto wanted = compiled(core::one_after_another, core::batch_after_batch, few);
  EXPECT_NE(wanted[1], "0");
  EXPECT_EQ(wanted, compiled(publish::on_all_cores, publish::on_a_line, few));
  EXPECT_EQ(wanted, compiled(backwards, backwards_line, few));
}

/// Gives the pages of `state`, and `again` once more in the middle.
void read_in(const model::ClusterState& state, const v1::Objects* again,
             server::SnapshotDecoder& decoder) {
  std::size_t number = 0;
  server::for_each_page(state, {}, [&](const v1::Objects& page) {
    for (const v1::Objects* objects : {&page, number == 1 ? again : nullptr}) {
      if (objects != nullptr) {
        *decoder.fresh()->mutable_objects() = *objects;
        decoder.take(objects->ByteSizeLong());
      }
    }
    ++number;
    return true;
  });
  decoder.finish();
}

TEST(SnapshotDecoder, PagesBecomeTheStateTheyWereMadeOf) {
  const auto state = cluster(0);
  server::SnapshotDecoder decoder;
  read_in(state, nullptr, decoder);
  EXPECT_EQ(decoder.state(), state);
  EXPECT_TRUE(decoder.errors().empty());
}

TEST(SnapshotDecoder, OfTwoObjectsOfOneNameTheFirstStaysWhoeverDecodedIt) {
  auto state = cluster(0);
  auto again = state.services.begin()->second;
  again.cluster_ip = again.cluster_ips[0] = "10.43.99.99";
  v1::Objects page;
  *page.add_services() = codec::encode(again);
  server::SnapshotDecoder decoder;
  read_in(state, &page, decoder);
  EXPECT_EQ(decoder.state(), state);
  ASSERT_EQ(decoder.errors().size(), 1U);
  EXPECT_EQ(decoder.errors()[0].object, "service shop/s0");
  EXPECT_EQ(decoder.errors()[0].message, "appears twice");
}

TEST(SnapshotDecoder, StopsAtThePageThatHasTheLastErrorItTakes) {
  server::SnapshotDecoder decoder;
  decoder.limit_errors(5);
  for (int page = 0; page < 20; ++page) {
    auto* objects = decoder.fresh()->mutable_objects();
    for (int i = 0; i < 2; ++i) {
      auto service = test::service("s" + std::to_string(2 * page + i), "no address");
      *objects->add_services() = codec::encode(service);
    }
    decoder.take(objects->ByteSizeLong());
  }
  decoder.finish();
  EXPECT_TRUE(decoder.enough_errors());
  // Two each for spec.clusterIP and spec.clusterIPs[0].
  EXPECT_EQ(decoder.errors().size(), 8U);
  EXPECT_EQ(decoder.errors()[0].object, "service shop/s0");
}

TEST(SnapshotDecoder, LetsFewLargePagesWaitAndKeepsNoneAtTheEnd) {
  constexpr std::size_t kMost = std::size_t{8} << 20;
  server::SnapshotDecoder decoder;
  for (int page = 0; page < 4; ++page) {
    auto service = test::service("s" + std::to_string(page), "10.43.0.1");
    auto* object = decoder.fresh()->mutable_objects()->add_services();
    *object = codec::encode(service);
    for (std::size_t bytes = 0; bytes < kMost / 2 + kMost / 4; bytes += 4096) {
      object->mutable_spec()->add_external_ips(std::string(4000, 'x'));
    }
    decoder.take(object->ByteSizeLong());
    EXPECT_LE(decoder.waiting_bytes(), kMost);
  }
  decoder.finish();
  EXPECT_EQ(decoder.waiting_bytes(), 0U);
  EXPECT_EQ(decoder.idle_pages(), 0U);
}

TEST(SnapshotDecoder, MayBeLeftInTheMiddle) {
  server::SnapshotDecoder decoder;
  const auto state = cluster(0);
  server::for_each_page(state, {}, [&](const v1::Objects& page) {
    *decoder.fresh()->mutable_objects() = page;
    decoder.take(page.ByteSizeLong());
    return true;
  });
}

}  // namespace
}  // namespace sluice
