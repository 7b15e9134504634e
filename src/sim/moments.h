// Moments: what a scenario plans, at times and at the opening of steps.
#pragma once

#include <functional>
#include <map>
#include <utility>

#include "sim/event_queue.h"
#include "sim/scenario.h"

namespace drover {

class Moments {
 public:
  explicit Moments(EventQueue& time) : time_(time) {}

  void at(const Moment& moment, std::function<void()> happen) {
    if (moment.step) {
      at_step_.emplace(*moment.step, std::move(happen));
    } else {
      time_.plan(moment.at, std::move(happen));
    }
  }

  // The step opens. What was planned for it happens at this time, after what is under way; once,
  // even if the step opens again after a restart.
  void on_step(Step step) {
    const auto [first, last] = at_step_.equal_range(step);
    for (auto due = first; due != last; ++due) time_.plan(time_.now(), std::move(due->second));
    at_step_.erase(first, last);
  }

 private:
  EventQueue& time_;
  std::multimap<Step, std::function<void()>> at_step_;
};

}  // namespace drover
