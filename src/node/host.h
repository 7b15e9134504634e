// What this machine and process are, as far as a run's record cares.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace drover {

std::string host_name();

// Peak resident memory of a process on this machine, in bytes; 0 if it is not there.
uint64_t peak_memory_bytes(int64_t pid);

// Raises the limit on open files as far as the system allows, so that many workers fit. Returns how
// many this process, and those forked from it, may have open.
uint64_t raise_file_limit();
// What to tell the user if that is too little for a run with so many workers; "" if it will do.
std::string too_few_files(uint64_t limit, uint64_t workers);

// A gradient takes and frees the same memory at every step. Given back to the kernel in between, it
// has to be made anew each time, which was a fifth of a small model's step.
void keep_freed_memory();

// 128 random bits from the kernel as text, for a token.
std::string random_token();

// Processor, cores, memory, kernel, compiler: for the run store.
std::vector<std::pair<std::string, std::string>> describe_host();

}  // namespace drover
