#include "dataplane/dpdk/rte_hash_index.h"

#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_malloc.h>

namespace sluice::dpdk {
namespace {

int socket_of(const MemoryRequest& request) noexcept {
  return request.numa_socket < 0 ? SOCKET_ID_ANY : request.numa_socket;
}

core::Error too_little(const MemoryRequest& request, const char* what, std::size_t bytes) {
  const std::string node =
      request.numa_socket < 0 ? "" : " on NUMA node " + std::to_string(request.numa_socket);
  return core::Error{"memory: " + std::string(what) + " '" + request.name + "' needs " +
                     std::to_string(bytes) + " bytes (" +
                     std::to_string((bytes + (1u << 20) - 1) >> 20) + " MiB)" + node +
                     ", which EAL does not have; raise the memory or lower the number of "
                     "connections"};
}

/// Without huge pages EAL's heap cannot grow, so asking it is exact up to its fragmentation.
bool surely_too_little(int socket, std::size_t bytes) noexcept {
  if (rte_eal_has_hugepages() != 0) {
    return false;
  }
  rte_malloc_socket_stats stats{};
  return rte_malloc_get_socket_stats(socket < 0 ? 0 : socket, &stats) == 0 &&
         stats.heap_freesz_bytes < bytes;
}

}  // namespace

core::Result<RteHashPtr> make_rte_hash(const MemoryRequest& request, std::uint32_t slots,
                                       std::size_t key_length) {
  const std::size_t bytes = rte_hash_bytes(slots, key_length);
  const int socket = socket_of(request);
  if (surely_too_little(socket, bytes)) {
    return tl::unexpected(too_little(request, "connection index", bytes));
  }
  rte_hash_parameters params{};
  params.name = request.name.c_str();
  params.entries = slots - 1;
  params.key_len = static_cast<std::uint32_t>(key_length);
  params.socket_id = socket;
  RteHashPtr hash(rte_hash_create(&params));
  if (hash == nullptr && rte_errno == EEXIST) {
    return tl::unexpected(
        core::Error{"connection index '" + request.name + "': the name is taken"});
  }
  if (hash == nullptr) {
    return tl::unexpected(too_little(request, "connection index", bytes));
  }
  return hash;
}

void RteFree::operator()(std::byte* p) const noexcept {
  rte_free(p);
}

core::Result<EntryMemory> EntryMemory::allocate(const MemoryRequest& request, std::size_t bytes,
                                                 const char* what) {
  const int socket = socket_of(request);
  void* data = surely_too_little(socket, bytes)
                   ? nullptr
                   : rte_malloc_socket(request.name.c_str(), bytes, 64, socket);
  if (data == nullptr) {
    return tl::unexpected(too_little(request, what, bytes));
  }
  return EntryMemory(static_cast<std::byte*>(data), bytes);
}

}  // namespace sluice::dpdk
