// What the kernel tells of a TCP connection.
#pragma once

#include <cstdint>

namespace drover {

// Packets that came out of order so far; 0 if the socket is not TCP's or the kernel does not say.
uint32_t tcp_packets_out_of_order(int socket);

}  // namespace drover
