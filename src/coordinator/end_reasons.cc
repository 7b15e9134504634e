#include "coordinator/end_reasons.h"

#include "core/event_text.h"

namespace drover {

std::string server_lost_reason(const Peer& server, const Loss& why, Step step,
                               const std::string& checkpoints) {
  return name_of(server) + " was lost at step " + std::to_string(step) + " (" + loss_text(why) +
         "); its part of the parameters is gone, so the run cannot go on" +
         (checkpoints.empty()
              ? ". With --standby, or --checkpoint and --supervise, it would have"
              : ". --resume " + checkpoints +
                    " goes on from the newest checkpoint; with --supervise it would have done so "
                    "by itself");
}

std::string rank_lost_reason(const Peer& worker, const Loss& why) {
  return "lost " + name_of(worker) + ": " + loss_text(why) +
         ". With --transport mpi no rank can be missed; --resume goes on from the newest "
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
