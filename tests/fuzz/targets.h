// The targets of fuzzing, by name. Each accepts any bytes, and ends the program if the code breaks
// a promise.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

namespace drover::fuzz {

using Bytes = std::span<const std::byte>;

void checkpoint(Bytes input);   // the files of a checkpoint
void control(Bytes input);      // control messages
void coordinator(Bytes input);  // messages of peers to a coordinator, in any order
void header(Bytes input);       // headers of frames
void job(Bytes input);          // job files
void model(Bytes input);        // files of learned models
void request(Bytes input);      // requests to the page's server
void scenario(Bytes input);     // scenario files
void shard(Bytes input);        // messages of peers to a shard, in any order
void standby(Bytes input);      // messages between a shard and its standby
void trace(Bytes input);        // traces, as CSV or NPY
void worker(Bytes input);       // messages of servers to a worker, in any order

struct Target {
  std::string_view name;
  void (*run)(Bytes input);
};
std::span<const Target> targets();

// The bytes as text.
inline std::string_view text_of(Bytes input) {
  return {reinterpret_cast<const char*>(input.data()), input.size()};
}

}  // namespace drover::fuzz
