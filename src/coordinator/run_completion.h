// RunCompletion: the obligations that a run waits for after its last step, and their deadlines.
//
// Obligations are met in any order. They expire in the order of the enum, one at a time: while one
// is outstanding, later ones do not expire.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <vector>

#include "core/ids.h"
#include "core/time.h"

namespace drover {

class RunCompletion {
 public:
  enum class Obligation : uint8_t {
    kReports,     // workers report on the gradients that were used
    kLeaving,     // workers that brought the model fetch its last version, and then leave
    kCheckpoint,  // the checkpoint of the last step is kept or has failed
    kEvaluation,  // the evaluator measures the last version
  };
  // Since training ended. Reports and closings come over different connections, so a report may
  // arrive after its step has closed. A worker that was stopped never sends its report.
  static constexpr Duration kReportPatience = std::chrono::seconds(1);
  // Longer than a worker waits for the last parameters (node/live_session.cc).
  static constexpr Duration kLeavingPatience = std::chrono::seconds(8);
  // Long enough for a slow disk.
  static constexpr Duration kCheckpointPatience = std::chrono::minutes(10);
  // How long a lost evaluator may take to return, since it was lost or training ended, whichever is
  // later. A connected evaluator has no deadline.
  static constexpr Duration kEvaluatorPatience = std::chrono::seconds(20);

  // The caller's view of what is not done yet.
  struct Unfinished {
    bool reports = false;
    bool leaving = false;
    bool checkpoint = false;
    bool evaluator_here = false;
    std::optional<TimePoint> evaluator_lost = {};  // when; absent: not lost, or cannot return
  };

  void on_training_began(TimePoint now) { began_ = now; }
  void on_training_ended(TimePoint now) { ended_ = now; }
  // The last version was evaluated. May be called before on_training_ended(): the evaluation may
  // arrive before the last step's closing.
  void on_last_evaluated() { evaluated_ = true; }

  struct Outstanding {
    Obligation obligation;
    std::optional<TimePoint> deadline;  // absent: it does not expire
  };
  // The outstanding obligations, in the order in which they expire. REQUIRES (here and below):
  // training has ended.
  std::vector<Outstanding> outstanding(const Unfinished& unfinished) const;
  // The deadline of the first outstanding obligation.
  std::optional<TimePoint> deadline(const Unfinished& unfinished) const;
  // Waives the first outstanding obligation, and returns it, if its deadline has passed.
  std::optional<Obligation> expire(const Unfinished& unfinished, TimePoint now);
  bool is_waived(Obligation obligation) const { return waived_.contains(obligation); }

  // The workers to dismiss now: those of `joined` that are not in `pending`. Returns each once.
  std::vector<WorkerId> dismiss(const std::set<WorkerId>& joined,
                                const std::set<WorkerId>& pending);

  // The duration of the training; zero if it has not begun.
  Duration trained() const { return began_ ? ended_ - *began_ : Duration::zero(); }

 private:
  std::optional<TimePoint> began_;
  TimePoint ended_{};
  bool evaluated_ = false;
  std::set<Obligation> waived_;
  std::set<WorkerId> dismissed_;
};

}  // namespace drover
