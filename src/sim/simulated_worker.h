// SimulatedWorker: a worker process in virtual time. It drives a WorkerMachine. The scenario
// determines how long computing takes. The gradient is real. It is computed when its first tensor
// becomes ready, so that work abandoned before then costs no real time.
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

// The behaviour of scripts, in runs where workers bring their model.
struct SimulatedScripts {
  double first_rate = 0.1;  // the learning rate before `changes_at`
  double rate = 0.1;        // the learning rate from then on
  Step changes_at = 0;
  bool pulls_ahead = false;
  double rate_at(Step step) const { return step < changes_at ? first_rate : rate; }
};

struct SimulatedWorkerSettings {
  WorkerId id = 0;
  uint32_t workers = 1;  // of the job: samples are assigned by it
  uint32_t shards = 1;
  uint32_t batch = 1;
  bool own_part = false;  // see SampleShare
  uint32_t layers = 0;    // see Scenario
  NumberType number_type = NumberType::kFloat32;
  std::function<Duration(Step)> compute_time;        // for `batch` samples
  std::function<bool(Step)> is_corrupt;              // whether this step's gradient has NaN
  std::function<double(Step)> gradient_factor = {};  // of a Byzantine fault; none: 1
  std::optional<SimulatedScripts> script = {};
  std::optional<Leave> leave = {};  // a script's
};

class SimulatedWorker {
 public:
  using Send = std::function<void(Outbox)>;

  // `left` is called when a script has left the run, after its last message is sent.
  SimulatedWorker(SimulatedWorkerSettings settings, Task& task, EventQueue& time, Send send,
                  std::function<void()> left = {});

  void on_welcome(const Welcome& welcome);
  // A shard has admitted the worker. The worker is ready once all shards have.
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
    Duration layer{};             // the longest delay until a stop is noticed
    std::vector<uint32_t> order;  // of tensors, as they become ready
    size_t next = 0;              // index in `order`
    GradientReport report;
  };

  void pull();
  void begin_if_ready();
  void plan_wake();
  void plan_next_tensor();
  void on_tensor();
  void compute();
  void abandon();
  void announce_rate(Step step, Outbox& out);
  void leave(const Farewell& farewell);
  // Whether the worker has the run's final parameters, with which no step begins.
  bool has_final() const { return machine_->ready() && machine_->step() >= steps_; }
  void send(Outbox out) { send_(std::move(out)); }

  const SimulatedWorkerSettings settings_;
  Task& task_;
  EventQueue& time_;
  const Send send_;
  const std::function<void()> left_;
  const SharedBuffer parameters_;
  std::optional<FloatBuffer> copy_;  // of the parameters, while the next version is pulled ahead
  // With partial pull two buffers are used in turn, so that a shard that is behind can still read
  // the gradient of the previous step.
  std::array<SharedBuffer, 2> gradients_;
  size_t in_use_ = 0;  // index in `gradients_`
  std::optional<WorkerMachine> machine_;
  SampleShare share_;
  std::set<ShardId> connected_;
  std::optional<Computing> computing_;
  std::optional<Abandoned> abandoned_;  // until the next step begins
  std::optional<TimePoint> wake_;       // the planned wake-up
  std::optional<double> rate_;          // announced to the shards
  Step steps_ = kEndless;               // of the run, unless it is asynchronous
  bool completed_ = false;              // the run has completed
  uint64_t turn_ = 0;  // of computing; events planned in an earlier turn are ignored
  bool over_ = false;
};

}  // namespace drover
