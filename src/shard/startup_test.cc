// A shard asks one worker at a time for initial parameters, and reports once that it has them.
#include "shard/startup.h"

#include <gtest/gtest.h>

namespace drover {
namespace {

TEST(Startup, AsksTheFirstWorkerConnectedOnce) {
  Startup startup;
  Outbox out;
  startup.request(false, {1, 2}, 3, out);
  startup.request(false, {0, 1, 2}, 3, out);
  ASSERT_EQ(out.size(), 1u);
  EXPECT_EQ(out[0].to, to_worker(1, Lane::kControl));
  EXPECT_TRUE(startup.asked(1));
  EXPECT_FALSE(startup.asked(0));
  EXPECT_FALSE(startup.ready());
}

TEST(Startup, DoesNotAskTheEvaluator) {
  Startup startup;
  Outbox out;
  startup.request(false, {}, 3, out);
  startup.request(false, {kEvaluator}, 3, out);
  EXPECT_TRUE(out.empty());
}

TEST(Startup, AsksAnotherWorkerIfTheFirstIsLost) {
  Startup startup;
  Outbox out;
  startup.request(false, {0, 2}, 3, out);
  startup.on_lost(2);
  EXPECT_TRUE(startup.asked(0)) << "another worker was lost";
  startup.on_lost(0);
  startup.request(false, {2}, 3, out);
  ASSERT_EQ(out.size(), 2u);
  EXPECT_EQ(out[1].to, to_worker(2, Lane::kControl));
}

TEST(Startup, ReportsReadyOnce) {
  Startup startup;
  Outbox out;
  startup.request(true, {0}, 1, out);
  startup.request(true, {0}, 1, out);
  ASSERT_EQ(out.size(), 1u);
  EXPECT_EQ(out[0].to, to_coordinator());
  EXPECT_TRUE(startup.ready());
}

}  // namespace
}  // namespace drover
