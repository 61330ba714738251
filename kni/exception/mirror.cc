#include "kni/exception/mirror.h"

#include <cerrno>
#include <cstring>

#include <linux/neighbour.h>
#include <linux/rtnetlink.h>
#include <poll.h>
#include <pthread.h>

namespace sluice::kni {
namespace {

constexpr int kDumpTries = 10;  // a dump that keeps changing under way

const std::vector<unsigned> kGroups = {
    RTNLGRP_LINK,       RTNLGRP_IPV4_IFADDR, RTNLGRP_IPV6_IFADDR,
    RTNLGRP_IPV4_ROUTE, RTNLGRP_IPV6_ROUTE,  RTNLGRP_NEIGH,
};

/// Repeats a dump that changed under way.
template <class Dump>
int repeat(const Dump& dump) {
  int rc = EAGAIN;
  for (int i = 0; i < kDumpTries && rc == EAGAIN; ++i) {
    rc = dump();
  }
  return rc;
}

}  // namespace

Mirror::Mirror(std::vector<std::string> taps, MirrorEvents events, const WishBook::Limits& limits)
    : view_(std::move(taps)), events_(std::move(events)), book_(limits, book_calls()) {}

Mirror::~Mirror() {
  stop();
}

core::Result<void> Mirror::open() {
  auto listen = Netlink::open(NETLINK_ROUTE, kGroups);
  auto ask = Netlink::open(NETLINK_ROUTE, {});
  if (!listen || !ask) {
    return tl::make_unexpected(listen ? ask.error() : listen.error());
  }
  listen_ = std::make_unique<Netlink>(std::move(*listen));
  ask_ = std::make_unique<Netlink>(std::move(*ask));
  full_dump();
  report();
  return {};
}

core::Result<void> Mirror::start() {
  if (auto opened = open(); !opened) {
    return opened;
  }
  stop_ = false;
  thread_ = std::thread([this] { run(); });
  return {};
}

void Mirror::stop() {
  stop_ = true;
  if (thread_.joinable()) {
    thread_.join();
  }
}

void Mirror::run() {
  pthread_setname_np(pthread_self(), "slc-mirror");
  while (!stop_.load(std::memory_order_acquire)) {
    pollfd polled{listen_->fd(), POLLIN, 0};
    (void)poll(&polled, 1, 1);  // ms: also the pace at which wishes are looked at
    step();
  }
}

void Mirror::step() {
  const int rc = listen_->receive([this](const nlmsghdr& m) { view_.apply(read_record(m)); });
  if (rc == ENOBUFS) {
    if (events_.warn) {
      events_.warn("mirror: events of the kernel were lost, reading everything again");
    }
    full_dump();
  }
  dump_routes_if_due();
  report();
  take_wishes();
}

void Mirror::full_dump() {
  view_.clear();
  int rc = dump_into_view(RTM_GETLINK, AF_UNSPEC);
  for (const std::uint8_t family : {std::uint8_t{AF_INET}, std::uint8_t{AF_INET6}}) {
    rc = rc == 0 ? dump_into_view(RTM_GETADDR, family) : rc;
    rc = rc == 0 ? dump_into_view(RTM_GETNEIGH, family) : rc;
  }
  next_route_dump_ = {};
  dump_routes_if_due();
  for (const NeighbourWish& wish : book_.all()) {
    const HostNeighbour neighbour = view_.neighbour(wish.port, wish.address);
    if (book_.changed(neighbour, Clock::now())) {
      tell(neighbour);
    }
  }
  if (rc != 0 && events_.warn) {
    events_.warn(std::string("mirror: reading the host's state failed: ") + std::strerror(rc));
  }
}

int Mirror::dump_into_view(std::uint16_t type, std::uint8_t family) {
  return repeat([&] {
    Message message(type, 0);
    // Every rtnetlink header begins with the family; ifinfomsg is the longest of them.
    message.extra<ifinfomsg>()->ifi_family = family;
    return ask_->dump(message, [this](const nlmsghdr& m) { view_.apply(read_record(m)); });
  });
}

void Mirror::dump_routes_if_due() {
  const auto begin = Clock::now();
  if (!view_.routes_stale() || begin < next_route_dump_) {
    return;
  }
  std::vector<RouteRecord> routes;
  const int rc = repeat([&] {
    routes.clear();
    int failed = 0;
    for (const std::uint8_t family : {std::uint8_t{AF_INET}, std::uint8_t{AF_INET6}}) {
      Message message(RTM_GETROUTE, 0);
      message.extra<rtmsg>()->rtm_family = family;
      const int one = ask_->dump(message, [&](const nlmsghdr& m) {
        const Record record = read_record(m);
        if (const auto* route = std::get_if<RouteRecord>(&record)) {
          routes.push_back(*route);
        }
      });
      failed = failed == 0 ? one : failed;
    }
    return failed;
  });
  if (rc == 0) {
    view_.set_routes(routes);
  }
  const auto end = Clock::now();
  next_route_dump_ = end + 9 * (end - begin);
}

void Mirror::report() {
  for (const TapChange& change : view_.take_tap_changes()) {
    if (events_.tap) {
      events_.tap(change);
    }
  }
  if (view_.take_addresses_changed() && events_.addresses) {
    events_.addresses(view_.addresses());
  }
  if (view_.take_routes_changed() && events_.routes) {
    events_.routes(view_.routes());
  }
  for (const HostNeighbour& neighbour : view_.take_neighbour_changes()) {
    if (book_.changed(neighbour, Clock::now())) {
      tell(neighbour);
    }
  }
}

void Mirror::tell(const HostNeighbour& neighbour) {
  if (events_.neighbour) {
    events_.neighbour(neighbour);
  }
}

void Mirror::take_wishes() {
  std::vector<NeighbourWish> wishes;
  if (events_.wishes) {
    events_.wishes(wishes);
  }
  const auto now = Clock::now();
  book_.take(wishes, now);
  book_.refresh(now);
}

WishBook::Calls Mirror::book_calls() {
  WishBook::Calls calls;
  calls.state = [this](const NeighbourWish& wish) {
    return view_.neighbour(wish.port, wish.address).state;
  };
  calls.taken = [this](const NeighbourWish& wish) {
    tell(view_.neighbour(wish.port, wish.address));
  };
  calls.ask = [this](const NeighbourWish& wish) {
    if (probe(wish) == 0) {
      return true;
    }
    HostNeighbour failed = view_.neighbour(wish.port, wish.address);
    failed.state = HostNeighbour::State::kFailed;
    tell(failed);
    return false;
  };
  calls.forget = [this](const NeighbourWish& wish) {
    delete_in_kernel(wish);
    if (events_.forgotten) {
      events_.forgotten(wish);
    }
  };
  return calls;
}

void Mirror::delete_in_kernel(const NeighbourWish& wish) {
  const std::uint32_t link = view_.link_of(wish.port);
  if (link == 0) {
    return;
  }
  Message message(RTM_DELNEIGH, 0);
  auto* header = message.extra<ndmsg>();
  header->ndm_family = family_number(wish.address.family());
  header->ndm_ifindex = static_cast<int>(link);
  message.put_address(NDA_DST, wish.address);
  (void)ask_->request(message);  // it may be gone already
}

int Mirror::probe(const NeighbourWish& wish) {
  const std::uint32_t link = view_.link_of(wish.port);
  if (link == 0) {
    return ENODEV;
  }
  const auto send = [&](bool managed) {
    Message message(RTM_NEWNEIGH, NLM_F_CREATE);
    auto* header = message.extra<ndmsg>();
    header->ndm_family = family_number(wish.address.family());
    header->ndm_ifindex = static_cast<int>(link);
    header->ndm_state = NUD_NONE;
    header->ndm_flags = managed ? 0 : NTF_USE;
    message.put_address(NDA_DST, wish.address);
    if (managed) {
      message.put_u32(NDA_FLAGS_EXT, NTF_EXT_MANAGED);
    }
    return ask_->request(message);
  };
  int rc = send(managed_);
  if (managed_ && (rc == EINVAL || rc == EOPNOTSUPP)) {
    managed_ = false;
    book_.set_managed(false);
    rc = send(false);
  }
  return rc;
}

}  // namespace sluice::kni
