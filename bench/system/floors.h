// Floors: loops that do nothing but read and write memory once, to hold the shard's own against.
#pragma once

#include <cstddef>
#include <span>

namespace drover {

// What an update reads and writes, as so many streams of equal length: the summed gradients and the
// parameters in, the state of the optimiser in and out, the new parameters out.
struct UpdateStreams {
  std::span<const float> sum;
  std::span<const float> now;
  std::span<float> next;
  std::span<float> momentum;  // empty: none
  std::span<float> squares;   // empty: none
};

// Floats that move for one element: each stream counts once each way. The line that a store fetches
// first is not counted, neither here nor of the update that is held against this.
size_t floats_moved(const UpdateStreams& streams);

// Reads and writes every stream once, with an addition or two for each element.
void touch(const UpdateStreams& streams);

}  // namespace drover
