#include "dataplane/dpdk/tap.h"

#include <array>
#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <poll.h>
#include <pthread.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <rte_mbuf.h>

#include "dataplane/dpdk/netdev.h"

namespace sluice::dpdk {
namespace {

core::Error failure(const std::string& name, const char* what) {
  return {"tap " + name + ": " + what + ": " + std::strerror(errno)};
}

void add(std::atomic<std::uint64_t>& cell, std::uint64_t n) noexcept {
  cell.store(cell.load(std::memory_order_relaxed) + n, std::memory_order_relaxed);
}

/// Sum of the IP addresses of a frame, the same for both directions; 0 for anything else.
std::uint32_t flow_sum(const std::uint8_t* frame, std::size_t size) noexcept {
  constexpr std::size_t kEthernet = 14;
  if (size < kEthernet + 20) {
    return 0;
  }
  const bool v4 = frame[12] == 0x08 && frame[13] == 0x00;
  const bool v6 = frame[12] == 0x86 && frame[13] == 0xdd && size >= kEthernet + 40;
  if (!v4 && !v6) {
    return 0;
  }
  const std::size_t begin = kEthernet + (v4 ? 12 : 8);
  const std::size_t end = begin + (v4 ? 8 : 32);
  std::uint32_t sum = 0;
  for (std::size_t i = begin; i < end; i += 4) {
    std::uint32_t word = 0;
    std::memcpy(&word, frame + i, 4);
    sum += word;
  }
  return sum * 0x9e3779b1u >> 16;  // the high bits are mixed best
}

}  // namespace

std::string tap_name(const std::string& port) { return "slc-" + port; }

core::Result<Tap> Tap::create(const std::string& name, std::uint16_t mtu) {
  UniqueFd fd(open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC));
  if (fd.get() < 0) {
    return tl::make_unexpected(failure(name, "opening /dev/net/tun"));
  }
  ifreq request = {};
  name.copy(request.ifr_name, sizeof(request.ifr_name) - 1);
  request.ifr_flags = static_cast<short>(IFF_TAP | IFF_NO_PI | IFF_TUN_EXCL);
  if (ioctl(fd.get(), TUNSETIFF, &request) != 0) {
    return tl::make_unexpected(failure(
        name, errno == EBUSY ? "it exists, another sluiced may serve this port" : "making it"));
  }
  // No offloads: the host hands out whole checksums and no segments above the MTU.
  if (ioctl(fd.get(), TUNSETOFFLOAD, 0UL) != 0) {
    return tl::make_unexpected(failure(name, "switching offloads off"));
  }
  if (auto done = set_mtu(name, mtu); !done) {
    return tl::make_unexpected(done.error());
  }
  return Tap(name, std::move(fd));
}

core::Result<void> Tap::set_mac(const core::MacAddress& mac) const {
  ifreq request = {};
  name_.copy(request.ifr_name, sizeof(request.ifr_name) - 1);
  request.ifr_hwaddr.sa_family = ARPHRD_ETHER;
  mac.store(reinterpret_cast<std::uint8_t*>(request.ifr_hwaddr.sa_data));
  const UniqueFd control(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (ioctl(control.get(), SIOCSIFHWADDR, &request) != 0) {
    return tl::make_unexpected(failure(name_, "giving it the port's MAC address"));
  }
  return {};
}

core::Result<void> Tap::replace_by(Tap fresh) const {
  if (dup3(fresh.fd(), fd(), O_CLOEXEC) < 0) {
    return tl::make_unexpected(failure(name_, "taking its new descriptor"));
  }
  return {};
}

TapThread::TapThread(std::vector<const Tap*> taps, HostRings& rings, rte_mempool* pool)
    : taps_(std::move(taps)), rings_(rings), pool_(pool) {}

TapThread::~TapThread() { stop(); }

void TapThread::start() {
  stop_ = false;
  thread_ = std::thread([this] { run(); });
}

void TapThread::stop() {
  stop_ = true;
  if (thread_.joinable()) {
    thread_.join();
  }
  if (spare_ != nullptr) {
    rte_pktmbuf_free(spare_);
    spare_ = nullptr;
  }
}

void TapThread::run() {
  pthread_setname_np(pthread_self(), "slc-tap");
  unsigned idle_rounds = 0;
  while (!stop_.load(std::memory_order_acquire)) {
    idle_rounds = step() != 0 ? 0 : idle_rounds + 1;
    if (idle_rounds != 0) {
      wait(idle_rounds);
    }
  }
  for (std::size_t port = 0; port < taps_.size(); ++port) {
    for (std::size_t worker = 0; worker < rings_.workers(); ++worker) {
      while (write_port(port, worker) != 0) {
      }
    }
  }
}

void TapThread::wait(unsigned idle_rounds) noexcept {
  constexpr long kShort = 50'000;     // ns, for about 50 ms after the last frame
  constexpr long kLong = 1'000'000;   // ns
  constexpr unsigned kShortRounds = 1000;
  std::array<pollfd, pipeline::kMaxPorts> polled;
  std::size_t count = 0;
  for (const Tap* tap : taps_) {
    if (tap != nullptr && count < polled.size()) {
      polled[count++] = {tap->fd(), POLLIN, 0};
    }
  }
  const timespec timeout{0, idle_rounds < kShortRounds ? kShort : kLong};
  (void)ppoll(polled.data(), count, &timeout, nullptr);
  bool readable = false;
  bool broken = false;
  for (std::size_t i = 0; i < count; ++i) {
    readable = readable || (polled[i].revents & POLLIN) != 0;
    broken = broken || (polled[i].revents & (POLLERR | POLLHUP)) != 0;
  }
  if (broken && !readable) {
    (void)ppoll(nullptr, 0, &timeout, nullptr);
  }
}

std::size_t TapThread::step() noexcept {
  std::size_t moved = 0;
  for (std::size_t port = 0; port < taps_.size(); ++port) {
    for (std::size_t worker = 0; worker < rings_.workers(); ++worker) {
      moved += write_port(port, worker);
    }
    if (taps_[port] != nullptr) {
      moved += read_port(port);
    }
  }
  return moved;
}

std::size_t TapThread::write_port(std::size_t port, std::size_t worker) noexcept {
  std::array<rte_mbuf*, pipeline::kBurst> frames;
  const std::size_t count = rings_.to_host(worker, port).pop(frames.data(), frames.size());
  std::size_t taken = 0;
  for (std::size_t i = 0; i < count && taps_[port] != nullptr; ++i) {
    const ssize_t size = write(taps_[port]->fd(), rte_pktmbuf_mtod(frames[i], void*),
                               frames[i]->data_len);
    taken += size == frames[i]->data_len ? 1 : 0;
  }
  if (count != 0) {
    rte_pktmbuf_free_bulk(frames.data(), static_cast<unsigned>(count));
    add(rings_.counters(worker).written, taken);
    add(rings_.counters(worker).write_failed, count - taken);
  }
  return count;
}

std::size_t TapThread::read_port(std::size_t port) noexcept {
  std::size_t count = 0;
  while (count < pipeline::kBurst && read_frame(port)) {
    ++count;
  }
  return count;
}

bool TapThread::read_frame(std::size_t port) noexcept {
  if (spare_ == nullptr) {
    spare_ = rte_pktmbuf_alloc(pool_);
  }
  if (spare_ == nullptr) {
    std::uint8_t lost[64];  // a short read still takes the whole frame off the tap
    if (read(taps_[port]->fd(), lost, sizeof(lost)) <= 0) {
      return false;
    }
    add(rings_.counters(0).no_buffer, 1);
    return true;
  }
  auto* data = rte_pktmbuf_mtod(spare_, std::uint8_t*);
  const ssize_t size = read(taps_[port]->fd(), data, rte_pktmbuf_tailroom(spare_));
  if (size <= 0) {
    return false;
  }
  spare_->data_len = static_cast<std::uint16_t>(size);
  spare_->pkt_len = static_cast<std::uint32_t>(size);
  spare_->port = static_cast<std::uint16_t>(port);
  const std::size_t worker = flow_sum(data, static_cast<std::size_t>(size)) % rings_.workers();
  if (rings_.from_host(worker).push(spare_)) {
    add(rings_.counters(worker).read, 1);
    spare_ = nullptr;
  } else {
    add(rings_.counters(worker).ring_full, 1);
    rte_pktmbuf_reset(spare_);
  }
  return true;
}

}  // namespace sluice::dpdk
