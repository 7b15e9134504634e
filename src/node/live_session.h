// LiveSession: a worker's training loop on one thread, its connections on another, and one
// WorkerMachine between them.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "core/float_buffer.h"
#include "core/training.h"
#include "node/average_pull.h"
#include "node/gradient_buffers.h"
#include "node/injected_slowness.h"
#include "node/member.h"
#include "node/offer_batch.h"
#include "node/script_rate.h"
#include "node/shared_floats.h"
#include "worker/sample_share.h"
#include "worker/training_loop.h"
#include "worker/worker_machine.h"

namespace drover {

struct WorkerSettings {
  MemberIdentity identity;
  bool own_part = false;           // see SampleShare
  bool partial = false;            // a step may begin without all parameters (--pull)
  Sharing sharing = Sharing::kNo;  // of memory with shards
  // For blocks, to and from shards that have a port too; null: blocks travel on sockets.
  std::shared_ptr<MessagePort> port = nullptr;
  std::optional<Learning> learning = {};  // of a worker that brings its own model
  bool watch = false;                     // changed_tensors() is used
  uint32_t copiers = 0;  // threads that copy shared parameters; 0: the connections' thread
  // The patience of run_attempts() (node/attempts.h).
  Duration rejoin_for{};
  // Called between steps: whether this worker is to leave the run. Empty: it stays to the end.
  std::function<bool()> wants_to_leave = {};
  // The process exits when the run is over, whatever its training loop is doing.
  bool exit_when_over = true;
};

class LiveSession : public TrainingSession, private Member::Handler {
 public:
  // An error if shared memory is required (Sharing::kMust) and cannot be made.
  static Result<std::unique_ptr<LiveSession>> create(const WorkerSettings& settings,
                                                     const Layout& layout);

  // The values that training starts from. The caller writes them before start().
  std::span<float> initial_parameters() { return parameters_->span(); }
  // Connects. A further call discards all state of the run and reconnects; the contents of the
  // buffers stay. REQUIRES: the training loop is not inside a step.
  Status start();
  // Waits until all shards are connected or the run is over. False: neither within `patience`.
  bool wait_until_connected(Duration patience);

  bool was_connected();

  // How the run ended, and why; nothing: it is not over.
  std::optional<Farewell> farewell();

  // --- the training loop's thread

  std::optional<Step> next_step() override;
  // next_step() in two parts, for callers that do other work while they wait. wait_for_step()
  // returns nothing if neither a step nor the end of the run came within `patience`.
  void ask_for_step();
  enum class Waited : uint8_t { kStep, kOver };
  std::optional<Waited> wait_for_step(std::optional<Duration> patience);

  uint32_t index() const { return settings_.identity.index; }
  Step step() const { return step_; }
  Batch batch() const override { return batch_; }
  std::span<const float> parameters() const override { return parameters_->span(); }
  std::span<float> gradient() override { return gradients_.current()->span(); }

  bool tensor_ready(uint32_t tensor, uint32_t samples) override;
  bool wanted() override;
  void finish_step(const GradientReport& report) override;

  // Sets the learning rate from this step on, and the settings of each group of tensors if groups
  // have their own. REQUIRES: a step has begun, and no gradient of it has been pushed yet.
  void set_rate(double rate, std::vector<GroupSettings> groups = {});

  // tensor_ready() with flags of kPushFlags.
  bool push(uint32_t tensor, uint32_t samples, uint16_t flags);
  // The gradients of these tensors are pushed with kHoldFlag from here on.
  void expect_norm(const std::vector<uint32_t>& tensors);
  // Waits for the norm of their mean, but no longer than `patience`. Absent: it is not known yet.
  struct Norm {
    bool known = false;  // else the step closes without this worker's gradient, or the run is over
    GradientNorm norm;
  };
  std::optional<Norm> wait_for_norm(Duration patience);
  // How the step closes for the tensors whose norm is known.
  void release(double scale, bool used);

  // Which tensors no longer have the values that came from the shards.
  std::vector<uint32_t> changed_tensors();

  // finish_step(), but the report is kept, so that the script can add to it, until send_report() or
  // the next of these.
  void hold_report(const GradientReport& report);
  void send_report();
  void amend_report(double loss, uint32_t correct, uint32_t predictions);

  // The run is to end after so many steps.
  void ask_for_length(Step steps);

  // Requests the next step's parameters, which overwrite parameters() from here on: for a loop that
  // has copied them. Does nothing with partial pull and in asynchronous training.
  void pull_ahead();

  // The coordinator's Welcome. REQUIRES: all shards are connected.
  const Welcome& welcome() const { return welcome_; }

  // Requests the newest parameters to evaluate, which go to average(). False: the run keeps none.
  bool ask_for_average();
  // Waits for them and returns their version. Nothing: they did not come within `patience`, or the
  // run is over.
  std::optional<Version> wait_for_average(Duration patience);
  std::span<float> average() { return average_.values(); }
  void send_evaluated(const Evaluated& evaluated);

  // Sends all messages, and last that this worker leaves. `reason`: why it cannot continue; "" if
  // it is done.
  void leave(const std::string& reason);

 private:
  LiveSession(const WorkerSettings& settings, const Layout& layout, GradientBuffers gradients);

  // --- the connections' thread
  void on_welcome(const Welcome& welcome) override;
  void on_connected(bool in_place) override;
  Result<std::span<std::byte>> payload_for(ShardId shard, const FrameHeader& header) override;
  Status on_frame(ShardId shard, const FrameHeader& header) override;
  bool expects(const FrameHeader& header) override;
  void on_want_initial(ShardId shard) override;
  void on_stop(Step step) override;
  void on_share(const Share& share) override;
  void on_pull_share(const PullShare& share) override;
  void on_floats_sent(const ConstBuffer& buffer) override;
  void on_over(const Farewell& farewell) override;
  void on_shard_left() override;

  void on_norm(ShardId shard, const GradientNorm& norm) override;
  void on_length(Step steps) override;

  StepReport described(const GradientReport& report);
  // REQUIRES: mutex_ is held, here and below.
  void note_arrived(const FrameHeader& header);
  void begin_step(std::unique_lock<std::mutex>& lock);
  void send_unsent() { send(unsent_.take()); }
  void send(Outbox out);
  bool parameters_are_here();
  bool are_final() const;
  bool awaits_final(TimePoint now) const;
  void wait_unless_stopped(std::unique_lock<std::mutex>& lock, Duration duration);
  void stretch(std::unique_lock<std::mutex>& lock);

  // State that is made from the coordinator's Welcome.
  struct Assignment {
    Assignment(const Welcome& welcome, const WorkerSettings& settings, SharedBuffer parameters,
               ConstBuffer gradient);
    WorkerMachine machine;
    SampleShare share;
    InjectedSlowness slowness;
  };
  // The state of the connection to the run.
  struct Connection {
    bool connected = false;  // to all shards
    bool in_place = false;   // shards read gradients in shared memory
    std::optional<Farewell> farewell;
    TimePoint over_at{};      // when `farewell` came
    bool shard_left = false;  // a shard has disconnected since then
  };

  const WorkerSettings settings_;
  const Layout layout_;
  const SharedBuffer parameters_;
  // Used by the connections' thread alone: answers to an earlier pull are read into this.
  std::vector<std::byte> unwanted_;

  // Used by the training loop's thread alone.
  OfferBatch unsent_;
  bool asked_ = false;  // the parameters of the next step have been requested
  Step step_ = 0;
  Batch batch_;
  TimePoint began_{};
  TimePoint computed_{};  // when the last tensor was complete
  ScriptRate rate_;
  std::optional<Abandoned> abandoned_;  // until the next step begins
  std::optional<StepReport> report_;    // see hold_report()

  std::mutex mutex_;
  std::condition_variable changed_;
  // Guarded by mutex_, except that the training loop accesses the floats of the current gradient
  // and of the average without it.
  GradientBuffers gradients_;
  std::vector<uint32_t> arrived_;  // by block: a digest of the parameters that came
  AveragePull average_;
  Welcome welcome_;
  std::optional<Assignment> work_;  // absent before Welcome
  Connection connection_;

  std::unique_ptr<Member> member_;  // last: its thread must end before what it uses does
};

}  // namespace drover
