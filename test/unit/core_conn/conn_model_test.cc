#include "test/support/conn_model.h"

#include <gtest/gtest.h>

#include "test/support/map_index.h"

namespace sluice::core {
namespace {

template <class F>
void run(std::uint64_t seed, std::uint32_t capacity) {
  SCOPED_TRACE("seed " + std::to_string(seed));
  ConnTableConfig config;
  config.capacity = capacity;
  config.hash_seed = seed;
  using Index = test::MapIndex<typename F::Key>;
  test::ConnModelRun<F, Index> model(Index{}, config, seed);
  model.run(4000);
}

TEST(ConnModel, TableAgreesWithThePlainModelWhenItIsAlwaysFull) {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    run<Ipv4>(seed, 30);
    run<Ipv6>(seed, 30);
  }
}

TEST(ConnModel, TableAgreesWithThePlainModelWithRoomToSpare) {
  for (std::uint64_t seed = 101; seed <= 104; ++seed) {
    run<Ipv4>(seed, 1000);
    run<Ipv6>(seed, 1000);
  }
}

}  // namespace
}  // namespace sluice::core
