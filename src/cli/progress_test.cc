#include "cli/progress.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <string>

namespace drover {
namespace {

ProgressState middle() {
  return {.steps_total = 1'000,
          .steps_done = 250,
          .loss = 0.51234,
          .train_accuracy = 0.8125,
          .test_accuracy = std::nullopt,
          .steps_per_second = 10.0,
          .last_worker = 3,
          .waited = std::chrono::microseconds(12'300),
          .open_for = std::chrono::milliseconds(50)};
}

bool has(const std::string& line, const std::string& part) {
  return line.find(part) != std::string::npos;
}

TEST(ProgressLine, SaysEverythingWhereThereIsRoom) {
  EXPECT_EQ(progress_line(middle(), 1'000),
            "[=====               ]  step 250/1000  loss 0.5123  train 81.2 %  10.0 steps/s  "
            "1:15 left  waited 12.3 ms for worker 3");
}

TEST(ProgressLine, NeverExceedsItsWidthAndLeavesOutWhatMattersLeast) {
  const std::string whole = progress_line(middle(), 1'000);
  for (size_t width = 0; width <= whole.size() + 1; ++width) {
    EXPECT_LE(progress_line(middle(), width).size(), width);
  }
  EXPECT_EQ(progress_line(middle(), whole.size()), whole);
  const std::string usual = progress_line(middle(), 79);
  for (const char* part : {"step 250/1000", "loss 0.5123", "1:15 left", "for worker 3"}) {
    EXPECT_TRUE(has(usual, part)) << usual;
  }
  EXPECT_EQ(progress_line(middle(), 25), "step 250/1000");
}

TEST(ProgressLine, SaysThatAStepTakesLong) {
  ProgressState state = middle();
  state.open_for = std::chrono::seconds(7);
  EXPECT_TRUE(has(progress_line(state, 1'000), "waiting for 7 s")) << progress_line(state, 1'000);
}

TEST(ProgressLine, ShowsTheTestAccuracyOnceItIsKnown) {
  ProgressState state = middle();
  state.test_accuracy = 0.9;
  const std::string line = progress_line(state, 1'000);
  EXPECT_TRUE(has(line, "test 90.00 %")) << line;
  EXPECT_FALSE(has(line, "train")) << line;
}

TEST(ProgressLine, TellsTheTimeLeftOnlyWhenItCanBeKnown) {
  ProgressState state = middle();
  state.steps_per_second = 0.0;
  EXPECT_FALSE(has(progress_line(state, 1'000), "left"));
  state = middle();
  state.steps_done = 0;
  EXPECT_FALSE(has(progress_line(state, 1'000), "left"));
  state = middle();
  state.steps_done = 1'000;
  EXPECT_TRUE(has(progress_line(state, 1'000), "0:00 left"));
  state.steps_done = 999;
  EXPECT_TRUE(has(progress_line(state, 1'000), "0:01 left")) << "rounded up";
  state.steps_total = 100'999;
  EXPECT_TRUE(has(progress_line(state, 1'000), "2:46:40 left"));
}

TEST(ProgressLine, IsEmptyOfNaNWhateverTheRunIsLike) {
  ProgressState none;  // nothing has happened
  const std::string line = progress_line(none, 1'000);
  EXPECT_FALSE(has(line, "nan")) << line;
  EXPECT_FALSE(has(line, "inf")) << line;

  ProgressState bad = middle();
  bad.loss = std::nan("");
  EXPECT_TRUE(has(progress_line(bad, 1'000), "loss -")) << progress_line(bad, 1'000);
  bad.loss = std::numeric_limits<double>::infinity();
  EXPECT_TRUE(has(progress_line(bad, 1'000), "loss -")) << progress_line(bad, 1'000);
  bad.loss = 1e34;
  EXPECT_LE(progress_line(bad, 1'000).size(), 140U) << "a loss that explodes is still short";
}

// --- the view, on standard error

StepRecord step_of(Step step, double loss) {
  return {.step = step,
          .at = std::chrono::milliseconds(10 * step),
          .elapsed = std::chrono::milliseconds(10),
          .contributors = 2,
          .loss = loss,
          .accuracy = 0.5,
          .last_worker = 1};
}

std::string shown(ProgressStyle style, const std::function<void(RunView&)>& story) {
  ::testing::internal::CaptureStderr();
  auto view = make_progress_view(10, style);
  story(*view);
  view.reset();
  return ::testing::internal::GetCapturedStderr();
}

TEST(ProgressView, PrintsALineAtTheEnd) {
  const std::string text = shown(ProgressStyle::kLines, [](RunView& view) {
    view.tick();  // nothing to tell yet
    for (Step step = 0; step < 10; ++step) {
      EXPECT_TRUE(view.on_step(step_of(step, 1.0),
                               {{.worker = 0, .run_time = std::chrono::milliseconds(2)},
                                {.worker = 1, .run_time = std::chrono::milliseconds(9)}})
                      .ok());
    }
    EXPECT_TRUE(view.on_end({}).ok());
  });
  EXPECT_TRUE(has(text, "step 10/10")) << text;
  EXPECT_TRUE(has(text, "100.0 steps/s")) << text;
  EXPECT_TRUE(has(text, "waited 7.0 ms for worker 1")) << text;
  EXPECT_TRUE(text.ends_with("\n"));
  EXPECT_FALSE(has(text, "\033")) << "no terminal codes in a file";
}

TEST(ProgressView, AStepWithoutALossDoesNotSpoilTheLossForGood) {
  const std::string text = shown(ProgressStyle::kLines, [](RunView& view) {
    EXPECT_TRUE(view.on_step(step_of(0, std::nan("")), {}).ok());
    EXPECT_TRUE(view.on_step(step_of(1, 2.0), {}).ok());
    EXPECT_TRUE(view.on_step(step_of(2, std::nan("")), {}).ok());
    EXPECT_TRUE(view.on_end({}).ok());
  });
  EXPECT_TRUE(has(text, "loss 2.0000")) << text;
}

TEST(ProgressView, SaysTroubleEvenWhenQuiet) {
  const std::string text = shown(ProgressStyle::kNone, [](RunView& view) {
    EXPECT_TRUE(view.on_step(step_of(0, 1.0), {}).ok());
    view.tick();
    EXPECT_TRUE(
        view.on_event({.step = 4, .kind = "lost", .peer = "worker 3", .text = "it closed"}).ok());
    EXPECT_TRUE(view.on_end({.outcome = RunOutcome::kFailed, .reason = "the disk is full"}).ok());
  });
  EXPECT_EQ(text,
            "drover: step 4: worker 3 was lost: it closed\ndrover: the run failed: the disk is "
            "full\n");
}

}  // namespace
}  // namespace drover
