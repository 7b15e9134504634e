// CheckpointFile: one shard's part of a checkpoint, as a safetensors file that other tools can
// read.
//
// The file has the header's length (8 bytes, little-endian), a JSON header, and raw float32 arrays.
// Each block has an array for its parameters and one for each array of its optimiser. An array's
// name is its kind and its offset in the flat buffer: "parameters.000000065536". The header's
// `__metadata__` has the other fields of each block (length, updates, the bits of the powers of
// beta) and the CRC-32 of every array. The header's CRC-32 is in the manifest (store/checkpoint.h).
#pragma once

#include <array>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/atomic_file.h"
#include "core/checkpoint_part.h"
#include "core/result.h"

namespace drover {

// A file as the manifest lists it.
struct CheckpointFileEntry {
  std::string name;  // in the checkpoint's folder
  uint64_t bytes = 0;
  uint32_t checksum = 0;  // CRC-32 of the bytes before the arrays
  bool operator==(const CheckpointFileEntry&) const = default;
};

// Writes `part` to a file in `folder`. REQUIRES: the folder exists.
Result<CheckpointFileEntry> write_checkpoint_part(const CheckpointPart& part,
                                                  const std::string& folder,
                                                  const KeepWriting& keep_writing = {});

class CheckpointFile {
 public:
  // Arrays that a block may have, by their names in the file.
  static constexpr std::array<const char*, 4> kArrays = {"parameters", "momentum", "squares",
                                                         "average"};
  struct Array {
    uint64_t begin = 0;  // in the file, in bytes
    uint32_t checksum = 0;
  };
  struct Block {
    SavedBlock saved;  // without buffers
    std::array<std::optional<Array>, kArrays.size()> arrays;
  };

  // Reads and checks the header. Never allocates more memory than the file's size.
  static Result<CheckpointFile> open(const std::string& folder, const CheckpointFileEntry& entry);

  ShardId shard() const { return shard_; }
  Version version() const { return version_; }
  const std::string& path() const { return path_; }
  // By offset in the flat buffer, without overlap.
  const std::vector<Block>& blocks() const { return blocks_; }

  // Reads an array of a block and checks it. REQUIRES: the block has it; out.size() is its length.
  Status read(const Block& block, size_t array, std::span<float> out) const;

 private:
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  CheckpointFile() = default;
  Status parse(std::span<const char> text, uint64_t data_begin, uint64_t bytes);

  std::string path_;
  std::unique_ptr<std::FILE, Close> file_;
  ShardId shard_ = 0;
  Version version_ = 0;
  std::vector<Block> blocks_;
};

// The buffers of a saved block, in the order of CheckpointFile::kArrays.
std::array<ConstBuffer*, 4> buffers_of(SavedBlock& block);
std::array<const ConstBuffer*, 4> buffers_of(const SavedBlock& block);

uint32_t checksum_of(std::span<const std::byte> bytes);

}  // namespace drover
