// For tests: a run generated from a seed, with all possible outcomes of gradients.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "core/event_samples.h"
#include "core/random_draw.h"
#include "store/test_run.h"

namespace drover {

struct MixedRun {
  uint64_t seed = 1;
  uint32_t workers = 5;
  // Arrivals after the close of their steps; write_late() records them.
  std::vector<ArrivalRecord> late{};
  Duration now{};

  double uniform(Step step, uint64_t which) const {
    return unit_interval(draw({seed, static_cast<uint64_t>(Purpose::kRunTimes), step, which}));
  }

  void start(RunWriter& writer) const {
    for (uint32_t worker = 0; worker < workers; ++worker) {
      DROVER_EXPECT_OK(writer.on_peer({Peer{Role::kWorker, worker}, "here", 100 + worker}));
    }
    DROVER_EXPECT_OK(writer.on_peer({Peer{Role::kShard, 0}, "here", 50}));
    DROVER_EXPECT_OK(writer.on_peer({Peer{Role::kShard, 1}, "here", 51}));
  }

  // Worker 0 is always in time. Of the others, some are censored, some of these arrive late, and
  // some are absent.
  void record_step(RunWriter& writer, Step step) {
    const Duration elapsed = from_seconds(0.01 + 0.01 * uniform(step, 1'000));
    std::vector<ArrivalRecord> arrivals;
    StepRecord record = sample_step(step, workers);
    record.contributors = 0;
    Duration last{};
    for (WorkerId worker = 0; worker < workers; ++worker) {
      const double fate = worker == 0 ? 0.0 : uniform(step, worker);
      if (fate > 0.95) continue;  // absent
      ArrivalRecord arrival{.step = step, .worker = worker, .run_time = elapsed, .samples = 8};
      arrival.censored = fate > 0.7;
      if (!arrival.censored) {
        arrival.run_time = from_seconds(0.009 * uniform(step, 100 + worker) + 1e-4);
        arrival.compute = arrival.run_time / 2;
        ++record.contributors;
        if (arrival.run_time > last) {
          last = arrival.run_time;
          record.last_worker = worker;
        }
      } else if (fate > 0.85) {
        late.push_back(arrival);
        late.back().run_time = elapsed + from_seconds(0.02 * uniform(step, 200 + worker));
        late.back().compute = elapsed / 2;
        late.back().censored = false;
      }
      arrivals.push_back(arrival);
    }
    record.at = now;
    record.elapsed = elapsed;
    record.closing = from_seconds(0.0005);
    record.undecided = step % 3 == 0 ? from_seconds(0.0002) : Duration::zero();
    // One shard is hardly busy. The busy time of the other may exceed the step's time, or be zero.
    record.loads = {{0, elapsed / 10}, {1, from_seconds(0.03 * uniform(step, 300))}};
    if (step % 7 == 0) record.loads[1].busy = Duration::zero();
    if (step == 4) record.loss = std::nan("");
    now += elapsed;
    DROVER_EXPECT_OK(writer.on_decision({.step = step,
                                         .cutoff = 1 + static_cast<uint32_t>(step) % workers,
                                         .alive = workers,
                                         .reason = "because, \"well\""}));
    DROVER_EXPECT_OK(writer.on_step(record, arrivals));
  }

  void write_late(RunWriter& writer) {
    for (const ArrivalRecord& arrival : late) DROVER_EXPECT_OK(writer.on_late_arrival(arrival));
    late.clear();
  }

  void record(const std::string& path, Step steps) {
    const auto writer = writer_at(path);
    start(*writer);
    for (Step step = 0; step < steps; ++step) record_step(*writer, step);
    write_late(*writer);
    DROVER_EXPECT_OK(writer->on_abandoned(
        {.step = 2, .worker = 1, .wasted = from_seconds(0.001), .restart = {}, .resumed = 4}));
    DROVER_EXPECT_OK(writer->on_evaluation({steps, now, 0.5, 0.875, 1'000}));
    DROVER_EXPECT_OK(
        writer->on_event(lost_event(now, 3, Peer{Role::kWorker, 1}, "it said \"bye\", and left")));
    DROVER_EXPECT_OK(
        writer->on_end({.elapsed = now, .memory_bytes = {{Peer{Role::kWorker, 0}, 77}}}));
  }
};

}  // namespace drover
