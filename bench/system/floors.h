// Floors: loops that only read and write memory once, for comparison with the shard's loops.
#pragma once

#include <cstddef>
#include <span>

namespace drover {

// The memory traffic of an update, as streams of equal length: the summed gradients and the
// parameters (read), the state of the optimiser (read and written), the new parameters (written).
struct UpdateStreams {
  std::span<const float> sum;
  std::span<const float> now;
  std::span<float> next;
  std::span<float> momentum;  // empty: none
  std::span<float> squares;   // empty: none
};

// Floats transferred per element: each stream counts once per direction. The cache line that a
// store fetches first does not count, neither here nor for the update.
size_t floats_moved(const UpdateStreams& streams);

// Reads and writes each stream once, with one or two additions per element.
void touch(const UpdateStreams& streams);

}  // namespace drover
