// PushTask: the task of a worker of `system_bench server`. It has a gradient ready, and pushes it
// on request. A real worker process runs it, so everything else is as in a real run.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "core/float_buffer.h"
#include "core/layout.h"
#include "worker/task.h"

namespace drover {

// A worker's results for the benchmark, in shared memory.
struct alignas(64) BoardLine {
  std::atomic<int64_t> done_at = 0;       // nanoseconds of the machine's steady clock
  std::atomic<uint64_t> wrong = 0;        // number of wrong elements of the parameters
  std::atomic<uint64_t> retransmits = 0;  // TCP segments of its network namespace
};

// Commands to a worker, one byte each. It answers with a byte when done, and with one whenever it
// receives new parameters.
enum class Order : char {
  kPush = 'p',       // push the gradient
  kPlainPush = 'a',  // send the same bytes over plain Asio, and wait for the answer
  kCopy = 'c',       // copy as many bytes out of shared memory
  kCheck = 'v',      // compare the parameters with the expected ones
  kCount = 'r',      // report the retransmits
};

// Gradients consist of small whole numbers, so sums are exact in any order.
float gradient_value(uint32_t worker, size_t index);
// Element `index` of the parameters after `updates` updates with the mean of all gradients, from
// zeros, by SGD with a learning rate of 1. It is bitwise exact, by the same operations as the
// shard's.
float parameter_value(uint32_t workers, size_t index, uint64_t updates);

struct PushTaskSettings {
  uint32_t index = 0;
  uint32_t workers = 0;  // that push; one more worker, with this index, is idle
  size_t floats = 0;
  int orders_fd = -1;
  std::string plain_address;  // empty: none
  std::span<const std::byte> shared;
  BoardLine* line = nullptr;
};

// Connects to the plain server, if there is one.
Result<std::unique_ptr<Task>> make_push_task(const PushTaskSettings& settings);

Layout push_layout(size_t floats);

}  // namespace drover
