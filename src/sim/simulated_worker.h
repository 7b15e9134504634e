// SimulatedWorker: what a worker process does around its WorkerMachine, in virtual time.
//
// Computing takes as long as the scenario says; the gradient itself is real, and is computed when
// its first tensor would be ready, so that work that is abandoned before costs nothing here.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <vector>

#include "core/float_buffer.h"
#include "core/time.h"
#include "sim/event_queue.h"
#include "sim/scenario.h"
#include "worker/sample_share.h"
#include "worker/task.h"
#include "worker/worker_machine.h"

namespace drover {

// What the scripts of workers that bring their model do.
struct SimulatedScripts {
  double first_rate = 0.1;  // the learning rate ...
  double rate = 0.1;        // ... and what it is ...
  Step changes_at = 0;      // ... from this step on
  bool pulls_ahead = false;
  double rate_at(Step step) const { return step < changes_at ? first_rate : rate; }
};

struct SimulatedWorkerSettings {
  WorkerId id = 0;
  uint32_t workers = 1;  // of the job: decides which samples are whose
  uint32_t shards = 1;
  uint32_t batch = 1;
  bool own_part = false;  // see SampleShare
  uint32_t layers = 0;    // see Scenario
  NumberType number_type = NumberType::kFloat32;
  std::function<Duration(Step)> compute_time;  // for `batch` samples
  std::function<bool(Step)> poisoned;          // whether this step's gradient has NaN
  std::function<double(Step)> lie = {};        // what it is multiplied by; none: 1
  std::optional<SimulatedScripts> script = {};
  std::optional<Leave> leave = {};  // a script's
};

class SimulatedWorker {
 public:
  using Send = std::function<void(Outbox)>;

  // `left` is called when a script has left the run, after the last that it sends.
  SimulatedWorker(SimulatedWorkerSettings settings, Task& task, EventQueue& time, Send send,
                  std::function<void()> left = {});

  void on_welcome(const Welcome& welcome);
  // A shard has let it in; with the last one it is ready.
  void on_connected(ShardId shard);
  void on_want_initial(ShardId shard);
  // A frame from a shard; `floats` is the payload of parameters.
  Status on_frame(ShardId shard, const FrameHeader& header, std::span<const float> floats);
  void on_stop(Step step);
  void on_share(const Share& share) { share_.on_share(share); }
  void on_pull_share(const PullShare& share) {
    if (machine_) machine_->on_pull_share(share);
  }
  void on_over() { over_ = true; }
  bool is_over() const { return over_; }
  // The run has completed. A script fetches the last parameters before it leaves.
  void on_completed();

  const SharedBuffer& gradient() const { return gradients_[in_use_]; }

 private:
  // A layer takes the same time forwards and backwards; tensors become ready backwards.
  struct Computing {
    Step step = 0;
    Batch batch;
    TimePoint began{};
    Duration tensor{};            // between one tensor and the next
    Duration layer{};             // the longest it takes to notice a stop
    std::vector<uint32_t> order;  // of tensors, as they become ready
    size_t next = 0;              // of them
    GradientReport report;
  };

  void pull();
  void begin_if_ready();
  void plan_wake();
  void plan_next_tensor();
  void on_tensor();
  void compute();
  void abandon();
  void tell_rate(Step step, Outbox& out);
  void leave(const Farewell& farewell);
  // No step begins with the last parameters.
  bool has_final() const { return machine_->ready() && machine_->step() >= steps_; }
  void send(Outbox out) { send_(std::move(out)); }

  const SimulatedWorkerSettings settings_;
  Task& task_;
  EventQueue& time_;
  const Send send_;
  const std::function<void()> left_;
  const SharedBuffer parameters_;
  std::optional<FloatBuffer> copy_;  // of the parameters, while the next ones are pulled ahead
  // Where not all blocks are waited for there are two, in turn, so that a shard that is behind can
  // still have the gradient of the step before.
  std::array<SharedBuffer, 2> gradients_;
  size_t in_use_ = 0;  // of those
  std::optional<WorkerMachine> machine_;
  SampleShare share_;
  std::set<ShardId> connected_;
  std::optional<Computing> computing_;
  std::optional<Abandoned> abandoned_;  // until the next step begins
  std::optional<TimePoint> wake_;       // planned
  std::optional<double> rate_;          // told to shards
  Step steps_ = kEndless;               // of the run, where they are taken together
  bool completed_ = false;              // the run
  uint64_t turn_ = 0;  // of computing: what was planned for an earlier one no longer counts
  bool over_ = false;
};

}  // namespace drover
