#include "bench/floors.h"

#include "bench/new_flows.h"

namespace sluice::bench {
namespace {

using core::Ipv4;

/// Flow n comes, flow n - live goes.
class NewKeys final : public Timed {
 public:
  [[nodiscard]] static MadeSide make(std::uint32_t live) {
    auto index = Index::create({"newkeys"}, live);
    if (!index) {
      return tl::unexpected(index.error());
    }
    auto side = std::unique_ptr<NewKeys>(new NewKeys(std::move(*index), live));
    for (std::uint32_t n = 0; n < live; ++n) {
      side->coming_.set(0, side->space_, n);
      if (!side->add(0)) {
        return tl::unexpected(core::Error{"the index is full"});
      }
    }
    return side;
  }

  bool fill(FrameRing&, std::uint64_t) override {
    for (std::uint32_t i = 0; i < FrameRing::kFrames; ++i, ++next_) {
      coming_.set(i, space_, next_);
      going_.set(i, space_, next_ - live_);
    }
    at_ = 0;
    return true;
  }
  void run(const pipeline::Packet*, std::uint32_t n) noexcept override {
    const std::uint32_t first = 2 * at_, end = 2 * (at_ + n);
    for (std::uint32_t k = first; k < end; ++k) {
      index_.prefetch_change(coming_.hash[k]);
      index_.prefetch_change(going_.hash[k]);
    }
    for (std::uint32_t k = first; k < end; ++k) {
      index_.prefetch_moves(coming_.hash[k]);
      index_.prefetch_key(going_.hash[k]);
    }
    for (std::uint32_t i = at_; i < at_ + n; ++i) {
      done_ += add(i) && remove(i) ? 1 : 0;
    }
    at_ += n;
  }
  [[nodiscard]] std::uint64_t done() const override { return done_; }

 private:
  using Key = core::FlowKey4;
  using Index = dpdk::RteHashIndex<Key>;
  static constexpr std::uint32_t kKeys = 2 * FrameRing::kFrames;

  /// Two keys of each flow.
  struct Keys {
    std::array<Key, kKeys> key;
    std::array<std::uint32_t, kKeys> hash;

    void set(std::uint32_t i, const FlowSpace<Ipv4>& space, std::uint32_t flow) noexcept {
      key[2 * i] = space.forward(flow);
      key[2 * i + 1] = space.reply(flow);
      for (const std::uint32_t k : {2 * i, 2 * i + 1}) {
        hash[k] = core::flow_hash(key[k], 1);
      }
    }
  };

  NewKeys(Index index, std::uint32_t live)
      : index_(std::move(index)), live_(live), next_(live) {}

  bool add(std::uint32_t i) noexcept { return add_key(2 * i) && add_key(2 * i + 1); }
  bool add_key(std::uint32_t k) noexcept {
    return index_.insert(coming_.key[k], coming_.hash[k], {});
  }
  bool remove(std::uint32_t i) noexcept { return remove_key(2 * i) && remove_key(2 * i + 1); }
  bool remove_key(std::uint32_t k) noexcept {
    return index_.erase(going_.key[k], going_.hash[k]);
  }

  Index index_;
  FlowSpace<Ipv4> space_{UINT32_MAX, Rig::kBackends};
  std::uint32_t live_;
  std::uint32_t next_;
  std::uint32_t at_ = 0;
  Keys coming_;
  Keys going_;
  std::uint64_t done_ = 0;
};

}  // namespace

MadeSide TwoProbes::make(std::uint32_t flows) {
  std::unique_ptr<TwoProbes> two(new TwoProbes);
  for (std::uint32_t n = 0; n < flows; ++n) {
    two->own_[n % 2].push_back(n);
  }
  for (const std::size_t w : {0, 1}) {
    two->spaces_[w] = {static_cast<std::uint32_t>(two->own_[w].size()), Rig::kBackends};
    two->spaces_[w].picked = &two->own_[w];
    auto probe = make_probe<F>(two->spaces_[w]);
    if (!probe) {
      return tl::unexpected(probe.error());
    }
    two->probes_[w] = std::move(*probe);
  }
  return two;
}

bool TwoProbes::fill(FrameRing& ring, std::uint64_t round) {
  const Step step = Step::of(round);
  who_ = step.who;
  fill_both_ways(spaces_[who_], ring, step.round);
  return true;
}

Figure bare_new_flow_cycles(const TurnsConfig& config, bool& failed) {
  Turns turns(config, kLiveFlows);
  if (!turns.add_made("bare_new_flows", NewKeys::make(kLiveFlows)) || !turns.run()) {
    failed = true;
    return {};
  }
  return turns.cycles("bare_new_flows");
}

}  // namespace sluice::bench
