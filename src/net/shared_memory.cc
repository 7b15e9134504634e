#include "net/shared_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <utility>

#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010  // Linux 5.1
#endif

#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25  // Linux 6.1
#endif

namespace drover {
namespace {

constexpr int kFixedSize = F_SEAL_SHRINK | F_SEAL_GROW;

std::string reason() { return std::strerror(errno); }

// Like mmap(), at an address at which large pages can begin.
void* map_aligned(size_t bytes, int protection, int flags, int file) {
  constexpr size_t kAlignment = SharedMemory::kLargePage;
  if (bytes < kAlignment) return ::mmap(nullptr, bytes, protection, flags, file, 0);
  const size_t space = bytes + kAlignment;
  void* const reserved = ::mmap(nullptr, space, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (reserved == MAP_FAILED) return reserved;
  auto* const begin = static_cast<std::byte*>(reserved);
  const size_t before = kAlignment - reinterpret_cast<uintptr_t>(begin) % kAlignment;
  void* const data = ::mmap(begin + before, bytes, protection, flags | MAP_FIXED, file, 0);
  const int failure = errno;
  // Unmaps the rest on both sides, in whole pages.
  const size_t page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  const size_t end = before + (bytes + page - 1) / page * page;
  ::munmap(begin, data == MAP_FAILED ? space : before);
  if (data != MAP_FAILED && end < space) ::munmap(begin + end, space - end);
  errno = failure;
  return data;
}

}  // namespace

Result<std::shared_ptr<SharedMemory>> SharedMemory::create(size_t bytes, const std::string& what,
                                                           Pages pages) {
  const std::string attempt =
      "cannot share " + std::to_string(bytes >> 20) + " MB of memory (" + what + "): ";
  Descriptor file(::memfd_create("drover", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!file.open()) return system_error(attempt + reason());
  if (::ftruncate(file.get(), static_cast<off_t>(bytes)) != 0)
    return system_error(attempt + reason());
  const int populate = pages == Pages::kAtOnce ? MAP_POPULATE : 0;
  void* const data = map_aligned(bytes, PROT_READ | PROT_WRITE, MAP_SHARED | populate, file.get());
  if (data == MAP_FAILED) return system_error(attempt + reason());
  std::shared_ptr<SharedMemory> memory(
      new SharedMemory(std::move(file), static_cast<std::byte*>(data), bytes));
  if (pages == Pages::kAtOnce) memory->use_large_pages(0, bytes);
  // From here on no other process can map it for writing, if the kernel supports the seal.
  if (::fcntl(memory->file(), F_ADD_SEALS, kFixedSize | F_SEAL_FUTURE_WRITE | F_SEAL_SEAL) != 0 &&
      ::fcntl(memory->file(), F_ADD_SEALS, kFixedSize | F_SEAL_SEAL) != 0) {
    return system_error(attempt + reason());
  }
  return memory;
}

Result<std::shared_ptr<const SharedMemory>> SharedMemory::map(Descriptor file, size_t at_least,
                                                              size_t at_most, Pages pages) {
  if (!file.open()) return invalid_input("the peer shares no memory");
  const int seals = ::fcntl(file.get(), F_GET_SEALS);
  if (seals < 0 || (seals & kFixedSize) != kFixedSize)
    return invalid_input("the peer shares memory without sealing its size");
  struct stat status {};
  if (::fstat(file.get(), &status) != 0 || static_cast<size_t>(status.st_size) < at_least) {
    return invalid_input("the peer shares " + std::to_string(status.st_size) +
                         " bytes of memory where " + std::to_string(at_least) + " are needed");
  }
  const size_t bytes = std::min(static_cast<size_t>(status.st_size), at_most);
  const int populate = pages == Pages::kAtOnce ? MAP_POPULATE : 0;
  void* const data = map_aligned(bytes, PROT_READ, MAP_SHARED | populate, file.get());
  if (data == MAP_FAILED) return system_error("cannot map memory that a peer shares: " + reason());
  // The mapping keeps the memory, so the descriptor can be closed.
  return std::shared_ptr<const SharedMemory>(
      new SharedMemory(Descriptor(), static_cast<std::byte*>(data), bytes));
}

void SharedMemory::use_large_pages(size_t begin, size_t end) {
  begin = (begin + kLargePage - 1) / kLargePage * kLargePage;
  end = std::min(end, size_) / kLargePage * kLargePage;
  // If the kernel is too old, has no large pages left or may not use them, pages stay small.
  if (begin < end) ::madvise(data_ + begin, end - begin, MADV_COLLAPSE);
}

SharedMemory::~SharedMemory() { ::munmap(data_, size_); }

}  // namespace drover
