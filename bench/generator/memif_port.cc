// Theory of operation
//
// A driver for memif works through packet buffers: it takes one from a pool for each frame, counts
// references to it, and gives it back later; more than half of what a frame cost this generator.
// Here a slot of the ring is the buffer, for ever. What is left are the lines that cross between
// two cores: of a frame and, for four frames, of descriptors, in each direction. They are asked for
// a burst ahead, so that their ways overlap with work on the burst before.
//
// The client's memory holds everything:
//
//   ring to the server | ring to the client | buffers of the one | buffers of the other
//
// A slot of the ring to the server belongs to who sends between tail and head + size, as seen by
// the client; the ring to the client is filled with empty buffers by the client (head) and used up
// by the server (tail).

#include "bench/generator/memif_port.h"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

#include <linux/memfd.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

namespace sluice::bench {
namespace {

constexpr std::size_t kLine = 64;
constexpr std::size_t kHuge = std::size_t{2} << 20;
constexpr std::uint16_t kPerLine = kLine / sizeof(memif::Descriptor);

constexpr std::size_t round_up(std::size_t bytes, std::size_t to) {
  return (bytes + to - 1) / to * to;
}

std::size_t ring_bytes(std::size_t slots) {
  return sizeof(memif::Ring) + slots * sizeof(memif::Descriptor);
}

tl::unexpected<core::Error> failure(const std::string& what) {
  return tl::make_unexpected(core::Error{"memif: " + what + ": " + std::strerror(errno)});
}

memif::Ring* ring_at(const MemifLayout& layout, const MemifRing& where) {
  return reinterpret_cast<memif::Ring*>(layout.regions[where.region].base + where.offset);
}

void give_back(const MemifLayout& layout) {
  for (const MemifRegion& region : layout.regions) {
    ::munmap(region.base, region.bytes);
    ::close(region.file);
  }
  for (const MemifRing& ring : {layout.to_server, layout.to_client}) {
    if (ring.event >= 0) {
      ::close(ring.event);
    }
  }
}

}  // namespace

MemifPort::MemifPort(const MemifOptions& options)
    : Port(!options.server),
      options_(options),
      room_(static_cast<std::uint32_t>(round_up(options.frame + 4, kLine))),
      // An odd number of lines, so that the buffers are spread over all sets of a cache.
      stride_(room_ / kLine % 2 == 1 ? room_ : room_ + kLine) {}

MemifPort::~MemifPort() { give_back(layout_); }

core::Result<std::unique_ptr<MemifPort>> MemifPort::open(const MemifOptions& options) {
  std::unique_ptr<MemifPort> port(new MemifPort(options));
  auto channel =
      options.server ? MemifChannel::listen(options.socket) : MemifChannel::connect(options.socket);
  if (!channel) {
    return tl::make_unexpected(channel.error());
  }
  port->channel_ = std::move(*channel);
  if (auto done = options.server ? core::Result<void>{} : port->connect(); !done) {
    return tl::make_unexpected(done.error());
  }
  return port;
}

core::Result<void> MemifPort::make_memory() {
  const std::size_t slots = options_.descriptors;
  const std::size_t bytes = round_up(2 * ring_bytes(slots) + 2 * slots * stride_, kHuge);
  const unsigned pages = options_.hugepages ? MFD_HUGETLB | MFD_HUGE_2MB : 0u;
  const int file = ::memfd_create("memif", MFD_CLOEXEC | pages);
  if (file < 0 || ::ftruncate(file, static_cast<off_t>(bytes)) != 0) {
    return failure("memory of " + std::to_string(bytes) + " bytes");
  }
  void* base = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, file, 0);
  if (base == MAP_FAILED) {
    return failure("memory of " + std::to_string(bytes) + " bytes");
  }
  layout_.regions.push_back({static_cast<std::uint8_t*>(base), bytes, file});
  const auto log2 = static_cast<std::uint8_t>(std::bit_width(slots) - 1);
  layout_.to_server = {0, 0, log2, ::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)};
  layout_.to_client = {0, static_cast<std::uint32_t>(ring_bytes(slots)), log2,
                       ::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)};
  return {};
}

core::Result<void> MemifPort::connect() {
  if (auto done = make_memory(); !done) {
    return done;
  }
  const std::size_t slots = options_.descriptors;
  std::uint32_t buffer = static_cast<std::uint32_t>(2 * ring_bytes(slots));
  for (const MemifRing& where : {layout_.to_server, layout_.to_client}) {
    memif::Ring* ring = ring_at(layout_, where);
    ring->cookie = memif::kCookie;
    for (std::size_t i = 0; i < slots; ++i, buffer += stride_) {
      ring->descriptors()[i] = {0, 0, room_, buffer, 0};
    }
  }
  if (auto done = channel_.offer(layout_); !done) {
    return done;
  }
  bind_ends();
  in_.publish();  // all buffers are the server's
  up_ = true;
  return {};
}

core::Result<void> MemifPort::take_client() {
  auto client = channel_.accept();
  if (!client) {
    return tl::make_unexpected(client.error());
  }
  MemifLayout layout;
  if (auto done = client->learn(layout); !done) {
    give_back(layout);
    return done;
  }
  layout_ = layout;
  bind_ends();
  if (auto done = client->connected(); !done) {
    give_back(std::exchange(layout_, {}));
    out_ = in_ = End{};
    return done;
  }
  client_ = std::move(*client);
  up_ = true;
  return {};
}

void MemifPort::bind_ends() {
  memif::Ring* to_server = ring_at(layout_, layout_.to_server);
  memif::Ring* to_client = ring_at(layout_, layout_.to_client);
  const auto mask = [](const MemifRing& where) {
    return static_cast<std::uint16_t>((1u << where.log2_slots) - 1);
  };
  out_ = in_ = End{};
  out_.ring = options_.server ? to_client : to_server;
  in_.ring = options_.server ? to_server : to_client;
  out_.mask = mask(options_.server ? layout_.to_client : layout_.to_server);
  in_.mask = mask(options_.server ? layout_.to_server : layout_.to_client);
  for (memif::Ring* ring : {to_server, to_client}) {
    ring->head = ring->tail = 0;
  }
  in_.ring->flags = memif::kNoInterrupts;
  out_.event = options_.server ? layout_.to_client.event : layout_.to_server.event;
  for (End* end : {&out_, &in_}) {
    end->published = options_.server ? &end->ring->tail : &end->ring->head;
    end->theirs = options_.server ? &end->ring->head : &end->ring->tail;
  }
  if (!options_.server) {
    out_.their_lead = static_cast<std::uint16_t>(out_.mask + 1);
    in_.lead = static_cast<std::uint16_t>(in_.mask + 1);
    out_.own = layout_.regions[0].base + out_.ring->descriptors()[0].offset;
    in_.own = layout_.regions[0].base + in_.ring->descriptors()[0].offset;
  }
}

bool MemifPort::link_up() {
  // A client that comes and goes again is no link; another may follow.
  if (!up_ && options_.server && channel_.has_client()) {
    if (auto done = take_client(); !done) {
      std::fprintf(stderr, "generator: %s\n", done.error().message.c_str());
    }
  }
  return up_;
}

std::uint8_t* MemifPort::data(const End& end, std::uint16_t slot) const noexcept {
  if (end.own != nullptr) {
    return end.own + std::size_t{slot} * stride_;
  }
  const memif::Descriptor& d = end.ring->descriptors()[slot];
  return layout_.regions[d.region].base + d.offset;
}

template <bool kForWriting>
void MemifPort::fetch(End& end, std::uint16_t n) const noexcept {
  const auto stop = static_cast<std::uint16_t>(end.at + n);
  if (static_cast<std::int16_t>(end.fetched - end.at) < 0) {
    end.fetched = end.at;
  }
  for (; static_cast<std::int16_t>(stop - end.fetched) > 0; ++end.fetched) {
    const auto slot = static_cast<std::uint16_t>(end.fetched & end.mask);
    if (slot % kPerLine == 0) {
      // A client writes those of the frames it receives, which gives the buffers back; a server
      // those of the frames it sends.
      const bool written = (end.own != nullptr) != kForWriting;
      const memif::Descriptor* line = &end.ring->descriptors()[slot];
      if (written) {  // no ?: here, clang 14 crashes on it
        __builtin_prefetch(line, 1);
      } else {
        __builtin_prefetch(line);
      }
    }
    if (end.own != nullptr) {
      const std::uint8_t* const buffer = end.own + std::size_t{slot} * stride_;
      if constexpr (kForWriting) {
        __builtin_prefetch(buffer, 1);
      } else {
        __builtin_prefetch(buffer);
      }
    }
  }
}

std::uint16_t MemifPort::reserve(Frame* frames, std::uint16_t n) noexcept {
  if (!up_) {
    return 0;
  }
  n = std::min(n, out_.ours());
  fetch<true>(out_, n);
  for (std::uint16_t i = 0; i < n; ++i) {
    frames[i] = {data(out_, static_cast<std::uint16_t>((out_.at + i) & out_.mask)), 0, nullptr};
    if (out_.own == nullptr) {
      __builtin_prefetch(frames[i].data, 1);
    }
  }
  return n;
}

std::uint16_t MemifPort::send(const Frame* frames, std::uint16_t n) noexcept {
  for (std::uint16_t i = 0; i < n; ++i) {
    memif::Descriptor& d = out_.ring->descriptors()[(out_.at + i) & out_.mask];
    // What is right already is not written: the line stays where it is read.
    if (d.length != frames[i].length || d.flags != 0) {
      d.length = frames[i].length;
      d.flags = 0;
    }
  }
  out_.at = static_cast<std::uint16_t>(out_.at + n);
  out_.publish();
  // The flag may be read before the peer sees the frames, so one that falls asleep at this moment
  // is woken by the next burst only. To rule that out takes a full barrier in every burst, which
  // those that poll, and are measured, would pay for.
  if (n != 0 &&
      (__atomic_load_n(&out_.ring->flags, __ATOMIC_RELAXED) & memif::kNoInterrupts) == 0) {
    (void)::eventfd_write(out_.event, 1);
  }
  fetch<true>(out_, std::min(kBurst, out_.ours()));
  return n;
}

std::uint16_t MemifPort::receive(Frame* frames) noexcept {
  if (!up_) {
    return 0;
  }
  const std::uint16_t there = in_.ours();
  fetch<false>(in_, std::min<std::uint16_t>(there, 2 * kBurst));
  held_ = std::min(there, kBurst);
  for (std::uint16_t i = 0; i < held_; ++i) {
    const auto slot = static_cast<std::uint16_t>((in_.at + i) & in_.mask);
    frames[i] = {data(in_, slot), in_.ring->descriptors()[slot].length, nullptr};
    if (in_.own == nullptr) {
      __builtin_prefetch(frames[i].data);
    }
  }
  return held_;
}

void MemifPort::release() noexcept {
  for (std::uint16_t i = 0; i < held_ && in_.own != nullptr; ++i) {
    in_.ring->descriptors()[(in_.at + i) & in_.mask].length = room_;
  }
  in_.at = static_cast<std::uint16_t>(in_.at + held_);
  if (held_ != 0) {
    in_.publish();
  }
  held_ = 0;
}

}  // namespace sluice::bench
