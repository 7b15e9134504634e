// ServerCluster: a real shard, real workers with a PushTask, and in this process what a coordinator
// does for them, one move at a time so that each can be timed.
//
// One worker more than push is a member of the run and never pushes. So no block closes by itself:
// gradients are taken in and summed (push), and the update happens when this process decides that
// it need not wait for that one (publish). Sockets have a plain server beside them, in this
// process.
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
  bool share_memory = false;       // gradients and parameters do not move over the sockets
  std::string listen;              // HOST:PORT with kTcp
  std::vector<std::string> netns;  // of the workers, in turn; empty: this one
  uint32_t workers = 1;            // that push
  size_t floats = 0;               // of each gradient
  uint32_t block_floats = 0;       // at most, of each block
  uint64_t window = 0;             // bytes of gradients under way at once
  std::string tls;                 // folder of keys; empty: nothing is encrypted
  bool adapt_window = true;        // smaller while packets get lost
};

class ServerCluster {
 public:
  // Starts all processes; returns when every worker has the initial parameters.
  static Result<std::unique_ptr<ServerCluster>> start(const ClusterSettings& settings);
  virtual ~ServerCluster() = default;

  // Each of these returns when all workers are where they were before, or one step further.
  // A push: from the order to it until the shard has said that all gradients are in. REQUIRES:
  // publish() comes next, and before the next push().
  virtual Result<Duration> push() = 0;
  // From deciding to close until the last worker has the new parameters.
  virtual Result<Duration> publish() = 0;
  // All workers send as many bytes over plain Asio; this process adds them up as they come, 256 KB
  // at a time. Until the last is added.
  virtual Result<Duration> plain_push() = 0;
  // All workers copy as many bytes out of shared memory. Until the last is done.
  virtual Result<Duration> copy() = 0;

  // Elements that are not as they should be: of the workers' parameters, and of the plain sum if
  // one was made.
  virtual Result<uint64_t> count_wrong() = 0;
  // TCP segments that workers' network namespaces have sent again so far.
  virtual Result<uint64_t> retransmits() = 0;

 protected:
  ServerCluster() = default;
};

}  // namespace drover
