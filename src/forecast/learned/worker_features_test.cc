#include "forecast/learned/worker_features.h"

#include <gtest/gtest.h>

#include <cmath>

#include "core/random_draw.h"

namespace drover {
namespace {

PastTime arrived(float log_time) { return {log_time, log_time, Known::kArrived}; }
PastTime longer(float bound, float imputed) { return {imputed, bound, Known::kLonger}; }

std::vector<PastTime> random_row(Step step, size_t workers) {
  std::vector<PastTime> row;
  for (size_t i = 0; i < workers; ++i) {
    const auto unit = static_cast<float>(unit_interval(draw({7, step, i})));
    if (i % 3 == step % 3 && step > 0) {
      row.push_back(longer(unit, unit + 0.5F));
    } else {
      row.push_back(arrived(unit));
    }
  }
  return row;
}

TEST(WorkerFeatures, AnchorsFollowARunTimeAtDifferentRates) {
  WorkerFeatures features;
  for (Step step = 0; step < 40; ++step) features.learn(step, std::vector{arrived(1.0F)});
  features.learn(40, std::vector{arrived(2.0F)});
  const WorkerView view = features.view(0);
  EXPECT_FLOAT_EQ(view.anchors[kLastAnchor], 2.0F);
  EXPECT_FLOAT_EQ(view.anchors[kPrevAnchor], 1.0F);
  EXPECT_NEAR(view.anchors[kFastAnchor], 1.7F, 1e-5);
  EXPECT_NEAR(view.anchors[kMidAnchor], 1.3F, 1e-5);
  EXPECT_NEAR(view.anchors[kSlowAnchor], 1.05F, 1e-5);
}

TEST(WorkerFeatures, MeanTheSameInEveryUnitOfTime) {
  WorkerFeatures features;
  WorkerFeatures thousandfold;
  for (Step step = 0; step < 30; ++step) {
    std::vector<PastTime> row = random_row(step, 6);
    features.learn(step, row);
    for (PastTime& time : row) {
      time.log_time += std::log(1000.0F);
      time.bound += std::log(1000.0F);
    }
    thousandfold.learn(step, row);
  }
  for (WorkerId worker = 0; worker < 7; ++worker) {
    const WorkerView one = features.view(worker);
    const WorkerView other = thousandfold.view(worker);
    EXPECT_NEAR(one.scale, other.scale, 1e-4);
    for (uint32_t i = 0; i < kFeatureCount; ++i) {
      EXPECT_NEAR(one.features[i], other.features[i], 1e-3) << i;
    }
    for (uint32_t i = 0; i < kAnchorCount; ++i) {
      EXPECT_NEAR(one.anchors[i] + std::log(1000.0F), other.anchors[i], 1e-3);
    }
  }
}

TEST(WorkerFeatures, ABoundBelowTheLevelDoesNotMoveIt) {
  WorkerFeatures features;
  for (Step step = 0; step < 20; ++step) features.learn(step, std::vector{arrived(1.0F)});
  const WorkerView before = features.view(0);
  for (Step step = 20; step < 200; ++step) {
    features.learn(step, std::vector{longer(0.5F, 3.0F)});
  }
  const WorkerView after = features.view(0);
  EXPECT_FLOAT_EQ(after.anchors[kMidAnchor], before.anchors[kMidAnchor]);
  EXPECT_FLOAT_EQ(after.scale, before.scale);
  EXPECT_GT(after.features[6], 0.9F) << "mostly censored";
  EXPECT_FLOAT_EQ(after.features[8], 1.0F) << "many steps without an arrival";
}

TEST(WorkerFeatures, ALateRunTimeCountsAsATimelyOne) {
  WorkerFeatures late;
  WorkerFeatures timely;
  for (Step step = 0; step < 50; ++step) {
    std::vector<PastTime> row = random_row(step, 5);
    late.learn(step, row);
    for (PastTime& time : row) {
      if (time.known == Known::kLonger) time = arrived(time.bound + 0.25F);
    }
    timely.learn(step, row);
    for (WorkerId worker = 0; worker < 5; ++worker) {
      if (row[worker].known == Known::kArrived) late.correct(step, worker, row[worker].bound);
    }
  }
  for (WorkerId worker = 0; worker < 5; ++worker) {
    for (uint32_t i = 0; i < kCenterAnchor; ++i) {
      EXPECT_NEAR(late.view(worker).anchors[i], timely.view(worker).anchors[i], 1e-4);
    }
  }
}

TEST(WorkerFeatures, AnUnknownWorkerLooksAverage) {
  WorkerFeatures features;
  EXPECT_TRUE(features.empty());
  for (Step step = 0; step < 10; ++step) {
    features.learn(step, std::vector{arrived(1.0F), arrived(2.0F), arrived(3.0F), PastTime{}});
  }
  for (const WorkerId unknown : {WorkerId{3}, WorkerId{99}}) {
    const WorkerView view = features.view(unknown);
    for (const float anchor : view.anchors) EXPECT_FLOAT_EQ(anchor, 2.0F);
    EXPECT_GT(view.scale, 0.0F);
  }
}

}  // namespace
}  // namespace drover
