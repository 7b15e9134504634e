// SharedMemory: memory that one process writes and others on its host read in place.
//
// It has no name and no file: it exists as a descriptor that is handed over a Unix socket, and is
// gone when the last process that holds it is, however that one ends. Its size never changes, which
// is sealed: otherwise a reader could be killed by a writer that takes the memory away.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "core/result.h"
#include "net/descriptor.h"

namespace drover {

class SharedMemory {
 public:
  enum class Pages { kAtOnce, kWhenTouched };

  // Zeros. Only this process can write to it. `what` names it for error messages.
  static Result<std::shared_ptr<SharedMemory>> create(size_t bytes, const std::string& what,
                                                      Pages pages);

  // What another process has created, for reading. Refuses what is smaller, or could be shortened.
  static Result<std::shared_ptr<const SharedMemory>> map(Descriptor file, size_t at_least);

  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;
  ~SharedMemory();

  std::byte* data() { return data_; }
  const std::byte* data() const { return data_; }
  size_t size() const { return size_; }
  // To hand to others; -1 where it was mapped from another's.
  int file() const { return file_.get(); }

 private:
  SharedMemory(Descriptor file, std::byte* data, size_t size)
      : file_(std::move(file)), data_(data), size_(size) {}

  Descriptor file_;
  std::byte* data_;
  size_t size_;
};

}  // namespace drover
