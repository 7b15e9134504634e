#include "net/shared_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <utility>

#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010  // Linux 5.1
#endif

namespace drover {
namespace {

constexpr int kFixedSize = F_SEAL_SHRINK | F_SEAL_GROW;

std::string reason() { return std::strerror(errno); }

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
  void* const data =
      ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | populate, file.get(), 0);
  if (data == MAP_FAILED) return system_error(attempt + reason());
  std::shared_ptr<SharedMemory> memory(
      new SharedMemory(std::move(file), static_cast<std::byte*>(data), bytes));
  // From here on nobody else can map it to write; a kernel that cannot forbid that is as before.
  if (::fcntl(memory->file(), F_ADD_SEALS, kFixedSize | F_SEAL_FUTURE_WRITE | F_SEAL_SEAL) != 0 &&
      ::fcntl(memory->file(), F_ADD_SEALS, kFixedSize | F_SEAL_SEAL) != 0) {
    return system_error(attempt + reason());
  }
  return memory;
}

Result<std::shared_ptr<const SharedMemory>> SharedMemory::map(Descriptor file, size_t at_least) {
  if (!file.open()) return invalid_input("the peer shares no memory");
  const int seals = ::fcntl(file.get(), F_GET_SEALS);
  if (seals < 0 || (seals & kFixedSize) != kFixedSize)
    return invalid_input("the peer shares memory that it could take away");
  struct stat status {};
  if (::fstat(file.get(), &status) != 0 || static_cast<size_t>(status.st_size) < at_least) {
    return invalid_input("the peer shares " + std::to_string(status.st_size) +
                         " bytes of memory where " + std::to_string(at_least) + " are needed");
  }
  const auto bytes = static_cast<size_t>(status.st_size);
  void* const data = ::mmap(nullptr, bytes, PROT_READ, MAP_SHARED | MAP_POPULATE, file.get(), 0);
  if (data == MAP_FAILED) return system_error("cannot map memory that a peer shares: " + reason());
  // The mapping keeps the memory; the descriptor is one less to run out of.
  return std::shared_ptr<const SharedMemory>(
      new SharedMemory(Descriptor(), static_cast<std::byte*>(data), bytes));
}

SharedMemory::~SharedMemory() { ::munmap(data_, size_); }

}  // namespace drover
