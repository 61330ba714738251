#include "dataplane/core/net/write_headers.h"

#include "dataplane/core/net/checksum.h"
#include "dataplane/core/net/headers.h"

namespace sluice::core {

namespace {

void write_ipv4(std::uint8_t* ip, const NewIpHeader& header, std::uint32_t payload) noexcept {
  std::memset(ip, 0, ipv4::kHeaderLength);
  ip[0] = 0x45;
  ip[ipv4::kTos] = header.traffic_class;
  store_be16(ip + ipv4::kTotalLength, static_cast<std::uint16_t>(ipv4::kHeaderLength + payload));
  ip[ipv4::kTtl] = header.hop_limit;
  ip[ipv4::kProtocol] = header.protocol;
  header.src.v4().store(ip + ipv4::kSrc);
  header.dst.v4().store(ip + ipv4::kDst);
  store_raw16(ip + ipv4::kChecksum, ipv4_header_checksum(ip, ipv4::kHeaderLength));
}

void write_ipv6(std::uint8_t* ip, const NewIpHeader& header, std::uint32_t payload) noexcept {
  store_be32(ip, 0x60000000u | std::uint32_t{header.traffic_class} << 20);
  store_be16(ip + ipv6::kPayloadLength, static_cast<std::uint16_t>(payload));
  ip[ipv6::kNextHeader] = header.protocol;
  ip[ipv6::kHopLimit] = header.hop_limit;
  header.src.v6().store(ip + ipv6::kSrc);
  header.dst.v6().store(ip + ipv6::kDst);
}

}  // namespace

std::uint32_t ip_header_length(Family family) noexcept {
  return family == Family::kIpv4 ? ipv4::kHeaderLength : ipv6::kHeaderLength;
}

std::uint32_t write_frame_headers(std::uint8_t* frame, const MacAddress& eth_dst,
                                  const MacAddress& eth_src, const NewIpHeader& ip,
                                  std::uint32_t payload_length) noexcept {
  eth_dst.store(frame);
  eth_src.store(frame + 6);
  const bool v4 = ip.src.is_v4();
  store_be16(frame + kEthernetTypeOffset, v4 ? kEtherTypeIpv4 : kEtherTypeIpv6);
  (v4 ? write_ipv4 : write_ipv6)(frame + kEthernetLength, ip, payload_length);
  return kEthernetLength + ip_header_length(ip.src.family());
}

void write_l4_checksum(std::uint8_t* l4, const NewIpHeader& ip, std::uint32_t length) noexcept {
  std::size_t field = 0;
  if (!l4_checksum_offset(ip.protocol, field)) {
    return;
  }
  store_raw16(l4 + field, 0);
  // ICMP for IPv4 is the one without a pseudo-header (RFC 792).
  store_raw16(l4 + field, ip.protocol == kIpProtoIcmp
                              ? static_cast<std::uint16_t>(~fold(sum_bytes(l4, length)))
                              : l4_checksum(ip.src, ip.dst, ip.protocol, l4, length));
}

}  // namespace sluice::core
