#include "shard/step_pushes.h"

#include <algorithm>

#include "core/check.h"
#include "wire/header.h"

namespace drover {

void StepPushes::on_push(WorkerId worker, Answer answer, TimePoint now, const Membership& members) {
  DROVER_CHECK(members.has(worker));
  if (is_missing(worker)) --missing_;
  states_[worker] = answer == Answer::kLate ? State::kReleased : State::kAnswered;
  if (answer != Answer::kAccepted) return;
  ++contributed_;
  contributions_.push_back({worker, now});
}

void StepPushes::expect(WorkerId worker) {
  if (states_[worker] == State::kPending) states_[worker] = State::kExpected;
}

void StepPushes::stop_expecting(WorkerId worker) {
  if (states_[worker] == State::kExpected) states_[worker] = State::kPending;
}

void StepPushes::withdraw(WorkerId worker, const Membership& members) {
  release_from(State::kExpected, worker, members);
}

void StepPushes::release(WorkerId worker, const Membership& members) {
  release_from(State::kPending, worker, members);
}

void StepPushes::release_from(State state, WorkerId worker, const Membership& members) {
  if (states_[worker] != state) return;
  states_[worker] = State::kReleased;
  if (members.has(worker)) --missing_;
}

void StepPushes::on_members_changed(const Membership& members) {
  missing_ = 0;
  for (WorkerId worker = 0; worker < states_.size(); ++worker) {
    if (members.has(worker) && is_missing(worker)) ++missing_;
  }
  contributed_ = static_cast<uint32_t>(
      std::count_if(contributions_.begin(), contributions_.end(),
                    [&](const Contribution& each) { return members.has(each.worker); }));
}

void StepPushes::open_next(const Membership& members) {
  std::fill(states_.begin(), states_.end(), State::kPending);
  missing_ = members.count();
  contributed_ = 0;
  contributions_.clear();
}

}  // namespace drover
