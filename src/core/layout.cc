#include "core/layout.h"

#include <algorithm>
#include <bit>
#include <numeric>

#include "core/random_draw.h"

namespace drover {
namespace {

constexpr uint64_t kAlignment = 16;  // floats: one cache line

// Whether both can be in one block.
bool learned_alike(const TensorSpec& a, const TensorSpec& b) {
  return a.kind == b.kind && a.rate == b.rate && a.decay == b.decay && a.group == 0 && b.group == 0;
}

uint64_t hash_text(const std::string& text) {
  uint64_t hash = text.size();
  for (const char c : text) hash = mix_bits(hash ^ static_cast<unsigned char>(c));
  return hash;
}

}  // namespace

Layout::Layout(std::vector<TensorSpec> tensors) : tensors_(std::move(tensors)) {
  for (const TensorSpec& tensor : tensors_) {
    offsets_.push_back(buffer_size_);
    buffer_size_ += (tensor.size + kAlignment - 1) / kAlignment * kAlignment;
  }
}

uint64_t Layout::parameter_count() const {
  uint64_t count = 0;
  for (const TensorSpec& tensor : tensors_) count += tensor.size;
  return count;
}

uint64_t Layout::fingerprint() const {
  uint64_t hash = tensors_.size();
  for (const TensorSpec& tensor : tensors_) {
    hash = draw({hash, hash_text(tensor.name), tensor.size, static_cast<uint64_t>(tensor.kind),
                 std::bit_cast<uint64_t>(tensor.rate), std::bit_cast<uint64_t>(tensor.decay)});
  }
  return hash;
}

std::vector<BlockId> BlockPlan::blocks_of_shard(ShardId shard) const {
  std::vector<BlockId> ids;
  for (const Block& block : blocks) {
    if (block.shard == shard) ids.push_back(block.id);
  }
  return ids;
}

std::vector<BlockId> BlockPlan::blocks_of_tensor(uint32_t tensor) const {
  std::vector<BlockId> ids;
  for (const Block& block : blocks) {
    if (block.tensor <= tensor && tensor < block.tensor + block.tensors) ids.push_back(block.id);
  }
  return ids;
}

BlockPlan plan_blocks(const Layout& layout, uint32_t shards, uint32_t block_floats_max) {
  DROVER_CHECK(shards >= 1);
  DROVER_CHECK(block_floats_max >= 1);
  BlockPlan plan{.blocks = {}, .shards = shards};
  const uint64_t gathered_max =
      std::min<uint64_t>({kGatheredFloatsMax, block_floats_max,
                          layout.buffer_size() / (uint64_t{shards} * kBlocksPerShard)});
  for (uint32_t tensor = 0; tensor < layout.tensors().size(); ++tensor) {
    const TensorSpec& spec = layout.tensors()[tensor];
    if (spec.size == 0) continue;
    if (!plan.blocks.empty()) {
      Block& last = plan.blocks.back();
      const uint64_t together = layout.offset(tensor) + spec.size - last.offset;
      if (learned_alike(layout.tensors()[last.tensor], spec) && together <= gathered_max) {
        last.length = static_cast<uint32_t>(together);
        last.tensors = tensor + 1 - last.tensor;
        continue;
      }
    }
    for (uint64_t begin = 0; begin < spec.size; begin += block_floats_max) {
      plan.blocks.push_back(
          {.id = static_cast<BlockId>(plan.blocks.size()),
           .tensor = tensor,
           .offset = layout.offset(tensor) + begin,
           .length = static_cast<uint32_t>(std::min<uint64_t>(block_floats_max, spec.size - begin)),
           .shard = 0,
           .kind = spec.kind});
    }
  }

  std::vector<BlockId> largest_first(plan.blocks.size());
  std::iota(largest_first.begin(), largest_first.end(), BlockId{0});
  std::sort(largest_first.begin(), largest_first.end(), [&](BlockId a, BlockId b) {
    const uint32_t length_a = plan.blocks[a].length;
    const uint32_t length_b = plan.blocks[b].length;
    return length_a != length_b ? length_a > length_b : a < b;
  });
  std::vector<uint64_t> load(shards, 0);
  for (const BlockId id : largest_first) {
    const auto lightest = std::min_element(load.begin(), load.end());
    plan.blocks[id].shard = static_cast<ShardId>(lightest - load.begin());
    *lightest += plan.blocks[id].length;
  }
  return plan;
}

}  // namespace drover
