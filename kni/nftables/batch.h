#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <linux/netlink.h>

#include "dataplane/core/net/address.h"

namespace sluice::kni::nft {

/// One nfnetlink transaction as bytes. Messages are numbered from 1, so that an answer can be told
/// what it is about. Thread: one.
class Batch {
 public:
  /// @param generation  the kernel refuses the batch when its generation is another; absent: it
  /// does not look.
  explicit Batch(std::optional<std::uint32_t> generation);

  /// Starts a message of nf_tables; attributes follow with put() or the pointer's helpers.
  /// @param type  NFT_MSG_*. @param what  what it is about, for errors.
  void begin(std::uint16_t type, core::Family family, std::uint16_t flags, std::string what);
  void put(std::uint16_t attribute, std::string_view bytes);
  void put_text(std::uint16_t attribute, const std::string& text);  ///< with its end mark
  void put_be32(std::uint16_t attribute, std::uint32_t value);
  /// Opens a nest. @return its position, for close().
  std::size_t open(std::uint16_t attribute);
  void close(std::size_t nest);
  /// Ends the message.
  void end();
  /// A whole message made by libnftnl; its number is put in.
  void append(const nlmsghdr& message, std::string what);
  /// Ends the transaction. Nothing may follow.
  void finish();

  [[nodiscard]] const std::vector<char>& bytes() const noexcept { return bytes_; }
  [[nodiscard]] std::size_t size() const noexcept { return bytes_.size(); }
  [[nodiscard]] std::size_t messages() const noexcept { return what_.size(); }
  /// What message `number` is about.
  [[nodiscard]] const std::string& what(std::uint32_t number) const;

 private:
  void header(std::uint16_t type, std::uint16_t flags, std::uint8_t family, std::uint16_t resource);
  void append_bytes(const void* at, std::size_t size);

  std::vector<char> bytes_;
  std::size_t message_ = 0;  ///< where the open message begins
  std::vector<std::string> what_;
};

/// NFPROTO_* of a family.
[[nodiscard]] std::uint8_t family_number(core::Family family) noexcept;

}  // namespace sluice::kni::nft
