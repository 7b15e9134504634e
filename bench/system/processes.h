// What benchmarks with several processes need: children that cannot outlive them, memory they
// share, network namespaces to enter, and an event loop that does not wait for the dead.
#pragma once

#include <sys/types.h>

#include <boost/asio/io_context.hpp>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"
#include "core/time.h"

namespace drover {

// Its end kills and reaps whoever is left.
class BenchProcesses {
 public:
  BenchProcesses() = default;
  ~BenchProcesses();
  BenchProcesses(const BenchProcesses&) = delete;
  BenchProcesses& operator=(const BenchProcesses&) = delete;

  // Forks a child that runs `body` and exits with its result; it is killed when this process dies.
  // REQUIRES: this process has no other thread.
  Status add(const std::string& name, const std::function<int()>& body);

  // An error if one of them has ended, and how.
  Status all_alive();

 private:
  std::map<pid_t, std::string> children_;
};

// Zeros that this process and those it forks later have in common.
class CommonMemory {
 public:
  static Result<CommonMemory> make(size_t bytes);
  CommonMemory(CommonMemory&& other) noexcept;
  CommonMemory& operator=(CommonMemory&&) = delete;
  ~CommonMemory();

  std::span<std::byte> bytes() { return {data_, size_}; }

 private:
  CommonMemory(std::byte* data, size_t size) : data_(data), size_(size) {}
  std::byte* data_;
  size_t size_;
};

// Runs the loop until somebody calls loop.stop(). An error if one of `processes` ends before that,
// or if it takes longer than `patience`; `what` is for its words.
Status run_until_stopped(boost::asio::io_context& loop, BenchProcesses& processes,
                         const std::string& what, Duration patience = std::chrono::seconds(60));

// Moves the calling process into the network namespace that `ip netns add NAME` made. Nothing for
// an empty name. REQUIRES: it has no other thread and no socket that matters.
Status enter_network_namespace(const std::string& name);

// TCP segments that this network namespace has sent again since its beginning.
uint64_t tcp_retransmits();

// "uds" and "tcp": the kinds of socket. An error for others, with the nearest name.
enum class SocketKind : uint8_t { kUnix, kTcp };
Result<SocketKind> parse_socket_kind(const std::string& name);

// Where to listen, as net/endpoint.h has it. `listen` is HOST:PORT and counts with kTcp alone;
// `name` must be new, and counts with kUnix alone.
std::string listen_address(SocketKind kind, const std::string& listen, const std::string& name);

// "a,b" in two; nothing for an empty text.
std::vector<std::string> split_names(const std::string& names);

}  // namespace drover
