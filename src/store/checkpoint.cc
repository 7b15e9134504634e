#include "store/checkpoint.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/check.h"

namespace drover {
namespace {

// The maximum size of a run's flat buffer in floats (wire/limits.h), so that sums cannot overflow.
constexpr uint64_t kFloatsMax = uint64_t{1} << 40;

struct Stretch {
  uint64_t begin = 0;
  uint64_t end = 0;
};

}  // namespace

Result<Checkpoint> Checkpoint::open(const std::string& folder) {
  auto manifest = read_manifest(folder);
  if (!manifest) return manifest.error();
  Checkpoint opened;
  opened.folder_ = folder;
  opened.manifest_ = std::move(manifest).value();
  uint64_t floats = 0;
  for (const TensorSpec& tensor : opened.manifest_.tensors) {
    floats += std::min(tensor.size, kFloatsMax);
    if (floats >= kFloatsMax) return invalid_input(folder + " has more numbers than any run");
  }
  opened.layout_ = Layout(opened.manifest_.tensors);
  for (const CheckpointFileEntry& entry : opened.manifest_.files) {
    auto file = CheckpointFile::open(folder, entry);
    if (!file) return file.error();
    if (file.value().version() != opened.manifest_.step) {
      return invalid_input(fmt::format("{} is of step {}, not {}", file.value().path(),
                                       file.value().version(), opened.manifest_.step));
    }
    opened.files_.push_back(std::move(file).value());
  }
  if (const Status covered = opened.check_cover(); !covered) return covered.error();
  return opened;
}

Status Checkpoint::check_cover() const {
  std::vector<Stretch> saved;
  for (const CheckpointFile& file : files_) {
    for (const CheckpointFile::Block& block : file.blocks()) {
      const uint64_t size = layout_.buffer_size();
      if (block.saved.offset > size || block.saved.length > size - block.saved.offset)
        return invalid_input(file.path() + " has a block outside the layout of the manifest");
      saved.push_back({block.saved.offset, block.saved.offset + block.saved.length});
    }
  }
  std::sort(saved.begin(), saved.end(),
            [](const Stretch& a, const Stretch& b) { return a.begin < b.begin; });
  for (size_t i = 1; i < saved.size(); ++i) {
    if (saved[i].begin < saved[i - 1].end)
      return invalid_input("two files in " + folder_ + " have the same numbers");
  }
  // Both are in ascending order: each tensor begins in the range in which the previous one ended,
  // or in a later range.
  size_t at = 0;
  for (size_t tensor = 0; tensor < layout_.tensors().size(); ++tensor) {
    const uint64_t end = layout_.offset(tensor) + layout_.tensors()[tensor].size;
    for (uint64_t place = layout_.offset(tensor); place < end;) {
      while (at < saved.size() && saved[at].end <= place) ++at;
      if (at == saved.size() || saved[at].begin > place) {
        return invalid_input("a part of " + layout_.tensors()[tensor].name + " is in none of " +
                             folder_ + "'s files");
      }
      place = saved[at].end;
    }
  }
  return done();
}

uint64_t Checkpoint::bytes() const {
  uint64_t sum = 0;
  for (const CheckpointFileEntry& file : manifest_.files) sum += file.bytes;
  return sum;
}

Result<std::vector<SavedBlock>> Checkpoint::read(std::span<const Block> blocks) const {
  std::vector<SavedBlock> made;
  for (const Block& block : blocks)
    made.push_back({.offset = block.offset, .length = block.length});
  std::sort(made.begin(), made.end(),
            [](const SavedBlock& a, const SavedBlock& b) { return a.offset < b.offset; });
  std::vector<std::array<SharedBuffer, CheckpointFile::kArrays.size()>> values(made.size());
  for (const CheckpointFile& file : files_) {
    for (const CheckpointFile::Block& block : file.blocks()) {
      const uint64_t begin = block.saved.offset;
      const uint64_t end = begin + block.saved.length;
      // The first range that ends after the beginning of the block.
      auto into = std::upper_bound(
          made.begin(), made.end(), begin,
          [](uint64_t place, const SavedBlock& each) { return place < each.offset + each.length; });
      if (into == made.end() || into->offset >= end) continue;
      for (size_t array = 0; array < CheckpointFile::kArrays.size(); ++array) {
        if (!block.arrays[array]) continue;
        FloatBuffer whole(block.saved.length);
        if (const Status read = file.read(block, array, whole.span()); !read) return read.error();
        for (auto each = into; each != made.end() && each->offset < end; ++each) {
          SharedBuffer& target = values[static_cast<size_t>(each - made.begin())][array];
          if (!target) target = std::make_shared<FloatBuffer>(each->length);
          const uint64_t from = std::max(begin, each->offset);
          const uint64_t to = std::min(end, each->offset + each->length);
          std::copy_n(whole.data() + (from - begin), to - from,
                      target->data() + (from - each->offset));
        }
      }
      for (auto each = into; each != made.end() && each->offset < end; ++each) {
        if (block.saved.updates < each->updates) continue;
        each->updates = block.saved.updates;
        each->beta1_power = block.saved.beta1_power;
        each->beta2_power = block.saved.beta2_power;
        // The guard's state is unknown for a block with other boundaries.
        if (each->offset == begin && each->length == block.saved.length)
          each->lengths = block.saved.lengths;
      }
    }
  }
  for (size_t i = 0; i < made.size(); ++i) {
    const auto buffers = buffers_of(made[i]);
    for (size_t array = 0; array < buffers.size(); ++array)
      *buffers[array] = std::move(values[i][array]);
  }
  return made;
}

Status Checkpoint::verify() const {
  for (const CheckpointFile& file : files_) {
    for (const CheckpointFile::Block& block : file.blocks()) {
      FloatBuffer values(block.saved.length);
      for (size_t array = 0; array < CheckpointFile::kArrays.size(); ++array) {
        if (!block.arrays[array]) continue;
        if (const Status read = file.read(block, array, values.span()); !read) return read;
      }
    }
  }
  return done();
}

}  // namespace drover
