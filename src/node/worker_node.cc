#include "node/worker_node.h"

#include <malloc.h>
#include <spdlog/spdlog.h>

#include <condition_variable>
#include <exception>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <string>
#include <utility>

#include "core/float_buffer.h"
#include "node/clock.h"
#include "node/exit.h"
#include "worker/sample_share.h"
#include "worker/training_loop.h"
#include "worker/worker_machine.h"

namespace drover {
namespace {

// Every message wakes somebody, and costs more than a small block is worth: blocks are offered when
// there are so many bytes of them, and the rest with the next request for parameters.
constexpr size_t kOfferedTogether = kBlockBytes;

// A gradient takes and frees the same memory at every step. Given back to the kernel in between, it
// has to be made anew each time, which was a fifth of a small model's step.
void keep_freed_memory() {
#ifdef __GLIBC__
  ::mallopt(M_TRIM_THRESHOLD, 1 << 30);
  ::mallopt(M_MMAP_THRESHOLD, 32 << 20);  // more is not taken
  ::mallopt(M_TOP_PAD, 16 << 20);
#endif
}

// Joins the training loop (main thread) and the connections (Member's thread) to one WorkerMachine.
class LiveSession : public TrainingSession, public Member::Handler {
 public:
  // `memory`: where gradients lie for shards to read; null: they are sent.
  LiveSession(const WorkerSettings& settings, Task& task, std::unique_ptr<GradientMemory> memory)
      : settings_(settings),
        memory_(std::move(memory)),
        parameters_(std::make_shared<FloatBuffer>(task.layout().buffer_size())),
        gradient_(memory_ ? memory_->buffer(0)
                          : std::make_shared<FloatBuffer>(task.layout().buffer_size())),
        gradients_{{gradient_}},
        share_(settings.identity.index, settings.workers, settings.batch, settings.own_part),
        member_(settings.identity, task.layout(), *this, memory_ ? memory_->file() : -1) {
    task.initial_parameters(parameters_->span());
  }

  Status start() { return member_.start(); }
  int exit_status() {
    const std::lock_guard lock(mutex_);
    return exit_status_;
  }

  // --- the training loop's thread

  void give_up(const std::string& reason) {
    member_.send({{to_coordinator(), control_frame(Farewell{RunOutcome::kFailed, reason})}});
  }

  std::optional<Step> next_step() override {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return over_ || connected_; });
    if (over_) return std::nullopt;
    machine_->begin_pull(clock_now(), unsent_);
    send_unsent();
    if (!wait_for_parameters(lock)) return std::nullopt;
    machine_->begin_step(gradient_);
    step_ = machine_->step();
    if (memory_) memory_->begin(place_, step_);
    batch_ = share_.batch_of(step_);
    if (abandoned_) {
      abandoned_->resumed = step_;
      member_.send({{to_coordinator(), control_frame(*std::exchange(abandoned_, {}))}});
    }
    slowness_ = slowness_of(settings_.slow, settings_.seed, step_, settings_.identity.index);
    began_ = stretched_until_ = clock_now();
    if (slowness_.delay > Duration::zero()) wait_unless_stopped(lock, slowness_.delay);
    return step_;
  }

  Batch batch() const override { return batch_; }
  std::span<const float> parameters() const override { return parameters_->span(); }
  std::span<float> gradient() override { return gradient_->span(); }

  bool tensor_ready(uint32_t tensor, uint32_t samples) override {
    std::unique_lock lock(mutex_);
    stretch(lock);
    computed_ = clock_now();
    if (over_ || !machine_->wanted(step_)) return false;
    const size_t before = unsent_.size();
    machine_->offer(tensor, samples, unsent_);
    for (size_t i = before; i < unsent_.size(); ++i)
      unsent_bytes_ += machine_->bytes_of(unsent_[i].frame.header.block);
    if (unsent_bytes_ >= kOfferedTogether) send_unsent();
    return true;
  }

  bool wanted() override {
    std::unique_lock lock(mutex_);
    stretch(lock);
    return !over_ && machine_->wanted(step_);
  }

  void finish_step(const GradientReport& report) override {
    const std::lock_guard lock(mutex_);
    if (!report.finished) {
      abandoned_ = Abandoned{.step = step_, .resumed = 0, .wasted = clock_now() - began_};
      return;
    }
    StepReport told{.step = step_,
                    .samples = report.samples,
                    .loss = report.loss,
                    .correct = report.correct,
                    .predictions = report.predictions,
                    .compute = computed_ - began_};
    machine_->describe_pull(clock_now(), told);
    unsent_.push_back({to_coordinator(), control_frame(std::move(told))});
  }

  // --- the connections' thread

  void on_welcome(const Welcome& welcome) override {
    const std::lock_guard lock(mutex_);
    if (welcome.weak) partial_ = {welcome.pull_share, welcome.pull_grace};
    machine_.emplace(settings_.identity.worker(), welcome.blocks, parameters_, gradient_,
                     welcome.free_running ? PullKind::kMixed : PullKind::kTogether, partial_);
    machine_->send_numbers_as(settings_.wire_dtype);
  }

  void on_connected(bool in_place) override {
    const std::lock_guard lock(mutex_);
    in_place_ = in_place;
    connected_ = true;
    changed_.notify_all();
  }

  Result<std::span<std::byte>> payload_for(ShardId shard, const FrameHeader& header) override {
    const std::lock_guard lock(mutex_);
    const auto block = machine_->destination(shard, header);
    if (!block) return block.error();
    if (!machine_->expects(header)) {
      unwanted_.resize(block.value().length * sizeof(float));
      return std::span(unwanted_);
    }
    return std::as_writable_bytes(machine_->begin_receiving(header)->span().subspan(
        block.value().offset, block.value().length));
  }

  Status on_frame(ShardId shard, const FrameHeader& header) override {
    const std::lock_guard lock(mutex_);
    Outbox out;
    const Status status = machine_->on_frame(shard, header, clock_now(), out);
    send(std::move(out));
    if (machine_->ready() || machine_->wake_at()) changed_.notify_all();
    return status;
  }

  void on_want_initial(ShardId shard) override {
    const std::lock_guard lock(mutex_);
    Outbox out;
    machine_->on_want_initial(shard, out);
    send(std::move(out));
  }

  void on_stop(Step step) override {
    const std::lock_guard lock(mutex_);
    if (machine_) machine_->on_stop(step);
    changed_.notify_all();
  }

  void on_share(const Share& share) override {
    const std::lock_guard lock(mutex_);
    share_.on_share(share);
  }

  void on_pull_share(const PullShare& share) override {
    const std::lock_guard lock(mutex_);
    if (machine_) machine_->on_pull_share(share);
  }

  void on_floats_sent(const ConstBuffer& buffer) override {
    const std::lock_guard lock(mutex_);
    if (--under_way(buffer) == 0) changed_.notify_all();
  }

  void on_over(const Farewell& farewell) override {
    const std::lock_guard lock(mutex_);
    over_ = true;
    if (farewell.outcome == RunOutcome::kFailed) {
      spdlog::error("stopping: {}", farewell.reason);
      exit_status_ = 1;
    }
    changed_.notify_all();
    // The loop may be deep in a gradient that nobody wants; there is nothing to save.
    exit_soon(exit_status_);
  }

 private:
  // REQUIRES: mutex_ is held, here and below.
  void send_unsent() {
    unsent_bytes_ = 0;
    send(std::exchange(unsent_, {}));
  }

  void send(Outbox out) {
    for (Outgoing& message : out) {
      FrameHeader& header = message.frame.header;
      if (in_place_ && header.type == FrameType::kOffer && header.step != kInitialStep) {
        header.flags |= kInPlaceFlag;
        header.place = place_;
        message.frame.payload = {};
      }
      if (const auto* slice = std::get_if<FloatSlice>(&message.frame.payload))
        ++under_way(slice->buffer);
    }
    member_.send(std::move(out));
  }

  // Frames that are being sent out of a buffer: a gradient's, or that of the first parameters.
  int64_t& under_way(const ConstBuffer& buffer) {
    for (Sending& each : gradients_) {
      if (each.buffer == buffer) return each.frames;
    }
    return parameters_under_way_;
  }

  // Until they are here and there is a buffer for the gradient, which is gradient_ then. Returns
  // false if the run is over.
  bool wait_for_parameters(std::unique_lock<std::mutex>& lock) {
    while (!over_ && !(machine_->ready() && find_free_gradient())) {
      const auto wake = machine_->wake_at();
      if (!wake || machine_->ready()) {
        changed_.wait(lock);
      } else if (*wake > clock_now()) {
        changed_.wait_for(lock, *wake - clock_now());
      }
      machine_->on_time(clock_now());
    }
    return !over_;
  }

  // A gradient is written where nothing is being sent from. Who waits for all parameters has one
  // buffer: what still goes out of it is for a closed step, but whole. Otherwise shards may be
  // behind: that of the step before is left for them, and what one that hangs holds on to is not
  // waited for. The machine offers it no more than two steps, so that these are few.
  bool find_free_gradient() {
    if (parameters_under_way_ > 0) return false;
    if (!partial_) return gradients_.front().frames == 0;
    if (memory_) {
      // Whoever reads it there finds out that it has been overwritten.
      place_ = 1 - place_;
      gradient_ = memory_->buffer(place_);
      return true;
    }
    for (const Sending& each : gradients_) {
      if (each.frames > 0 || each.buffer == gradient_) continue;
      gradient_ = each.buffer;
      return true;
    }
    gradient_ = std::make_shared<FloatBuffer>(gradient_->size());
    gradients_.push_back({gradient_});
    return true;
  }

  void wait_unless_stopped(std::unique_lock<std::mutex>& lock, Duration duration) {
    changed_.wait_for(lock, duration, [&] { return over_ || !machine_->wanted(step_); });
    stretched_until_ = clock_now();
  }

  // Makes what was computed since the last call take `factor` times as long. A slow machine would
  // not notice an order to stop before it has finished its layer, so this does not either.
  void stretch(std::unique_lock<std::mutex>& lock) {
    if (slowness_.factor <= 1.0) return;
    const Duration computed = clock_now() - stretched_until_;
    changed_.wait_for(lock, from_seconds(seconds(computed) * (slowness_.factor - 1.0)),
                      [&] { return over_; });
    stretched_until_ = clock_now();
  }

  const WorkerSettings settings_;
  const std::unique_ptr<GradientMemory> memory_;
  const SharedBuffer parameters_;
  struct Sending {
    SharedBuffer buffer;
    int64_t frames = 0;  // that are sent out of it
  };
  SharedBuffer gradient_;            // of the step that is computed
  uint32_t place_ = 0;               // of it in memory_
  std::vector<Sending> gradients_;   // that one and others, guarded by mutex_
  std::vector<std::byte> unwanted_;  // of the connections' thread: what answers an earlier pull

  // Of the training loop's thread alone.
  Outbox unsent_;            // what the loop has to say, until it is worth a message
  size_t unsent_bytes_ = 0;  // of the blocks offered in it
  Step step_ = 0;
  Batch batch_;
  TimePoint began_{};
  TimePoint computed_{};  // the last tensor was
  TimePoint stretched_until_{};
  Slowness slowness_;
  std::optional<Abandoned> abandoned_;  // until the next step begins

  std::mutex mutex_;
  std::condition_variable changed_;
  // Guarded by mutex_.
  std::optional<WorkerMachine> machine_;
  SampleShare share_;
  bool connected_ = false;
  bool in_place_ = false;  // shards read gradients from memory_
  bool over_ = false;
  int exit_status_ = 0;
  int64_t parameters_under_way_ = 0;  // frames that are sent out of the parameter buffer
  std::optional<PartialPull::Settings> partial_;

  Member member_;  // last: its thread must end before what it uses does
};

// The first line: libtorch appends a page of addresses.
std::string explain(const std::exception& trouble) {
  const std::string words = trouble.what();
  const std::string reason = "computing a gradient failed: " + words.substr(0, words.find('\n'));
  const bool memory = dynamic_cast<const std::bad_alloc*>(&trouble) != nullptr ||
                      words.find("allocate") != std::string::npos;
  return memory ? reason + ". Try a smaller --batch, or fewer workers" : reason;
}

}  // namespace

int run_worker(const WorkerSettings& settings, Task& task) {
  keep_freed_memory();
  std::unique_ptr<GradientMemory> memory;
  if (settings.sharing != Sharing::kNo) {
    auto made = GradientMemory::create(task.layout().buffer_size(), settings.partial ? 2 : 1);
    if (made) {
      memory = std::move(made).value();
    } else if (settings.sharing == Sharing::kMust) {
      spdlog::error("{}; try --transport uds", made.error().message);
      return 1;
    }
  }
  LiveSession session(settings, task, std::move(memory));
  if (const Status started = session.start(); !started) {
    spdlog::error("{}", started.error().message);
    return 1;
  }
  try {
    training_loop(session, task);
  } catch (const std::exception& trouble) {
    // A task is built on a library that throws; out of memory is what it throws most.
    const std::string reason = explain(trouble);
    spdlog::error("{}", reason);
    session.give_up(reason);
    return 1;
  }
  return session.exit_status();
}

}  // namespace drover
