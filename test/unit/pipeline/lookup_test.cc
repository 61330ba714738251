// Lookups go by hashes (conn_table.h). Here all keys begin alike, so that each packet but those of
// one flow meets the entry of another first.

#include "dataplane/pipeline/stage_lookup.h"

#include "test/support/map_index.h"
#include "test/unit/pipeline/fixture.h"

namespace sluice::test {
namespace {

/// A bulk lookup says for any key what the last one added leads to.
template <class Key>
class AlikeIndex : public MapIndex<Key> {
 public:
  bool insert(const Key& key, std::uint32_t hash, core::KeyData data) noexcept {
    const bool placed = MapIndex<Key>::insert(key, hash, data);
    if (placed) {
      this->mistake_all_for(data);
    }
    return placed;
  }
};

struct AlikeIndexes : IndexMaker {
  AnyIndex<core::FlowKey4> make4(std::uint32_t) override {
    return AnyIndex<core::FlowKey4>(AlikeIndex<core::FlowKey4>());
  }
  AnyIndex<core::FlowKey6> make6(std::uint32_t) override {
    return AnyIndex<core::FlowKey6>(AlikeIndex<core::FlowKey6>());
  }
};

class LookupTest : public PipelineTest {
 protected:
  LookupTest() : PipelineTest(config()) {}

 private:
  static SteppedGroupConfig config() {
    static AlikeIndexes indexes;
    SteppedGroupConfig config;
    config.indexes = &indexes;
    return config;
  }
};

TEST_F(LookupTest, FlowsWhoseHashesBeginAlikeKeepTheirOwnBackends) {
  constexpr std::uint16_t kFlows = 10;
  std::vector<std::string> backends;
  for (std::uint16_t n = 0; n < kFlows; ++n) {
    backends.push_back(establish(static_cast<std::uint16_t>(1000 + n)));
  }
  EXPECT_EQ(std::count(backends.begin(), backends.end(), kB1), kFlows / 2) << "else for nothing";

  for (std::uint16_t n = 0; n < kFlows; ++n) {
    const auto port = static_cast<std::uint16_t>(1000 + n);
    const std::string client = std::string(kClient) + ":" + std::to_string(port);
    EXPECT_EQ(sent(0, tcp4(kClient, kVip, port, 80, kAck)),
              Flows{"tcp " + client + " > " + backends[n] + ":8080"});
    EXPECT_EQ(sent(0, tcp4(backends[n], kClient, 8080, port, kAck)),
              Flows{"tcp " + std::string(kVip) + ":80 > " + client});
  }
}

TEST_F(LookupTest, Ipv6FlowsToo) {
  for (const auto port : {std::uint16_t{1000}, std::uint16_t{1001}}) {
    sent(0, tcp6(kClient6, kVip6, port, 80, kSyn));
  }
  for (const auto port : {std::uint16_t{1000}, std::uint16_t{1001}}) {
    const std::string client = "[" + std::string(kClient6) + "]:" + std::to_string(port);
    EXPECT_EQ(sent(0, tcp6(kClient6, kVip6, port, 80, kAck)),
              Flows{"tcp " + client + " > [" + kB6 + "]:8080"});
    EXPECT_EQ(sent(0, tcp6(kB6, kClient6, 8080, port, kAck)),
              Flows{"tcp [" + std::string(kVip6) + "]:80 > " + client});
  }
}

TEST_F(LookupTest, FlowThatIsTakenForAnotherAndUnknownIsAMissAndOpened) {
  const std::string first = establish(1000);
  const auto hits = count(Counter::kConnHits);
  const auto misses = count(Counter::kConnMisses);

  const std::string second = establish(2000);

  EXPECT_NE(second, first) << "round robin";
  EXPECT_EQ(count(Counter::kConnMisses), misses + 1);
  EXPECT_EQ(count(Counter::kConnHits), hits + 2);
}

TEST_F(LookupTest, StrangersPacketIsLeftAsItIs) {
  establish(1000);
  const auto hits = count(Counter::kConnHits);

  EXPECT_EQ(sent(0, tcp4(kClient, kB1, 1000, 9999, kAck)), Flows{});

  EXPECT_EQ(count(Counter::kConnHits), hits);
}

}  // namespace
}  // namespace sluice::test
