// RunCompletion: what a run still waits for after its last step, and until when.
//
// It waits for a list of obligations. They are met in any order; they expire in the order of the
// list, one at a time: while one is outstanding, those behind it do not expire.
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
    kLeaving,     // workers that bring the model fetch its last version, and leave by themselves
    kCheckpoint,  // that of the last step is kept, or has failed
    kEvaluation,  // the evaluator measures the last version
  };
  // Since training ended. Reports travel apart from the news that a step has closed, so that they
  // may come later; a worker that was stopped never sends one.
  static constexpr Duration kReportPatience = std::chrono::seconds(1);
  // Longer than a worker waits for the last parameters (node/live_session.cc).
  static constexpr Duration kLeavingPatience = std::chrono::seconds(8);
  // A slow disk may take long.
  static constexpr Duration kCheckpointPatience = std::chrono::minutes(10);
  // Since training ended, or the evaluator was lost after that: how long it may take to return. One
  // that is here is waited for as long as it stays.
  static constexpr Duration kEvaluatorPatience = std::chrono::seconds(20);

  // What is not done yet, as far as others know it.
  struct Unfinished {
    bool reports = false;
    bool leaving = false;
    bool checkpoint = false;
    bool evaluator_here = false;
    std::optional<TimePoint> evaluator_lost = {};  // since then, and it is to return
  };

  void on_training_began(TimePoint now) { began_ = now; }
  void on_training_ended(TimePoint now) { ended_ = now; }
  // The last version was evaluated. That news may overtake the last step's closing.
  void on_last_evaluated() { evaluated_ = true; }

  struct Outstanding {
    Obligation obligation;
    std::optional<TimePoint> deadline;  // absent: it does not expire
  };
  // In the order in which they expire. REQUIRES (here and below): training has ended.
  std::vector<Outstanding> outstanding(const Unfinished& unfinished) const;
  // When the first of them expires.
  std::optional<TimePoint> deadline(const Unfinished& unfinished) const;
  // The first of them, if its deadline has passed: it is waited for no longer.
  std::optional<Obligation> expire(const Unfinished& unfinished, TimePoint now);
  bool is_waived(Obligation obligation) const { return waived_.contains(obligation); }

  // Workers to be dismissed now, each once: those of `joined` that are not `owing` anything.
  std::vector<WorkerId> dismiss(const std::set<WorkerId>& joined, const std::set<WorkerId>& owing);

  // How long training took. Zero if it has not begun.
  Duration trained() const { return began_ ? ended_ - *began_ : Duration::zero(); }

 private:
  std::optional<TimePoint> began_;
  TimePoint ended_{};
  bool evaluated_ = false;
  std::set<Obligation> waived_;
  std::set<WorkerId> dismissed_;
};

}  // namespace drover
