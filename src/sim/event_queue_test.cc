#include "sim/event_queue.h"

#include <gtest/gtest.h>

namespace drover {
namespace {

TEST(EventQueue, RunsEventsInOrderOfTimeThenOfPlanning) {
  EventQueue queue;
  std::vector<int> seen;
  queue.plan(Duration(20), [&] { seen.push_back(3); });
  queue.plan(Duration(10), [&] { seen.push_back(1); });
  queue.plan(Duration(10), [&] {
    seen.push_back(2);
    queue.plan(queue.now() + Duration(20), [&] { seen.push_back(4); });
  });
  while (queue.advance()) {
  }
  EXPECT_EQ(seen, (std::vector<int>{1, 2, 3, 4}));
  EXPECT_EQ(queue.now(), Duration(30));
}

}  // namespace
}  // namespace drover
