// The targets of fuzzing, by name. Each takes any bytes at all, and ends the program if the code
// breaks a promise.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

namespace drover::fuzz {

using Bytes = std::span<const std::byte>;

void checkpoint(Bytes input);   // the files of a checkpoint
void control(Bytes input);      // control messages
void coordinator(Bytes input);  // what peers tell a coordinator, in any order
void header(Bytes input);       // headers of frames
void job(Bytes input);          // job files
void model(Bytes input);        // files of learned models
void request(Bytes input);      // requests to the page's server
void scenario(Bytes input);     // scenario files
void shard(Bytes input);        // what peers tell a shard, in any order
void standby(Bytes input);      // what a shard and its standby tell each other
void trace(Bytes input);        // traces, as CSV or NPY
void worker(Bytes input);       // what servers tell a worker, in any order

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
