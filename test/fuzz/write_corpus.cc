// Writes the frames of corpus.h as files, for the fuzzers to start from: write_corpus DIR

#include <cstdio>
#include <fstream>
#include <string>

#include "test/fuzz/corpus.h"

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: write_corpus DIR\n");
    return 2;
  }
  int number = 0;
  for (const auto& frame : sluice::fuzz::frame_corpus()) {
    std::ofstream file(std::string(argv[1]) + "/frame" + std::to_string(number++),
                       std::ios::binary);
    file.write(reinterpret_cast<const char*>(frame.data()),
               static_cast<std::streamsize>(frame.size()));
    if (!file) {
      std::fprintf(stderr, "write_corpus: cannot write into %s\n", argv[1]);
      return 1;
    }
  }
  return 0;
}
