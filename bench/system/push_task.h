// PushTask: what a worker of `system_bench server` does in place of learning: it has a gradient
// ready, and pushes it when told. A real worker process runs it, so everything else is the real
// thing.
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

// Where workers write what the benchmark reads. In memory that all of them share.
struct alignas(64) BoardLine {
  std::atomic<int64_t> done_at = 0;  // nanoseconds of the machine's steady clock
  std::atomic<uint64_t> wrong = 0;   // elements of the parameters that are not as they should be
  std::atomic<uint64_t> retransmits = 0;  // TCP segments of its network namespace
};

// What a worker is told, a byte each; it answers with a byte when done, and with one whenever it
// has new parameters.
enum class Order : char {
  kPush = 'p',       // hand in the gradient
  kPlainPush = 'a',  // send the same bytes over plain Asio, and wait for the answer
  kCopy = 'c',       // copy as many bytes out of memory that is shared
  kCheck = 'v',      // compare the parameters with what they should be
  kCount = 'r',      // tell the retransmits
};

// The gradient of every worker is of small whole numbers: sums are exact in any order.
float gradient_value(uint32_t worker, size_t index);
// Element `index` of the parameters after so many updates with the mean of all gradients, from
// zeros, by SGD with a learning rate of 1; by the same operations as the shard's, so to the bit.
float parameter_value(uint32_t workers, size_t index, uint64_t updates);

struct PushTaskSettings {
  uint32_t index = 0;
  uint32_t workers = 0;  // that push; one more, whose index that is, only stands by
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
