#include "node/saved_blocks.h"

#include <utility>

#include "store/checkpoint.h"

namespace drover {

Result<SavedBlocks> read_saved(const Plan& plan, ShardId shard) {
  if (plan.resume_from.empty()) return SavedBlocks();
  const auto checkpoint = Checkpoint::open(plan.resume_from);
  if (!checkpoint) return checkpoint.error();
  const CheckpointManifest& manifest = checkpoint.value().manifest();
  if (manifest.tensors != plan.tensors || manifest.step != plan.first_step) {
    return invalid_input("the checkpoint " + plan.resume_from +
                         " is of another model or step than this run's");
  }
  std::vector<Block> mine;
  for (const Block& block : plan.blocks.blocks) {
    if (block.shard == shard) mine.push_back(block);
  }
  auto saved = checkpoint.value().read(mine);
  if (!saved) return saved.error();
  return SavedBlocks(std::move(saved).value());
}

Result<SavedBlocks> kept_blocks(const Plan& plan, ShardId shard, const KeptParts& kept,
                                const std::string& keeper) {
  const CheckpointPart* const part = kept.find(*plan.kept);
  std::vector<SavedBlock> blocks = part ? part->blocks : std::vector<SavedBlock>();
  auto next = blocks.begin();
  for (const Block& block : plan.blocks.blocks) {
    if (block.shard != shard) continue;
    if (next == blocks.end() || next->offset != block.offset || next->length != block.length)
      return invalid_input(keeper + " does not have version " + std::to_string(plan.kept->version) +
                           " in memory, from which the run is to continue");
    ++next;
  }
  return SavedBlocks(std::move(blocks));
}

}  // namespace drover
