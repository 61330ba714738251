// The file that another generator replays.

#include "bench/generator/capture_file.h"

#include <cstring>
#include <fstream>
#include <iterator>
#include <vector>

#include <gtest/gtest.h>
#include <unistd.h>

namespace sluice::bench {
namespace {

std::uint32_t word(const std::vector<char>& bytes, std::size_t at) {
  std::uint32_t value = 0;
  std::memcpy(&value, bytes.data() + at, 4);
  return value;
}

TEST(CaptureFile, HoldsFramesOfTheLengthAskedForAfterTheirHeaders) {
  const std::string path = testing::TempDir() + "capture-" + std::to_string(getpid());
  const std::vector<std::uint8_t> start(64, 0xab);
  CaptureFile file(path);
  file.add(start, 60);
  file.add(start, 100);
  ASSERT_TRUE(file.close());

  std::ifstream in(path, std::ios::binary);
  const std::vector<char> bytes{std::istreambuf_iterator<char>(in), {}};
  unlink(path.c_str());
  ASSERT_EQ(bytes.size(), 24u + 16 + 60 + 16 + 100);
  EXPECT_EQ(word(bytes, 0), 0xa1b2c3d4u);
  EXPECT_EQ(word(bytes, 20), 1u);  // Ethernet
  EXPECT_EQ(word(bytes, 24 + 8), 60u);
  EXPECT_EQ(word(bytes, 24 + 12), 60u);
  EXPECT_EQ(word(bytes, 100 + 8), 100u);
  EXPECT_EQ(word(bytes, 100 + 16 + 60), 0xababababu);  // 64 bytes of it were given
  EXPECT_EQ(word(bytes, 100 + 16 + 64), 0u);
}

TEST(CaptureFile, ThatCannotBeWrittenIsAnError) {
  CaptureFile file(testing::TempDir() + "no-such-folder/capture");
  file.add({}, 60);
  EXPECT_FALSE(file.close());
}

}  // namespace
}  // namespace sluice::bench
