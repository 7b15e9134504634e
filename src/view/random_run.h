// For tests only: runs generated from a seed, with stragglers, late gradients, losses that are NaN,
// and steps with several decisions or none.
#pragma once

#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

#include "core/random_draw.h"
#include "store/test_run.h"

namespace drover {

class RandomRun {
 public:
  RandomRun(uint64_t seed, uint32_t workers) : seed_(seed), workers_(workers) {}

  // Writes steps [from, to). All values depend only on the seed and the step.
  void write(RunWriter& writer, Step from, Step to) const {
    for (Step step = from; step < to; ++step) write_step(writer, step);
  }

 private:
  double uniform(Step step, uint64_t worker, uint64_t what) const {
    return unit_interval(
        draw({seed_, static_cast<uint64_t>(Purpose::kFaults), step, worker, what}));
  }
  Duration run_time(Step step, WorkerId worker) const {
    return from_seconds(0.01 * (1.0 + worker % 3) * (0.5 + uniform(step, worker, 1)));
  }
  bool takes_part(Step step, WorkerId worker) const { return uniform(step, worker, 2) < 0.95; }
  bool is_cut(Step step, WorkerId worker) const {
    return uniform(step, 0, 3) < 0.7 && uniform(step, worker, 4) < 0.2;
  }
  bool comes_late(Step step, WorkerId worker) const { return uniform(step, worker, 5) < 0.5; }

  void write_step(RunWriter& writer, Step step) const {
    const auto decisions = static_cast<uint32_t>(uniform(step, 0, 6) * 3.0);
    for (uint32_t i = 0; i < decisions; ++i) {
      // Some steps have a forecast of the last arrival.
      const auto mean = static_cast<float>(0.01 + 0.2 * uniform(step, 0, 20));
      std::vector<ExpectedArrival> expected;
      if (i == 0 && uniform(step, 0, 21) < 0.8)
        expected = {{1, mean / 2, mean / 4, mean}, {workers_, mean, mean / 2, 2 * mean}};
      DROVER_EXPECT_OK(writer.on_decision({.step = step,
                                           .cutoff = 1 + i,
                                           .alive = workers_,
                                           .reason = "because of step " + std::to_string(step),
                                           .time_limit = from_seconds(0.5 * i),
                                           .at = from_seconds(0.001 * i),
                                           .expected = std::move(expected)}));
    }
    StepRecord record{.step = step,
                      .at = std::chrono::milliseconds(50 * step + 7),
                      .elapsed = from_seconds(0.05 * (0.2 + uniform(step, 0, 7))),
                      .late = static_cast<uint32_t>(uniform(step, 0, 8) * 3.0),
                      .refused = uniform(step, 0, 9) < 0.1 ? 1u : 0u,
                      .samples = 64 * step % 640,
                      .loss = uniform(step, 0, 10) < 0.02 ? std::numeric_limits<double>::quiet_NaN()
                                                          : uniform(step, 0, 11),
                      .accuracy = uniform(step, 0, 12),
                      .learning_rate = 0.1,
                      .closing = from_seconds(0.004 * uniform(step, 0, 13)),
                      .undecided = from_seconds(0.002 * uniform(step, 0, 14)),
                      .noise_scale = uniform(step, 0, 15) < 0.5 ? 12.5 : std::nan("")};
    std::vector<ArrivalRecord> arrivals;
    for (WorkerId worker = 0; worker < workers_; ++worker) {
      if (!takes_part(step, worker)) continue;
      const bool cut = is_cut(step, worker);
      const Duration time = run_time(step, worker);
      arrivals.push_back({.step = step,
                          .worker = worker,
                          .run_time = cut ? time / 2 : time,
                          .censored = cut,
                          .compute = uniform(step, 0, 16) < 0.9 ? time * 2 / 3 : Duration::zero(),
                          .samples = 8});
      if (cut) continue;
      ++record.contributors;
      record.last_worker = worker;
    }
    DROVER_EXPECT_OK(writer.on_step(record, arrivals));
    // Stragglers that were allowed to finish arrive one to three steps later.
    for (Step before = step < 3 ? 0 : step - 3; before < step; ++before) {
      for (WorkerId worker = 0; worker < workers_; ++worker) {
        const bool now = before + 1 + worker % 3 == step;
        if (!now || !takes_part(before, worker) || !is_cut(before, worker)) continue;
        if (!comes_late(before, worker)) continue;
        DROVER_EXPECT_OK(writer.on_late_arrival(
            {.step = before, .worker = worker, .run_time = run_time(before, worker) * 3}));
      }
    }
    if (step % 10 == 9) {
      DROVER_EXPECT_OK(writer.on_evaluation({step + 1, record.at, uniform(step, 0, 17), 0.5, 100}));
    }
    if (uniform(step, 0, 18) < 0.05) {
      EventPayload payload = event::Joined{};
      if (uniform(step, 0, 19) < 0.5) payload = event::Lost{.loss = disconnected("connection")};
      DROVER_EXPECT_OK(writer.on_event(
          {record.at, step, Peer{Role::kWorker, static_cast<WorkerId>(step % workers_)}, payload}));
    }
  }

  const uint64_t seed_;
  const uint32_t workers_;
};

// A complete run in a file.
inline std::string random_run_file(const TempFolder& folder, uint64_t seed, uint32_t workers,
                                   Step steps) {
  const std::string path = folder.file("run-" + std::to_string(seed) + ".db");
  const auto writer = writer_at(path);
  for (WorkerId worker = 0; worker < workers; ++worker) {
    const std::string node = "node" + std::to_string(worker / 2);
    DROVER_EXPECT_OK(writer->on_peer({Peer{Role::kWorker, worker}, node, 100 + worker}));
  }
  DROVER_EXPECT_OK(writer->on_peer({Peer{Role::kShard, 0}, "node0", 50}));
  RandomRun(seed, workers).write(*writer, 0, steps);
  DROVER_EXPECT_OK(writer->on_end(
      {.outcome = RunOutcome::kCompleted, .elapsed = std::chrono::milliseconds(50 * steps)}));
  return path;
}

}  // namespace drover
