// StepPushes: which workers have pushed one block for the step that it collects for, and whose
// pushes are missing.
#pragma once

#include <cstdint>
#include <vector>

#include "core/ids.h"
#include "core/membership.h"
#include "core/time.h"

namespace drover {

enum class Answer : uint32_t;

class StepPushes {
 public:
  struct Contribution {
    WorkerId worker = 0;
    TimePoint at{};
  };

  explicit StepPushes(const Membership& members)
      : states_(members.size(), State::kPending), missing_(members.count()) {}

  // Whether a push for the open step was answered. A second one is a duplicate.
  bool answered(WorkerId worker) const { return states_[worker] == State::kAnswered; }

  // A push that is not a duplicate was answered: kAccepted if it contributes; kLate if the worker
  // has overwritten it, which counts as withdrawn. REQUIRES: members.has(worker).
  void on_push(WorkerId worker, Answer answer, TimePoint now, const Membership& members);

  // An offer was granted: the block waits for its bytes even if the worker is released.
  void expect(WorkerId worker);
  // Granted bytes will not arrive, because the worker is lost.
  void stop_expecting(WorkerId worker);
  // Granted bytes will not arrive, because the worker has overwritten them.
  void withdraw(WorkerId worker, const Membership& members);
  // The worker pushes nothing more for the open step, except for granted bytes.
  void release(WorkerId worker, const Membership& members);

  // A worker that left is not waited for. Its contribution is used, but does not count towards the
  // cutoff, which is a number of members.
  void on_members_changed(const Membership& members);

  // The next step opens: the pushes of all members are missing.
  void open_next(const Membership& members);

  // The number of members whose push is missing.
  uint32_t missing() const { return missing_; }
  // The number of members that have contributed.
  uint32_t contributed() const { return contributed_; }
  // All contributions, in order of arrival.
  const std::vector<Contribution>& contributions() const { return contributions_; }

 private:
  enum class State : uint8_t { kPending, kExpected, kAnswered, kReleased };
  bool is_missing(WorkerId worker) const {
    return states_[worker] == State::kPending || states_[worker] == State::kExpected;
  }
  void release_from(State state, WorkerId worker, const Membership& members);

  std::vector<State> states_;  // by worker
  uint32_t missing_ = 0;
  uint32_t contributed_ = 0;
  std::vector<Contribution> contributions_;
};

}  // namespace drover
