// Facts about this machine and process for the record of a run, and limits of the process.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace drover {

std::string host_name();

// Peak resident memory of a process on this machine, in bytes; 0 if there is no such process.
uint64_t peak_memory_bytes(int64_t pid);

// Raises the limit on open files as far as the system allows. Returns the limit of this process and
// of those forked from it.
uint64_t raise_file_limit();
// The warning for the user if `limit` is too low for a run with so many workers; "" if it is not.
std::string too_few_files(uint64_t limit, uint64_t workers);

// Makes the allocator keep freed memory. A gradient allocates and frees the same memory at every
// step; with a small model, getting it from the kernel each time took a fifth of the step.
void keep_freed_memory();

// 128 random bits from the kernel as text, for a token.
std::string random_token();

// Processor, cores, memory, kernel, compiler: for the run file.
std::vector<std::pair<std::string, std::string>> describe_host();

}  // namespace drover
