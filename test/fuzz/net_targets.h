#pragma once

// Fuzz targets of dataplane/core/net. Each takes any bytes, checks what must hold for all of them,
// and aborts the process when it does not. libFuzzer drives them (SLUICE_FUZZ), and so does the
// deterministic smoke test in ctest.

#include <cstddef>
#include <cstdint>

namespace sluice::fuzz {

/// parse_frame(): the short cut and the general parser agree; offsets lie inside the frame.
void parse(const std::uint8_t* data, std::size_t size);
/// parse_icmp_error() and translate_icmp_error(): stay inside the frame; translating back restores
/// it but for the hop limit and the checksums' two zeros.
void icmp(const std::uint8_t* data, std::size_t size);
/// parse_tunnel_error() and write_tunnel_headers(): what a tunnel makes of a packet parses, is the
/// packet but for its hop, and an error about it names the packet's flow.
void tunnel(const std::uint8_t* data, std::size_t size);
/// translate() and translate_fragment(), the same.
void rewrite(const std::uint8_t* data, std::size_t size);
/// build_reject(), build_icmp_error(), make_echo_reply(): what comes out parses and is no error
/// about an error.
void reject(const std::uint8_t* data, std::size_t size);
/// ARP and neighbour discovery.
void neighbor(const std::uint8_t* data, std::size_t size);
/// Text of addresses: what parses prints as a text that parses to the same.
void address(const std::uint8_t* data, std::size_t size);

}  // namespace sluice::fuzz
