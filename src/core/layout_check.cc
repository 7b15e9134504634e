#include "core/layout_check.h"

namespace drover {

Status check_blocks(const BlockPlan& plan, const Layout& layout) {
  for (const Block& block : plan.blocks) {
    const size_t end = size_t{block.tensor} + block.tensors;
    if (block.tensors == 0 || end > layout.tensors().size() ||
        block.offset < layout.offset(block.tensor) ||
        block.offset + block.length > layout.offset(end - 1) + layout.tensors()[end - 1].size) {
      return invalid_input("a block is outside its tensors");
    }
  }
  return done();
}

}  // namespace drover
