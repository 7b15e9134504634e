#include "coordinator/run_completion.h"

#include <algorithm>

namespace drover {

std::vector<RunCompletion::Outstanding> RunCompletion::outstanding(
    const Unfinished& unfinished) const {
  std::vector<Outstanding> list;
  const auto add = [&](bool open, Obligation obligation, TimePoint deadline) {
    if (open && !is_waived(obligation)) list.push_back({obligation, deadline});
  };
  add(unfinished.reports, Obligation::kReports, ended_ + kReportPatience);
  add(unfinished.leaving, Obligation::kLeaving, ended_ + kLeavingPatience);
  add(unfinished.checkpoint, Obligation::kCheckpoint, ended_ + kCheckpointPatience);
  if (evaluated_) return list;
  if (unfinished.evaluator_here) {
    list.push_back({Obligation::kEvaluation, std::nullopt});
  } else if (unfinished.evaluator_lost) {
    add(true, Obligation::kEvaluation,
        std::max(ended_, *unfinished.evaluator_lost) + kEvaluatorPatience);
  }
  return list;
}

std::optional<TimePoint> RunCompletion::deadline(const Unfinished& unfinished) const {
  const std::vector<Outstanding> list = outstanding(unfinished);
  return list.empty() ? std::nullopt : list.front().deadline;
}

std::optional<RunCompletion::Obligation> RunCompletion::expire(const Unfinished& unfinished,
                                                               TimePoint now) {
  const std::vector<Outstanding> list = outstanding(unfinished);
  if (list.empty() || !list.front().deadline || now < *list.front().deadline) return std::nullopt;
  waived_.insert(list.front().obligation);
  return list.front().obligation;
}

std::vector<WorkerId> RunCompletion::dismiss(const std::set<WorkerId>& joined,
                                             const std::set<WorkerId>& pending) {
  std::vector<WorkerId> dismissed;
  for (const WorkerId worker : joined) {
    if (!pending.contains(worker) && dismissed_.insert(worker).second) dismissed.push_back(worker);
  }
  return dismissed;
}

}  // namespace drover
