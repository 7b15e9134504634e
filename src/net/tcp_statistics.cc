#include "net/tcp_statistics.h"

// Not <netinet/tcp.h>, which conflicts with this header and whose tcp_info lacks newer fields.
#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cstddef>

namespace drover {

std::optional<uint32_t> tcp_packets_out_of_order(int socket) {
  tcp_info info{};
  socklen_t size = sizeof(info);
  if (::getsockopt(socket, IPPROTO_TCP, TCP_INFO, &info, &size) != 0) return std::nullopt;
  constexpr size_t needed = offsetof(tcp_info, tcpi_rcv_ooopack) + sizeof(info.tcpi_rcv_ooopack);
  if (size < needed) return std::nullopt;
  return info.tcpi_rcv_ooopack;
}

}  // namespace drover
