#include "cli/progress.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <regex>
#include <string>

#include "core/event_samples.h"
#include "core/event_text.h"
#include "core/random_draw.h"

namespace drover {
namespace {

ProgressState middle() {
  return {.steps_total = 1'000,
          .steps_done = 250,
          .loss = 0.51234,
          .train_accuracy = 0.8125,
          .test_accuracy = std::nullopt,
          .steps_per_second = 10.0,
          .step_seconds = 0.1,
          .last_worker = 3,
          .waited = std::chrono::microseconds(12'300),
          .open_for = std::chrono::milliseconds(50)};
}

bool has(const std::string& line, const std::string& part) {
  return line.find(part) != std::string::npos;
}

TEST(ProgressLine, HasAllPartsIfItIsWideEnough) {
  EXPECT_EQ(progress_line(middle(), 1'000),
            "[=====               ]  step 250/1000  loss 0.5123  train 81.2 %  10.0 steps/s  "
            "1:15 left  waited 12.3 ms for worker 3");
}

TEST(ProgressLine, FitsItsWidthByOmittingTheLeastImportantParts) {
  const std::string whole = progress_line(middle(), 1'000);
  for (size_t width = 0; width <= whole.size() + 1; ++width) {
    EXPECT_LE(progress_line(middle(), width).size(), width);
  }
  EXPECT_EQ(progress_line(middle(), whole.size()), whole);
  const std::string line = progress_line(middle(), 79);
  for (const char* part : {"[==      ]", "step 250/1000", "loss 0.5123", "1:15", "worker 3"}) {
    EXPECT_TRUE(has(line, part)) << line;
  }
  EXPECT_EQ(progress_line(middle(), 25), "step 250/1000");
}

TEST(ProgressLine, SaysThatAStepTakesLong) {
  ProgressState state = middle();
  state.open_for = std::chrono::seconds(7);
  EXPECT_TRUE(has(progress_line(state, 1'000), "7 s")) << progress_line(state, 1'000);
}

TEST(ProgressLine, ShowsTheTestAccuracyOnceItIsKnown) {
  ProgressState state = middle();
  state.test_accuracy = 0.9;
  const std::string line = progress_line(state, 1'000);
  EXPECT_TRUE(has(line, "test 90.00 %")) << line;
  EXPECT_FALSE(has(line, "train")) << line;
}

TEST(ProgressLine, ShowsTheTimeLeftOnlyIfItIsKnown) {
  ProgressState state = middle();
  state.step_seconds = 0.0;
  EXPECT_FALSE(has(progress_line(state, 1'000), ":"));
  state = middle();
  state.steps_done = 0;
  EXPECT_FALSE(has(progress_line(state, 1'000), ":"));
  state = middle();
  state.steps_done = 1'000;
  EXPECT_TRUE(has(progress_line(state, 1'000), "0:00"));
  state.steps_done = 999;
  EXPECT_TRUE(has(progress_line(state, 1'000), "0:01")) << "rounded up";
  state.steps_total = 100'999;
  EXPECT_TRUE(has(progress_line(state, 1'000), "2:46:40"));
}

TEST(ProgressLine, NeverShowsNaNOrInfinity) {
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

TEST(ProgressLine, CountsTheTimeLeftDownDuringAStep) {
  ProgressState state = middle();
  state.step_seconds = 10.0;
  state.steps_done = 990;
  EXPECT_TRUE(has(progress_line(state, 1'000), "1:40"));
  state.open_for = std::chrono::seconds(4);
  EXPECT_TRUE(has(progress_line(state, 1'000), "1:36"));
  state.open_for = std::chrono::seconds(400);
  EXPECT_TRUE(has(progress_line(state, 1'000), "1:30")) << "nine steps are still to come";
}

TEST(ProgressLine, BeforeTheFirstStepReportsOnlyALongWait) {
  ProgressState state;
  state.steps_total = 10;
  EXPECT_EQ(progress_line(state, 40), "[        ]  step 0/10");
  state.open_for = std::chrono::seconds(9);
  EXPECT_EQ(progress_line(state, 1'000), "[                    ]  step 0/10  waiting for 9 s");
}

TEST(Columns, AreCharactersNotBytes) {
  EXPECT_EQ(columns_of(""), 0u);
  EXPECT_EQ(columns_of("step"), 4u);
  EXPECT_EQ(columns_of("12 µs ▁█"), 8u);
  EXPECT_EQ(join_parts({{"µµµµ", 1}}, 4), "µµµµ");
}

// A terminal that has become narrower shows the `columns` characters on rows of `width`, with the
// cursor behind the last character.
TEST(EraseLine, ErasesEveryRowOfAWrappedLine) {
  EXPECT_EQ(erase_line(0, 80), "\r\033[K");
  EXPECT_EQ(erase_line(79, 80), "\r\033[K");
  EXPECT_EQ(erase_line(79, 120), "\r\033[K") << "wider than it was";
  EXPECT_EQ(erase_line(79, 60), "\r\033[1A\033[J");
  EXPECT_EQ(erase_line(119, 40), "\r\033[2A\033[J");
}

// --- The time left

TEST(StepPace, IsExactFromTheFirstStepIfAllStepsAreEqual) {
  StepPace pace;
  EXPECT_EQ(pace.mean(), 0.0);
  for (int step = 0; step < 100; ++step) {
    pace.add(0.25);
    EXPECT_DOUBLE_EQ(pace.mean(), 0.25);
  }
}

TEST(StepPace, ForgetsASlowStart) {
  StepPace pace;
  for (int step = 0; step < 20; ++step) pace.add(10.0);
  for (int step = 0; step < 80; ++step) pace.add(1.0);
  EXPECT_LT(pace.mean(), 1.1);
}

// The forecast varies less the longer the run is, even if step durations vary a lot.
TEST(StepPace, MakesTheTimeLeftConverge) {
  constexpr uint64_t kSeeds = 50;
  double early = 0.0;
  double late = 0.0;
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    StepPace pace;
    for (uint64_t step = 1; step <= 1'000; ++step) {
      // Exponential, with a mean of 10 ms.
      const double u = unit_interval(draw({seed, static_cast<uint64_t>(Purpose::kRunTimes), step}));
      pace.add(-0.01 * std::log(1.0 - u));
      const double wrong = std::abs(pace.mean() / 0.01 - 1.0) / kSeeds;
      if (step == 20) early += wrong;
      if (step == 1'000) late += wrong;
    }
  }
  EXPECT_LT(late, 0.05);  // sqrt(9 / 5n) times the mean of |z|: 0.034
  EXPECT_LT(late, 0.3 * early);
}

// --- The view on standard error

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
    view.tick();  // prints nothing yet
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
  EXPECT_TRUE(has(text, "7.0 ms")) << text;
  EXPECT_TRUE(has(text, "worker 1")) << text;
  EXPECT_TRUE(text.ends_with("\n"));
  EXPECT_FALSE(has(text, "\033")) << "no terminal codes in a file";
}

TEST(ProgressView, OnATerminalRewritesOneLineWithoutColors) {
  const std::string text = shown(ProgressStyle::kTerminal, [](RunView& view) {
    for (Step step = 0; step < 10; ++step) {
      EXPECT_TRUE(view.on_step(step_of(step, 1.0), {}).ok());
      view.tick();
    }
    EXPECT_TRUE(view.on_event(lost_event({}, 9, Peer{Role::kWorker, 3}, "it closed")).ok());
    EXPECT_TRUE(view.on_end({}).ok());
  });
  EXPECT_TRUE(has(text, "\r\033[K")) << text;
  EXPECT_TRUE(text.ends_with("\n"));
  EXPECT_TRUE(has(text, "\r\033[Kdrover: ")) << text;
  EXPECT_TRUE(has(text, "worker 3")) << text;
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 2)
      << "the loss of a worker, and the last line";
  EXPECT_FALSE(std::regex_search(text, std::regex("\033\\[[0-9;]*m"))) << "no colors";
}

TEST(ProgressView, AStepWithoutALossDoesNotHideLaterLosses) {
  const std::string text = shown(ProgressStyle::kLines, [](RunView& view) {
    EXPECT_TRUE(view.on_step(step_of(0, std::nan("")), {}).ok());
    EXPECT_TRUE(view.on_step(step_of(1, 2.0), {}).ok());
    EXPECT_TRUE(view.on_step(step_of(2, std::nan("")), {}).ok());
    EXPECT_TRUE(view.on_end({}).ok());
  });
  EXPECT_TRUE(has(text, "loss 2.0000")) << text;
}

TEST(ProgressView, ReportsErrorsEvenWhenQuiet) {
  const EventRecord lost = lost_event({}, 4, Peer{Role::kWorker, 3}, "closed");
  const std::string text = shown(ProgressStyle::kNone, [&](RunView& view) {
    EXPECT_TRUE(view.on_step(step_of(0, 1.0), {}).ok());
    view.tick();
    EXPECT_TRUE(view.on_event(lost).ok());
    EXPECT_TRUE(view.on_end({.outcome = RunOutcome::kFailed, .reason = "no-space"}).ok());
  });
  EXPECT_TRUE(has(text.substr(0, text.find('\n')), event_line(lost))) << text;
  EXPECT_TRUE(has(text.substr(text.find('\n')), "no-space")) << text;
}

}  // namespace
}  // namespace drover
