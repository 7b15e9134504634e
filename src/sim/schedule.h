// Schedule: the events that a scenario plans for a time, or for when a step opens.
#pragma once

#include <functional>
#include <map>
#include <utility>

#include "sim/event_queue.h"
#include "sim/scenario.h"

namespace drover {

class Schedule {
 public:
  explicit Schedule(EventQueue& time) : time_(time) {}

  void at(const Trigger& trigger, std::function<void()> happen) {
    if (trigger.step) {
      at_step_.emplace(*trigger.step, std::move(happen));
    } else {
      time_.plan(trigger.at, std::move(happen));
    }
  }

  // The step opens. Events planned for it run at this time, after events that are already due. They
  // run once, even if the step opens again after a restart.
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
