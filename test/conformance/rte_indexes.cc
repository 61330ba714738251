#include "test/conformance/rte_indexes.h"

#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <rte_eal.h>

#include "dataplane/dpdk/rte_hash_index.h"

namespace sluice::conformance {
namespace {

void start_eal() {
  std::vector<std::string> args = {
      "sluice-conformance", "--no-huge", "-m", "256",         "--no-pci",      "--no-telemetry",
      "--no-shconf",        "--lcores",  "0",  "--log-level", "lib.*:critical"};
  std::vector<char*> argv;
  for (std::string& a : args) {
    argv.push_back(a.data());
  }
  if (rte_eal_init(static_cast<int>(argv.size()), argv.data()) < 0) {
    throw std::runtime_error("the EAL does not start");
  }
}

class RteIndexes : public test::IndexMaker {
 public:
  RteIndexes() { start_eal(); }
  test::AnyIndex<core::FlowKey4> make4(std::uint32_t connections) override {
    return make<core::FlowKey4>(connections);
  }
  test::AnyIndex<core::FlowKey6> make6(std::uint32_t connections) override {
    return make<core::FlowKey6>(connections);
  }

 private:
  template <class Key>
  test::AnyIndex<Key> make(std::uint32_t connections) {
    auto index = dpdk::RteHashIndex<Key>::create({"case" + std::to_string(made_++)}, connections);
    if (!index) {
      throw std::runtime_error(index.error().message);
    }
    return test::AnyIndex<Key>(std::move(*index));
  }
  std::uint64_t made_ = 0;
};

}  // namespace

test::IndexMaker* rte_indexes() {
  static RteIndexes indexes;
  return &indexes;
}

}  // namespace sluice::conformance
