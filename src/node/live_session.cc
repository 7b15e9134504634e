#include "node/live_session.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

#include "node/clock.h"
#include "node/exit.h"

namespace drover {
namespace {

// Every message wakes somebody, and costs more than a small block is worth: blocks are offered when
// there are so many bytes of them, and the rest with the next request for parameters.
constexpr size_t kOfferedTogether = kBlockBytes;

// After the run is over, for its last parameters.
constexpr Duration kFinalPatience = std::chrono::seconds(5);

}  // namespace

Result<std::unique_ptr<LiveSession>> LiveSession::create(const WorkerSettings& settings,
                                                         const Layout& layout) {
  std::unique_ptr<GradientMemory> memory;
  if (settings.sharing != Sharing::kNo) {
    auto made = GradientMemory::create(layout.buffer_size(), settings.partial ? 2 : 1);
    if (made) {
      memory = std::move(made).value();
    } else if (settings.sharing == Sharing::kMust) {
      return system_error(made.error().message + "; try --transport uds");
    }
  }
  return std::unique_ptr<LiveSession>(new LiveSession(settings, layout, std::move(memory)));
}

LiveSession::LiveSession(const WorkerSettings& settings, const Layout& layout,
                         std::unique_ptr<GradientMemory> memory)
    : settings_(settings),
      layout_(layout),
      memory_(std::move(memory)),
      parameters_(std::make_shared<FloatBuffer>(layout.buffer_size())),
      gradient_(memory_ ? memory_->buffer(0) : std::make_shared<FloatBuffer>(layout.buffer_size())),
      gradients_{{gradient_}} {}

std::unique_ptr<Member> LiveSession::make_member() {
  return std::make_unique<Member>(settings_.identity, layout_, static_cast<Member::Handler&>(*this),
                                  Member::Extras{.memory = memory_ ? memory_->file() : -1,
                                                 .learning = settings_.learning,
                                                 .copiers = settings_.copiers,
                                                 .port = settings_.port});
}

Status LiveSession::start() {
  member_.reset();  // and with it its thread: from here on nobody else is here
  unsent_.clear();
  unsent_bytes_ = 0;
  asked_ = false;
  abandoned_.reset();
  tells_rate_ = rate_.has_value();
  for (Sending& each : gradients_) each.frames = 0;
  parameters_under_way_ = 0;
  slow_.clear();
  machine_.reset();
  share_.reset();
  average_pull_.reset();
  partial_.reset();
  connected_ = in_place_ = shard_left_ = false;
  farewell_.reset();
  member_ = make_member();
  return member_->start();
}

std::optional<Farewell> LiveSession::farewell() {
  const std::lock_guard lock(mutex_);
  return farewell_;
}

bool LiveSession::wait_until_connected(Duration patience) {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, patience, [&] { return connected_ || farewell_; });
}

bool LiveSession::was_connected() {
  const std::lock_guard lock(mutex_);
  return connected_;
}

// --- the training loop's thread

void LiveSession::leave(const std::string& reason) {
  if (!member_) return;  // it has never come
  const std::lock_guard lock(mutex_);
  const Farewell farewell{reason.empty() ? RunOutcome::kCompleted : RunOutcome::kFailed, reason};
  unsent_.push_back({to_coordinator(), control_frame(farewell)});
  send_unsent();
  member_->send_last({});
  if (!farewell_) farewell_ = farewell;
}

std::optional<Step> LiveSession::next_step() {
  ask_for_step();
  if (wait_for_step({}) != Waited::kStep) return std::nullopt;
  return step_;
}

void LiveSession::ask_for_step() { asked_ = false; }

std::optional<LiveSession::Waited> LiveSession::wait_for_step(std::optional<Duration> patience) {
  std::unique_lock lock(mutex_);
  const auto deadline = patience ? std::optional(clock_now() + *patience) : std::nullopt;
  while (!farewell_ || awaits_final(clock_now())) {
    if (connected_ && !asked_) {
      asked_ = true;
      machine_->begin_pull(clock_now(), unsent_);
      send_unsent();
    }
    std::optional<TimePoint> wake = deadline;
    if (farewell_)
      wake = std::min(wake.value_or(over_at_ + kFinalPatience), over_at_ + kFinalPatience);
    if (connected_) {
      machine_->on_time(clock_now());
      if (farewell_ && machine_->ready()) return Waited::kOver;
      if (!are_final() && parameters_are_here()) {
        begin_step(lock);
        return Waited::kStep;
      }
      const auto due = machine_->wake_at();
      if (due && !machine_->ready()) wake = wake ? std::min(*wake, *due) : *due;
    }
    if (deadline && clock_now() >= *deadline) return std::nullopt;
    if (!wake) {
      changed_.wait(lock);
    } else if (*wake > clock_now()) {
      changed_.wait_for(lock, *wake - clock_now());
    }
  }
  return Waited::kOver;
}

// No step begins with those: all are done, and the word that the run is over is on its way.
bool LiveSession::are_final() const {
  return asked_ && machine_->ready() && !welcome_.free_running &&
         machine_->step() >= welcome_.steps;
}

// Who keeps the model wants all of it, also if the run was over while it was still on its way. The
// coordinator lets shards stay until its workers have left.
bool LiveSession::awaits_final(TimePoint now) const {
  if (settings_.exit_when_over || farewell_->outcome != RunOutcome::kCompleted) return false;
  return connected_ && !shard_left_ && !are_final() && now < over_at_ + kFinalPatience;
}

bool LiveSession::parameters_are_here() { return machine_->ready() && find_free_gradient(); }

void LiveSession::begin_step(std::unique_lock<std::mutex>& lock) {
  machine_->begin_step(gradient_);
  step_ = machine_->step();
  if (memory_) memory_->begin(place_, step_);
  if (std::exchange(tells_rate_, false)) tell_rate();
  batch_ = share_->batch_of(step_);
  if (abandoned_) {
    abandoned_->resumed = step_;
    member_->send({{to_coordinator(), control_frame(*std::exchange(abandoned_, {}))}});
  }
  slowness_ = slowness_of(slow_, welcome_.seed, step_, settings_.identity.index);
  began_ = stretched_until_ = computed_ = clock_now();
  if (slowness_.delay > Duration::zero()) wait_unless_stopped(lock, slowness_.delay);
}

void LiveSession::set_rate(double rate) {
  const std::lock_guard lock(mutex_);
  rate_ = rate;
  tell_rate();
}

void LiveSession::tell_rate() {
  for (ShardId shard = 0; shard < welcome_.shards.size(); ++shard) {
    unsent_.push_back({to_shard(shard, Lane::kControl),
                       control_frame(LearningRate{.from = step_, .rate = *rate_})});
  }
}

void LiveSession::pull_ahead() {
  const std::lock_guard lock(mutex_);
  if (partial_ || welcome_.free_running || farewell_) return;
  machine_->pull_ahead(unsent_);
}

bool LiveSession::tensor_ready(uint32_t tensor, uint32_t samples) {
  std::unique_lock lock(mutex_);
  stretch(lock);
  computed_ = clock_now();
  if (farewell_ || !machine_->wanted(step_)) return false;
  const size_t before = unsent_.size();
  machine_->offer(tensor, samples, unsent_);
  for (size_t i = before; i < unsent_.size(); ++i)
    unsent_bytes_ += machine_->bytes_of(unsent_[i].frame.header.block);
  if (unsent_bytes_ >= kOfferedTogether) send_unsent();
  return true;
}

bool LiveSession::wanted() {
  std::unique_lock lock(mutex_);
  stretch(lock);
  return !farewell_ && machine_->wanted(step_);
}

void LiveSession::finish_step(const GradientReport& report) {
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
                  .compute = computed_ - began_,
                  .learning_rate = rate_};
  machine_->describe_pull(clock_now(), told);
  unsent_.push_back({to_coordinator(), control_frame(std::move(told))});
}

bool LiveSession::ask_for_average() {
  const std::lock_guard lock(mutex_);
  if (!average_) average_ = std::make_shared<FloatBuffer>(parameters_->size());
  if (!average_pull_)
    average_pull_.emplace(settings_.identity.worker(), welcome_.blocks, PullKind::kSnapshot);
  const Step every = welcome_.evaluate_every;
  if (every == 0 || step_ < every) return false;
  Outbox out;
  average_pull_->begin(step_ / every * every, out);
  send(std::move(out));
  return true;
}

std::optional<Version> LiveSession::wait_for_average(Duration patience) {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, patience, [&] { return farewell_ || average_pull_->complete(); });
  if (!average_pull_->complete()) return std::nullopt;
  return average_pull_->version();
}

void LiveSession::tell_evaluated(const Evaluated& evaluated) {
  member_->send({{to_coordinator(), control_frame(evaluated)}});
}

// --- the connections' thread

void LiveSession::on_welcome(const Welcome& welcome) {
  const std::lock_guard lock(mutex_);
  welcome_ = welcome;
  slow_ = welcome.slow;
  if (welcome.weak) partial_ = {welcome.pull_share, welcome.pull_grace};
  share_.emplace(settings_.identity.index, welcome.workers, welcome.batch, settings_.own_part);
  machine_.emplace(settings_.identity.worker(), welcome.blocks, parameters_, gradient_,
                   welcome.free_running ? PullKind::kMixed : PullKind::kTogether, partial_);
  machine_->send_numbers_as(welcome.wire_dtype);
}

void LiveSession::on_connected(bool in_place) {
  const std::lock_guard lock(mutex_);
  in_place_ = in_place;
  connected_ = true;
  changed_.notify_all();
}

Result<std::span<std::byte>> LiveSession::payload_for(ShardId shard, const FrameHeader& header) {
  const std::lock_guard lock(mutex_);
  const auto block = machine_->destination(shard, header);
  if (!block) return block.error();
  const auto place = [&](FloatBuffer& buffer) {
    return std::as_writable_bytes(
        buffer.span().subspan(block.value().offset, block.value().length));
  };
  const bool averaged = (header.flags & kSnapshotFlag) != 0;
  if (averaged && average_pull_ && average_pull_->expects(header)) return place(*average_);
  if (averaged || !machine_->expects(header)) {
    unwanted_.resize(block.value().length * sizeof(float));
    return std::span(unwanted_);
  }
  return place(*machine_->begin_receiving(header));
}

bool LiveSession::expects(const FrameHeader& header) {
  const std::lock_guard lock(mutex_);
  if ((header.flags & kSnapshotFlag) != 0) return average_pull_ && average_pull_->expects(header);
  return machine_->expects(header);
}

Status LiveSession::on_frame(ShardId shard, const FrameHeader& header) {
  const std::lock_guard lock(mutex_);
  if ((header.flags & kSnapshotFlag) != 0 || header.type == FrameType::kGone)
    return on_average(header);
  Outbox out;
  const Status status = machine_->on_frame(shard, header, clock_now(), out);
  send(std::move(out));
  if (machine_->ready() || machine_->wake_at()) changed_.notify_all();
  return status;
}

Status LiveSession::on_average(const FrameHeader& header) {
  if (!average_pull_ || header.block >= welcome_.blocks.blocks.size())
    return invalid_input("parameters to evaluate that were not asked for");
  if (!average_pull_->expects(header)) return done();
  Outbox out;
  if (header.type == FrameType::kGone) average_pull_->on_gone(header, out);
  if (header.type == FrameType::kParameters) average_pull_->on_parameters(header, out);
  send(std::move(out));
  if (average_pull_->complete()) changed_.notify_all();
  return done();
}

void LiveSession::on_want_initial(ShardId shard) {
  const std::lock_guard lock(mutex_);
  Outbox out;
  machine_->on_want_initial(shard, out);
  send(std::move(out));
}

void LiveSession::on_stop(Step step) {
  const std::lock_guard lock(mutex_);
  if (machine_) machine_->on_stop(step);
  changed_.notify_all();
}

void LiveSession::on_share(const Share& share) {
  const std::lock_guard lock(mutex_);
  if (share_) share_->on_share(share);
}

void LiveSession::on_pull_share(const PullShare& share) {
  const std::lock_guard lock(mutex_);
  if (machine_) machine_->on_pull_share(share);
}

void LiveSession::on_floats_sent(const ConstBuffer& buffer) {
  const std::lock_guard lock(mutex_);
  if (--under_way(buffer) == 0) changed_.notify_all();
}

void LiveSession::on_over(const Farewell& farewell) {
  const std::lock_guard lock(mutex_);
  farewell_ = farewell;
  over_at_ = clock_now();
  const bool failed = farewell.outcome == RunOutcome::kFailed;
  changed_.notify_all();
  if (!settings_.exit_when_over || farewell.again) return;
  if (failed) spdlog::error("stopping: {}", farewell.reason);
  exit_soon(failed ? 1 : 0, farewell.outcome == RunOutcome::kCompleted ? settings_.port : nullptr);
}

void LiveSession::on_shard_left() {
  const std::lock_guard lock(mutex_);
  shard_left_ = true;
  changed_.notify_all();
}

// --- both. REQUIRES: mutex_ is held.

void LiveSession::send_unsent() {
  unsent_bytes_ = 0;
  send(std::exchange(unsent_, {}));
}

void LiveSession::send(Outbox out) {
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
  member_->send(std::move(out));
}

// Frames that are being sent out of a buffer: a gradient's, or that of the first parameters.
int64_t& LiveSession::under_way(const ConstBuffer& buffer) {
  for (Sending& each : gradients_) {
    if (each.buffer == buffer) return each.frames;
  }
  return parameters_under_way_;
}

// A gradient is written where nothing is being sent from. Who waits for all parameters has one
// buffer: what still goes out of it is for a closed step, but whole. Otherwise shards may be
// behind: that of the step before is left for them, and what one that hangs holds on to is not
// waited for. The machine offers it no more than two steps, so that these are few.
bool LiveSession::find_free_gradient() {
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

void LiveSession::wait_unless_stopped(std::unique_lock<std::mutex>& lock, Duration duration) {
  changed_.wait_for(lock, duration, [&] { return farewell_ || !machine_->wanted(step_); });
  stretched_until_ = clock_now();
}

// Makes what was computed since the last call take `factor` times as long. A slow machine would
// not notice an order to stop before it has finished its layer, so this does not either.
void LiveSession::stretch(std::unique_lock<std::mutex>& lock) {
  if (slowness_.factor <= 1.0) return;
  const Duration computed = clock_now() - stretched_until_;
  changed_.wait_for(lock, from_seconds(seconds(computed) * (slowness_.factor - 1.0)),
                    [&] { return farewell_.has_value(); });
  stretched_until_ = clock_now();
}

}  // namespace drover
