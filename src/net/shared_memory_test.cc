// Shared memory: readers see what the owner writes, and neither side can harm the other.
#include "net/shared_memory.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>

#include "core/test_text.h"

namespace drover {
namespace {

using ::testing::Not;

constexpr size_t kBytes = 10'000;

std::shared_ptr<SharedMemory> create() {
  auto memory = SharedMemory::create(kBytes, "a test", SharedMemory::Pages::kAtOnce);
  EXPECT_TRUE(memory.ok()) << memory.error().message;
  return std::move(memory).value();
}

Result<std::shared_ptr<const SharedMemory>> map(Descriptor file, size_t at_least) {
  return SharedMemory::map(std::move(file), at_least, 100 * kBytes, SharedMemory::Pages::kAtOnce);
}

Descriptor copy_of(const SharedMemory& memory) { return Descriptor(::dup(memory.file())); }

TEST(SharedMemory, ReadersSeeWhatIsWritten) {
  const auto memory = create();
  const auto reader = map(copy_of(*memory), kBytes);
  ASSERT_TRUE(reader.ok()) << reader.error().message;
  EXPECT_EQ(reader.value()->data()[kBytes - 1], std::byte{0});
  memory->data()[kBytes - 1] = std::byte{7};
  EXPECT_EQ(reader.value()->data()[kBytes - 1], std::byte{7});
}

TEST(SharedMemory, OutlivesTheProcessThatCreatedIt) {
  int ends[2] = {-1, -1};
  ASSERT_EQ(::pipe(ends), 0);
  // A child writes into memory that it shares with this process, and is killed.
  const auto memory = create();
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    std::memset(memory->data(), 9, kBytes);
    [[maybe_unused]] const ssize_t written = ::write(ends[1], "x", 1);
    ::pause();
    ::_exit(0);
  }
  const auto reader = map(copy_of(*memory), kBytes);
  ASSERT_TRUE(reader.ok());
  char byte = 0;
  ASSERT_EQ(::read(ends[0], &byte, 1), 1);
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  EXPECT_EQ(reader.value()->data()[kBytes / 2], std::byte{9});
  ::close(ends[0]);
  ::close(ends[1]);
}

TEST(SharedMemory, CannotBeResizedOrWrittenByAReader) {
  const auto memory = create();
  const Descriptor other = copy_of(*memory);
  EXPECT_NE(::ftruncate(other.get(), 0), 0);
  EXPECT_NE(::ftruncate(other.get(), 2 * kBytes), 0);
  EXPECT_EQ(::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED, other.get(), 0),
            MAP_FAILED);
  EXPECT_LT(::pwrite(other.get(), "x", 1, 0), 0);
}

TEST(SharedMemory, RefusesMemoryThatCouldHarmTheReader) {
  const auto memory = create();
  const auto refusal = [](Descriptor file, size_t bytes) {
    const auto mapped = map(std::move(file), bytes);
    EXPECT_FALSE(mapped);
    return mapped ? Error{} : mapped.error();
  };
  EXPECT_THAT(refusal(copy_of(*memory), kBytes + 1),
              is_error(ErrorKind::kInvalidInput, kBytes, kBytes + 1));
  const Error nothing = refusal(Descriptor(), kBytes);
  EXPECT_THAT(nothing, is_error(ErrorKind::kInvalidInput));
  Descriptor loose(::memfd_create("loose", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  ASSERT_EQ(::ftruncate(loose.get(), kBytes), 0);
  const Error not_sealed = refusal(std::move(loose), kBytes);
  EXPECT_THAT(not_sealed, is_error(ErrorKind::kInvalidInput));
  EXPECT_THAT(not_sealed.message, Not(mentions(kBytes)));
  EXPECT_NE(not_sealed.message, nothing.message);
  refusal(Descriptor(::open("/dev/null", O_RDONLY | O_CLOEXEC)), kBytes);
}

TEST(SharedMemory, OfSeveralLargePagesKeepsEveryByte) {
  constexpr size_t kMany = 2 * SharedMemory::kLargePage + 5;
  for (const auto pages : {SharedMemory::Pages::kAtOnce, SharedMemory::Pages::kWhenTouched}) {
    const auto memory = SharedMemory::create(kMany, "a test", pages).value();
    EXPECT_EQ(reinterpret_cast<uintptr_t>(memory->data()) % SharedMemory::kLargePage, 0U);
    const auto reader = SharedMemory::map(copy_of(*memory), kMany, kMany, pages).value();
    EXPECT_EQ(reinterpret_cast<uintptr_t>(reader->data()) % SharedMemory::kLargePage, 0U);
    for (size_t i = 0; i < kMany; i += 1000) memory->data()[i] = static_cast<std::byte>(i / 1000);
    memory->data()[kMany - 1] = std::byte{77};
    // Also if pages become large while another process reads them.
    memory->use_large_pages(0, kMany);
    memory->use_large_pages(1, 2 * kMany);
    memory->use_large_pages(kMany, kMany);
    for (size_t i = 0; i < kMany; i += 1000)
      ASSERT_EQ(reader->data()[i], static_cast<std::byte>(i / 1000)) << i;
    EXPECT_EQ(reader->data()[kMany - 1], std::byte{77});
    EXPECT_EQ(reader->data()[1], std::byte{0});
  }
}

TEST(SharedMemory, IsMappedOnlyUpToTheRequestedSize) {
  const auto memory = create();
  const auto reader =
      SharedMemory::map(copy_of(*memory), 100, 5000, SharedMemory::Pages::kAtOnce).value();
  EXPECT_EQ(reader->size(), 5000U);
}

}  // namespace
}  // namespace drover
