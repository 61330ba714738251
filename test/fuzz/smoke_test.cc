// The fuzz targets under ctest: a fixed seed, a corpus of right frames, a few mutations each. Same
// inputs on every run; the sanitizer build proves the bounds.

#include <random>
#include <string_view>

#include <gtest/gtest.h>

#include "test/fuzz/corpus.h"
#include "test/fuzz/net_targets.h"
#include "test/support/reference_checksum.h"

namespace sluice::fuzz {
namespace {

using test::Bytes;
using Target = void (*)(const std::uint8_t*, std::size_t);

/// Makes the IPv4 header sum up again, so that mutations get past the first check.
void repair_ipv4_checksum(Bytes& input) {
  if (input.size() < 35 || input[13] != 8 || input[14] != 0) {
    return;
  }
  const std::size_t length = std::min<std::size_t>((input[15] & 15u) * 4u, input.size() - 15);
  input[25] = input[26] = 0;
  if (length >= 20) {
    const auto sum =
        static_cast<std::uint16_t>(~test::reference_sum(std::span(input).subspan(15, length)));
    input[25] = static_cast<std::uint8_t>(sum >> 8);
    input[26] = static_cast<std::uint8_t>(sum);
  }
}

class Mutator {
 public:
  explicit Mutator(unsigned seed) : random_(seed) {}

  Bytes mutate(Bytes input) {
    const unsigned changes = next() % 4;
    for (unsigned i = 0; i < changes && !input.empty(); ++i) {
      change(input);
    }
    if (next() % 4 != 0) {
      repair_ipv4_checksum(input);
    }
    return input;
  }

 private:
  unsigned next() { return static_cast<unsigned>(random_()); }

  void change(Bytes& input) {
    const std::size_t at = next() % input.size();
    switch (next() % 6) {
      case 0:
        input[at] = static_cast<std::uint8_t>(next());
        break;
      case 1:
        input[at] = static_cast<std::uint8_t>(input[at] ^ 1u << next() % 8);
        break;
      case 2:
        input[at] = next() % 2 == 0 ? std::uint8_t{0} : std::uint8_t{0xff};
        break;
      case 3:
        input.resize(at);
        break;
      case 4:
        input.insert(input.begin() + static_cast<std::ptrdiff_t>(at), 8, input[at]);
        break;
      default:
        input[0] = static_cast<std::uint8_t>(next());
    }
  }

  std::mt19937 random_;
};

void run(Target target, const std::vector<Bytes>& corpus, unsigned rounds) {
  Mutator mutator(4711);
  target(nullptr, 0);
  for (const Bytes& start : corpus) {
    target(start.data(), start.size());
    for (unsigned round = 0; round < rounds; ++round) {
      const Bytes input = mutator.mutate(start);
      target(input.data(), input.size());
    }
  }
}

constexpr unsigned kRounds = 20000;

TEST(FuzzSmoke, Parse) {
  run(parse, frame_corpus(), kRounds);
}
TEST(FuzzSmoke, Icmp) {
  run(icmp, frame_corpus(), kRounds);
}
TEST(FuzzSmoke, Tunnel) {
  run(tunnel, frame_corpus(), kRounds);
}
TEST(FuzzSmoke, Rewrite) {
  run(rewrite, frame_corpus(), kRounds);
}
TEST(FuzzSmoke, Reject) {
  run(reject, frame_corpus(), kRounds);
}
TEST(FuzzSmoke, Neighbor) {
  run(neighbor, frame_corpus(), kRounds);
}

TEST(FuzzSmoke, Address) {
  std::vector<Bytes> corpus;
  for (const std::string_view text : {"10.0.0.1", "010.000.0.1/08", "2001:db8::1", "::ffff:1.2.3.4",
                                      "1:2:3:4:5:6:7:8/64", "::/0", "02:00:00:00:00:01"}) {
    corpus.emplace_back(text.begin(), text.end());
  }
  run(address, corpus, kRounds);
}

}  // namespace
}  // namespace sluice::fuzz
