// Tools for benchmarks with several processes: children that end with them, shared memory, network
// namespaces, and an event loop that stops when a child dies.
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

// The destructor kills and reaps the remaining processes.
class BenchProcesses {
 public:
  BenchProcesses() = default;
  ~BenchProcesses();
  BenchProcesses(const BenchProcesses&) = delete;
  BenchProcesses& operator=(const BenchProcesses&) = delete;

  // Forks a child that runs `body` and exits with its result. The child is killed if this process
  // dies. REQUIRES: this process has no other thread.
  Status add(const std::string& name, const std::function<int()>& body);

  // An error that says how, if one of them has ended.
  Status all_alive();

 private:
  std::map<pid_t, std::string> children_;
};

// Zeroed memory, shared with processes that this one forks later.
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

// Runs the loop until loop.stop() is called. An error if one of `processes` ends before that,
// or if it takes longer than `patience`; `what` is for the message.
Status run_until_stopped(boost::asio::io_context& loop, BenchProcesses& processes,
                         const std::string& what, Duration patience = std::chrono::seconds(60));

// Moves the calling process into the network namespace made by `ip netns add NAME`. Does nothing
// for an empty name. REQUIRES: the process has no other thread and no open socket that it still
// uses.
Status enter_network_namespace(const std::string& name);

// TCP segments that this network namespace has retransmitted so far.
uint64_t tcp_retransmits();

// The kinds of socket, "uds" and "tcp". An error for others, with the most similar name.
enum class SocketKind : uint8_t { kUnix, kTcp };
Result<SocketKind> parse_socket_kind(const std::string& name);

// The address to listen on, in the syntax of net/endpoint.h. `listen` is HOST:PORT, used with kTcp;
// `name` must be new, used with kUnix.
std::string listen_address(SocketKind kind, const std::string& listen, const std::string& name);

// Splits "a,b" at commas; empty for an empty text.
std::vector<std::string> split_names(const std::string& names);

}  // namespace drover
