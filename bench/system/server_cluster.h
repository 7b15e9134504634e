// ServerCluster: a real shard, and real workers with a PushTask. This process acts as the
// coordinator, one operation at a time, so that each can be timed.
//
// An additional worker is a member of the run and never pushes. So no block closes by itself:
// gradients are received and summed (push), and the update happens when this process decides not to
// wait for that worker (publish). For sockets there is also a plain server in this process.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/result.h"
#include "core/time.h"
#include "system/processes.h"

namespace drover {

struct ClusterSettings {
  SocketKind sockets = SocketKind::kUnix;
  bool share_memory = false;       // gradients and parameters are not sent over the sockets
  std::string listen;              // HOST:PORT with kTcp
  std::vector<std::string> netns;  // of the workers, round-robin; empty: this one
  uint32_t workers = 1;            // that push
  size_t floats = 0;               // of each gradient
  uint32_t block_floats = 0;       // at most, of each block
  uint64_t window = 0;             // bytes of gradients under way at once
  std::string tls;                 // folder of keys; empty: nothing is encrypted
  bool adapt_window = true;        // smaller while packets are lost
};

class ServerCluster {
 public:
  // Starts all processes. Returns when each worker has the initial parameters.
  static Result<std::unique_ptr<ServerCluster>> start(const ClusterSettings& settings);
  virtual ~ServerCluster() = default;

  // Each operation returns when all workers have finished it.
  // A push: from the command until the shard reports that it has all gradients. REQUIRES:
  // publish() comes next, and before the next push().
  virtual Result<Duration> push() = 0;
  // From the decision to close until the last worker has the new parameters.
  virtual Result<Duration> publish() = 0;
  // All workers send as many bytes over plain Asio, and this process sums them on arrival, 256 KB
  // at a time. The time is until the last byte is added.
  virtual Result<Duration> plain_push() = 0;
  // All workers copy as many bytes out of shared memory. The time is until the last worker is done.
  virtual Result<Duration> copy() = 0;

  // Number of wrong elements: of the workers' parameters, and of the plain sum if
  // there is one.
  virtual Result<uint64_t> count_wrong() = 0;
  // TCP segments that the workers' network namespaces have retransmitted so far.
  virtual Result<uint64_t> retransmits() = 0;

 protected:
  ServerCluster() = default;
};

}  // namespace drover
