#include "sim/standby_cover.h"

#include <gtest/gtest.h>

namespace drover {
namespace {

TEST(StandbyCover, BeginsWhenTheStandbyHasTheNewestKnownVersion) {
  StandbyCover cover;
  cover.on_replicated(1, 4, 5);
  EXPECT_FALSE(cover.covers(1, 5));
  cover.on_replicated(1, 5, 5);
  EXPECT_TRUE(cover.covers(1, 5));
  EXPECT_FALSE(cover.covers(0, 5));
}

TEST(StandbyCover, EndsWithTheConnection) {
  StandbyCover cover;
  cover.on_replicated(1, 5, 5);
  cover.on_replicated(1, 6, 7);  // the shard would have reported the step too early
  EXPECT_TRUE(cover.covers(1, 7));
  cover.on_disconnected(1);
  EXPECT_FALSE(cover.covers(1, 7));
}

TEST(StandbyCover, EndsWhenTheRunRestarts) {
  StandbyCover cover;
  cover.on_replicated(0, 5, 5);
  cover.restart(5);
  EXPECT_FALSE(cover.covers(0, 5));
  cover.on_replicated(0, 6, 5);
  EXPECT_FALSE(cover.covers(0, 5)) << "no step has closed since";
  EXPECT_TRUE(cover.covers(0, 6));
}

}  // namespace
}  // namespace drover
