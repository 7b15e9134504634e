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
  // Memory of so many bytes can be one page. Reading through such pages is half again as fast.
  static constexpr size_t kLargePage = 2 << 20;

  // Zeros. Only this process can write to it. `what` names it for error messages. Pages that are
  // there at once are large where the kernel can make them so.
  static Result<std::shared_ptr<SharedMemory>> create(size_t bytes, const std::string& what,
                                                      Pages pages);

  // What another process has created, for reading; no more than `at_most` bytes of it, however
  // large it is. Refuses what is smaller than `at_least`, or could be shortened.
  static Result<std::shared_ptr<const SharedMemory>> map(Descriptor file, size_t at_least,
                                                         size_t at_most, Pages pages);

  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;
  ~SharedMemory();

  std::byte* data() { return data_; }
  const std::byte* data() const { return data_; }
  size_t size() const { return size_; }

  // Makes large pages of the whole ones among these bytes, if the kernel can; they are touched.
  void use_large_pages(size_t begin, size_t end);
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
