// Statistics of the kernel about a TCP connection.
#pragma once

#include <cstdint>
#include <optional>

namespace drover {

// Packets received out of order so far. nullopt if it is not a TCP socket or the kernel does not
// report it.
std::optional<uint32_t> tcp_packets_out_of_order(int socket);

}  // namespace drover
