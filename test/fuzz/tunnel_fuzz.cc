#include "test/fuzz/net_targets.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  sluice::fuzz::tunnel(data, size);
  return 0;
}
