// SharedMemory: memory that one process writes and other processes on its host read in place.
//
// It has no name and no file: it is a descriptor that is sent over a Unix socket. The kernel frees
// it when the last process that holds it ends. Its size is sealed: if the writer could shrink it, a
// reader would be killed by SIGBUS.
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
  // Size of a large page in bytes. Reading from large pages is 1.5 times as fast.
  static constexpr size_t kLargePage = 2 << 20;

  // Creates memory filled with zeros, which only this process can write. `what` names it in error
  // messages. With kAtOnce, pages are large if the kernel supports that.
  static Result<std::shared_ptr<SharedMemory>> create(size_t bytes, const std::string& what,
                                                      Pages pages);

  // Maps memory of another process for reading, at most `at_most` bytes of it. Refuses memory that
  // is smaller than `at_least`, or whose size is not sealed.
  static Result<std::shared_ptr<const SharedMemory>> map(Descriptor file, size_t at_least,
                                                         size_t at_most, Pages pages);

  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;
  ~SharedMemory();

  std::byte* data() { return data_; }
  const std::byte* data() const { return data_; }
  size_t size() const { return size_; }

  // Converts the pages that are completely in this range to large pages, if the kernel can. Touches
  // the pages.
  void use_large_pages(size_t begin, size_t end);
  // The descriptor to send to other processes; -1 if this is a mapping of another process's memory.
  int file() const { return file_.get(); }

 private:
  SharedMemory(Descriptor file, std::byte* data, size_t size)
      : file_(std::move(file)), data_(data), size_(size) {}

  Descriptor file_;
  std::byte* data_;
  size_t size_;
};

}  // namespace drover
