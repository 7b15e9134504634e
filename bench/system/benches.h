// The benchmarks of system_bench. Each returns the exit status of the process.
#pragma once

#include <cstdint>
#include <string>

namespace drover {

struct BenchOptions {
  std::string workers = "16,158,640,2175,10000";  // with commas
  uint32_t samples = 0;                           // 0: as many as a decision uses
  uint32_t repeat = 200;
  std::string emission = "shared";
  bool json = false;
};
int bench_decide_command(const BenchOptions& options);

// A shard's update, compared with the speed of memory.
struct OptimizerBenchOptions {
  std::string kind = "momentum";
  uint64_t mb = 100;  // of parameters
  uint32_t rounds = 9;
  bool json = false;
};
int bench_optimizer_command(const OptimizerBenchOptions& options);

// Frames between two processes, compared with plain Asio on the same kind of socket.
struct TransportBenchOptions {
  std::string transport = "uds";
  std::string listen = "127.0.0.1:0";  // with tcp
  std::string netns;                   // the network namespace of the far end; empty: this one
  uint32_t rounds = 7;
  uint32_t volume_mb = 256;  // transferred for each figure in each round
  bool json = false;
};
int bench_transport_command(const TransportBenchOptions& options);

// A real shard and real workers, compared with the plain sum of the same gradients.
struct ServerBenchOptions {
  std::string transport = "uds";
  std::string listen = "127.0.0.1:0";  // with tcp
  std::string netns;                   // network namespaces of the workers, with commas, in turn
  uint32_t workers = 8;
  uint64_t mb = 4;  // size of each gradient
  uint32_t kb = 0;  // the same in kilobytes; 0: use mb
  uint64_t window = 1 << 20;
  bool fixed_window = false;  // also while packets are lost
  std::string tls;            // folder of keys, with tcp; empty: no encryption
  uint32_t block_kb = 0;      // size of a block of a gradient; 0: as in training
  uint32_t rounds = 15;
  bool json = false;
};
int bench_server_command(const ServerBenchOptions& options);

}  // namespace drover
