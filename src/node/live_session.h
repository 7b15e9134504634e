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
  bool partial = false;            // not all parameters are waited for
  Sharing sharing = Sharing::kNo;  // of memory with shards
  // Blocks travel by this between it and shards that have one too; null: on sockets.
  std::shared_ptr<MessagePort> port = nullptr;
  std::optional<Learning> learning = {};  // of a worker that brings its own model
  uint32_t copiers = 0;  // threads that copy parameters which shards share; 0: that of connections
  // How long it tries in vain to join again when the connection to the run was lost; see
  // attempts.h.
  Duration rejoin_for{};
  // Asked between steps: whether this worker is to leave the run. Empty: it stays to the end.
  std::function<bool()> wants_to_leave = {};
  // When the run is over this process ends, whatever its loop is doing: there is nothing to save.
  bool exit_when_over = true;
};

class LiveSession : public TrainingSession, private Member::Handler {
 public:
  // An error if gradients must lie in shared memory and cannot.
  static Result<std::unique_ptr<LiveSession>> create(const WorkerSettings& settings,
                                                     const Layout& layout);

  // The values that training starts from; to be written before start(), which connects.
  std::span<float> initial_parameters() { return parameters_->span(); }
  // Connects; called again, it connects anew and forgets all that it knows of the run. What lies in
  // the buffers stays. REQUIRES: the loop is not inside a step.
  Status start();
  // Until all shards are connected or the run is over, but no longer than `patience`.
  bool wait_until_connected(Duration patience);

  bool was_connected();

  // Whether the run is over, how it ended and why.
  std::optional<Farewell> farewell();

  // --- the training loop's thread

  std::optional<Step> next_step() override;
  // The same in two, for whoever has to look after something else while it waits. wait_for_step()
  // returns nothing if neither came within `patience`.
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

  // The learning rate from this step on. REQUIRES: a step has begun, nothing of it was pushed yet.
  void set_rate(double rate);

  // From here on parameters() is written to, with what the next step begins with: for a loop that
  // has copied it. Nothing if workers do not wait for all blocks, and for each other.
  void pull_ahead();

  // What the coordinator has told, once all shards are connected.
  const Welcome& welcome() const { return welcome_; }

  // Asks for the newest parameters to evaluate, which go to average(). False: the run keeps none.
  bool ask_for_average();
  // The version that has come; nothing if it has not within `patience`, or if the run is over.
  std::optional<Version> wait_for_average(Duration patience);
  std::span<float> average() { return average_.values(); }
  void tell_evaluated(const Evaluated& evaluated);

  // Says that this worker goes, and why; "" means that it has done all that it was to do. What was
  // said before is sent first.
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

  // REQUIRES: mutex_ is held, here and below.
  void begin_step(std::unique_lock<std::mutex>& lock);
  void send_unsent() { send(unsent_.take()); }
  void send(Outbox out);
  bool parameters_are_here();
  bool are_final() const;
  bool awaits_final(TimePoint now) const;
  void wait_unless_stopped(std::unique_lock<std::mutex>& lock, Duration duration);
  void stretch(std::unique_lock<std::mutex>& lock);

  // What the coordinator's welcome makes of this worker.
  struct Assignment {
    Assignment(const Welcome& welcome, const WorkerSettings& settings, SharedBuffer parameters,
               ConstBuffer gradient);
    WorkerMachine machine;
    SampleShare share;
    InjectedSlowness slowness;
  };
  // How things stand with the run.
  struct Connection {
    bool connected = false;  // to all shards
    bool in_place = false;   // shards read gradients where they lie
    std::optional<Farewell> farewell;
    TimePoint over_at{};      // when it came
    bool shard_left = false;  // since then
  };

  const WorkerSettings settings_;
  const Layout layout_;
  const SharedBuffer parameters_;
  std::vector<std::byte> unwanted_;  // of the connections' thread: what answers an earlier pull

  // Of the training loop's thread alone.
  OfferBatch unsent_;
  bool asked_ = false;  // for the step that is waited for
  Step step_ = 0;
  Batch batch_;
  TimePoint began_{};
  TimePoint computed_{};  // the last tensor was
  ScriptRate rate_;
  std::optional<Abandoned> abandoned_;  // until the next step begins

  std::mutex mutex_;
  std::condition_variable changed_;
  // Guarded by mutex_, but what is read of the current gradient and of the average by the loop.
  GradientBuffers gradients_;
  AveragePull average_;
  Welcome welcome_;
  std::optional<Assignment> work_;  // since it came
  Connection connection_;

  std::unique_ptr<Member> member_;  // last: its thread must end before what it uses does
};

}  // namespace drover
