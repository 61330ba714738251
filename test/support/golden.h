#pragma once

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>

#include <gtest/gtest.h>

namespace sluice::test {

/// Compares with a file of test/golden; SLUICE_WRITE_GOLDEN=1 writes it instead.
inline void expect_golden(const std::string& text, const std::string& path) {
  if (std::getenv("SLUICE_WRITE_GOLDEN") != nullptr) {
    std::ofstream(path) << text;
  }
  std::ifstream file(path);
  const std::string wanted{std::istreambuf_iterator<char>(file), {}};
  EXPECT_EQ(text, wanted) << path;
}

}  // namespace sluice::test
