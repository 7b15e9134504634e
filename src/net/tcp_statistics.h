// What the kernel tells of a TCP connection.
#pragma once

#include <cstdint>
#include <optional>

namespace drover {

// Packets that came out of order so far; nothing if the socket is not TCP's or the kernel does not
// say.
std::optional<uint32_t> tcp_packets_out_of_order(int socket);

}  // namespace drover
