#include "worker/welcome_check.h"

#include <string>

#include "core/layout_check.h"

namespace drover {

Status check_welcome(const Welcome& welcome, const Layout& layout, std::optional<WorkerId> worker) {
  if (welcome.shards.empty() || welcome.shards.size() != welcome.blocks.shards) {
    return invalid_input("the coordinator names " + std::to_string(welcome.shards.size()) +
                         " addresses of " + std::to_string(welcome.blocks.shards) + " shards");
  }
  if (const Status fits = check_blocks(welcome.blocks, layout); !fits)
    return invalid_input("the coordinator's blocks do not match this model: " +
                         fits.error().message);
  if (worker && *worker >= welcome.workers)
    return invalid_input("the coordinator's run has no worker " + std::to_string(*worker));
  return done();
}

}  // namespace drover
