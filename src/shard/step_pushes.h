// StepPushes: which workers have pushed one block in the step it collects for, and which still owe
// it.
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
      : states_(members.size(), State::kOwed), missing_(members.count()) {}

  // A push for the open step was answered: a second one is a duplicate.
  bool answered(WorkerId worker) const { return states_[worker] == State::kAnswered; }

  // A push that is not a duplicate was answered: kAccepted if it contributes; kLate if the worker
  // has overwritten it, so that it is as if withdrawn. REQUIRES: members.has(worker).
  void on_push(WorkerId worker, Answer answer, TimePoint now, const Membership& members);

  // The bytes of an offer are on their way: the block waits for them even if it is released.
  void expect(WorkerId worker);
  // They will not come, because the worker is lost.
  void stop_expecting(WorkerId worker);
  // They will not come, because the worker has overwritten them.
  void withdraw(WorkerId worker, const Membership& members);
  // The worker pushes nothing more for the open step. Bytes on their way are still waited for.
  void release(WorkerId worker, const Membership& members);

  // A worker that left is not waited for. Its contribution is used, but does not count towards a
  // cutoff, which is about the workers alive.
  void on_members_changed(const Membership& members);

  // The next step opens: all members owe their push.
  void open_next(const Membership& members);

  // Members that still owe a push.
  uint32_t missing() const { return missing_; }
  // Contributions of members.
  uint32_t contributed() const { return contributed_; }
  // All contributions, in order of arrival.
  const std::vector<Contribution>& contributions() const { return contributions_; }

 private:
  enum class State : uint8_t { kOwed, kExpected, kAnswered, kReleased };
  bool is_missing(WorkerId worker) const {
    return states_[worker] == State::kOwed || states_[worker] == State::kExpected;
  }
  void release_from(State state, WorkerId worker, const Membership& members);

  std::vector<State> states_;  // by worker
  uint32_t missing_ = 0;
  uint32_t contributed_ = 0;
  std::vector<Contribution> contributions_;
};

}  // namespace drover
