// EventQueue: virtual time. Events run in order of time; events with equal times run in the order
// in which they were planned, so that a simulation is reproducible.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "core/check.h"
#include "core/time.h"

namespace drover {

class EventQueue {
 public:
  TimePoint now() const { return now_; }
  size_t size() const { return events_.size(); }

  // REQUIRES: at >= now().
  void plan(TimePoint at, std::function<void()> happen) {
    DROVER_CHECK(at >= now_);
    events_.push_back({at, next_number_++, std::move(happen)});
    std::push_heap(events_.begin(), events_.end(), Later{});
  }

  // Runs the next event. Returns false if there is none.
  bool advance() {
    if (events_.empty()) return false;
    std::pop_heap(events_.begin(), events_.end(), Later{});
    const Event event = std::move(events_.back());
    events_.pop_back();
    now_ = event.at;
    event.happen();
    return true;
  }

 private:
  struct Event {
    TimePoint at{};
    uint64_t number = 0;
    std::function<void()> happen;
  };
  struct Later {
    bool operator()(const Event& a, const Event& b) const {
      return std::pair(a.at, a.number) > std::pair(b.at, b.number);
    }
  };

  TimePoint now_{};
  uint64_t next_number_ = 0;
  std::vector<Event> events_;  // a heap
};

}  // namespace drover
