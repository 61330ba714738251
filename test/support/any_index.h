#pragma once

#include <memory>
#include <utility>

#include "dataplane/core/conn/key_index.h"

namespace sluice::test {

/// A KeyIndex of whatever kind, so that one SteppedGroup runs over rte_hash too without knowing
/// DPDK. Thread: as the index within.
template <class Key>
class AnyIndex {
 public:
  template <core::KeyIndex<Key> Index>
  explicit AnyIndex(Index index) : index_(std::make_unique<Model<Index>>(std::move(index))) {}

  void locate(const std::uint32_t* hashes, std::uint32_t from, std::uint32_t to,
              core::KeyPlaces& places) noexcept {
    index_->locate(hashes, from, to, places);
  }
  std::uint64_t read(const Key* const* keys, const std::uint32_t* hashes, std::uint32_t from,
                     std::uint32_t to, core::KeyPlaces& places, core::KeyData* out) noexcept {
    return index_->read(keys, hashes, from, to, places, out);
  }
  std::uint64_t read_late(const Key* const* keys, const std::uint32_t* hashes, std::uint32_t from,
                          std::uint32_t to, core::KeyPlaces& places,
                          core::KeyData* out) noexcept {
    return index_->read_late(keys, hashes, from, to, places, out);
  }
  bool find(const Key& key, std::uint32_t hash, core::KeyData& out) noexcept {
    return index_->find(key, hash, out);
  }
  void prefetch(std::uint32_t hash) const noexcept { index_->prefetch(hash); }
  void prefetch_change(std::uint32_t hash) const noexcept { index_->prefetch_change(hash); }
  void prefetch_moves(std::uint32_t hash) const noexcept { index_->prefetch_moves(hash); }
  void prefetch_key(std::uint32_t hash) const noexcept { index_->prefetch_key(hash); }
  bool insert(const Key& key, std::uint32_t hash, core::KeyData data) noexcept {
    return index_->insert(key, hash, data);
  }
  bool erase(const Key& key, std::uint32_t hash) noexcept { return index_->erase(key, hash); }

 private:
  struct Concept {
    virtual ~Concept() = default;
    virtual void locate(const std::uint32_t* hashes, std::uint32_t from, std::uint32_t to,
                        core::KeyPlaces& places) noexcept = 0;
    virtual std::uint64_t read(const Key* const* keys, const std::uint32_t* hashes,
                               std::uint32_t from, std::uint32_t to, core::KeyPlaces& places,
                               core::KeyData* out) noexcept = 0;
    virtual std::uint64_t read_late(const Key* const* keys, const std::uint32_t* hashes,
                                    std::uint32_t from, std::uint32_t to, core::KeyPlaces& places,
                                    core::KeyData* out) noexcept = 0;
    virtual bool find(const Key& key, std::uint32_t hash, core::KeyData& out) noexcept = 0;
    virtual void prefetch(std::uint32_t hash) const noexcept = 0;
    virtual void prefetch_change(std::uint32_t hash) const noexcept = 0;
    virtual void prefetch_moves(std::uint32_t hash) const noexcept = 0;
    virtual void prefetch_key(std::uint32_t hash) const noexcept = 0;
    virtual bool insert(const Key& key, std::uint32_t hash, core::KeyData data) noexcept = 0;
    virtual bool erase(const Key& key, std::uint32_t hash) noexcept = 0;
  };
  template <class Index>
  struct Model final : Concept {
    explicit Model(Index i) : index(std::move(i)) {}
    void locate(const std::uint32_t* hashes, std::uint32_t from, std::uint32_t to,
                core::KeyPlaces& places) noexcept override {
      index.locate(hashes, from, to, places);
    }
    std::uint64_t read(const Key* const* keys, const std::uint32_t* hashes, std::uint32_t from,
                       std::uint32_t to, core::KeyPlaces& places,
                       core::KeyData* out) noexcept override {
      return index.read(keys, hashes, from, to, places, out);
    }
    std::uint64_t read_late(const Key* const* keys, const std::uint32_t* hashes,
                            std::uint32_t from, std::uint32_t to, core::KeyPlaces& places,
                            core::KeyData* out) noexcept override {
      return index.read_late(keys, hashes, from, to, places, out);
    }
    bool find(const Key& key, std::uint32_t hash, core::KeyData& out) noexcept override {
      return index.find(key, hash, out);
    }
    void prefetch(std::uint32_t hash) const noexcept override { index.prefetch(hash); }
    void prefetch_change(std::uint32_t hash) const noexcept override {
      index.prefetch_change(hash);
    }
    void prefetch_moves(std::uint32_t hash) const noexcept override {
      index.prefetch_moves(hash);
    }
    void prefetch_key(std::uint32_t hash) const noexcept override { index.prefetch_key(hash); }
    bool insert(const Key& key, std::uint32_t hash, core::KeyData data) noexcept override {
      return index.insert(key, hash, data);
    }
    bool erase(const Key& key, std::uint32_t hash) noexcept override {
      return index.erase(key, hash);
    }
    Index index;
  };
  std::unique_ptr<Concept> index_;
};

/// Makes the indexes of workers; each call one more.
struct IndexMaker {
  virtual ~IndexMaker() = default;
  virtual AnyIndex<core::FlowKey4> make4(std::uint32_t connections) = 0;
  virtual AnyIndex<core::FlowKey6> make6(std::uint32_t connections) = 0;
};

}  // namespace sluice::test
