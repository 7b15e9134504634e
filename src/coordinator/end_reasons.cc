#include "coordinator/end_reasons.h"

#include "core/event_text.h"

namespace drover {

std::string server_lost_reason(const Peer& server, const Loss& why, Step step,
                               const std::string& checkpoints) {
  return name_of(server) + " was lost at step " + std::to_string(step) + " (" + loss_text(why) +
         "); the run cannot continue without its part of the parameters. " +
         (checkpoints.empty()
              ? "To survive this, use --standby, or --checkpoint with --supervise"
              : "--resume " + checkpoints +
                    " continues from the newest checkpoint; --supervise does so automatically");
}

std::string rank_lost_reason(const Peer& worker, const Loss& why) {
  return "lost " + name_of(worker) + ": " + loss_text(why) +
         ". With --transport mpi all ranks are required; --resume continues from the newest "
         "checkpoint, if there is one (--checkpoint)";
}

std::string diverged_reason(uint32_t steps) {
  return "training diverged: every gradient of the last " + std::to_string(steps) +
         " steps had NaN or infinity. Try a lower learning rate (--lr) or a warm-up (--lr-warmup)";
}

std::string interrupted_reason(Step step, Step steps) {
  return "interrupted at step " + std::to_string(step) +
         (steps < kEndless ? " of " + std::to_string(steps) : "");
}

std::string not_ready_reason(Duration waited) {
  return "not all processes were ready to train within " +
         std::to_string(static_cast<int>(seconds(waited))) + " s";
}

}  // namespace drover
