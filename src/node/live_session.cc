#include "node/live_session.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <array>
#include <bit>
#include <utility>

#include "node/clock.h"
#include "node/exit.h"

namespace drover {
namespace {

// How long to wait for the last parameters after the run is over.
constexpr Duration kFinalPatience = std::chrono::seconds(5);

// Differs if one value does, and for other changes but once in billions. In lanes, so that it is as
// fast as memory.
uint32_t digest_of(std::span<const float> values) {
  constexpr size_t kLanes = 16;
  constexpr uint32_t kPrime = 0x01000193;
  std::array<uint32_t, kLanes> lanes{};
  size_t at = 0;
  for (; at + kLanes <= values.size(); at += kLanes) {
    for (size_t lane = 0; lane < kLanes; ++lane)
      lanes[lane] = (lanes[lane] ^ std::bit_cast<uint32_t>(values[at + lane])) * kPrime;
  }
  uint32_t digest = 0;
  for (; at < values.size(); ++at) digest = (digest ^ std::bit_cast<uint32_t>(values[at])) * kPrime;
  for (const uint32_t lane : lanes) digest = (digest ^ lane) * kPrime;
  return digest;
}

}  // namespace

Result<std::unique_ptr<LiveSession>> LiveSession::create(const WorkerSettings& settings,
                                                         const Layout& layout) {
  auto gradients =
      GradientBuffers::create(settings.sharing, layout.buffer_size(), settings.partial);
  if (!gradients) return gradients.error();
  return std::unique_ptr<LiveSession>(
      new LiveSession(settings, layout, std::move(gradients).value()));
}

LiveSession::LiveSession(const WorkerSettings& settings, const Layout& layout,
                         GradientBuffers gradients)
    : settings_(settings),
      layout_(layout),
      parameters_(std::make_shared<FloatBuffer>(layout.buffer_size())),
      gradients_(std::move(gradients)),
      average_(layout.buffer_size()) {}

LiveSession::Assignment::Assignment(const Welcome& welcome, const WorkerSettings& settings,
                                    SharedBuffer parameters, ConstBuffer gradient)
    : machine(settings.identity.worker(), welcome.blocks, std::move(parameters),
              std::move(gradient), welcome.asynchronous ? PullKind::kMixed : PullKind::kTogether,
              welcome.partial_pull
                  ? std::optional(PartialPull::Settings{welcome.pull_share, welcome.pull_grace})
                  : std::nullopt),
      share(settings.identity.index, welcome.workers, welcome.batch, settings.own_part),
      slowness(welcome.slow, welcome.seed, settings.identity.index) {
  machine.set_number_type(welcome.wire_dtype);
}

Status LiveSession::start() {
  member_.reset();  // This joins its thread, so no lock is needed until the next one starts.
  unsent_ = {};
  asked_ = false;
  abandoned_.reset();
  report_.reset();
  rate_.on_new_shards();
  gradients_.forget_frames();
  average_.reset();
  work_.reset();
  connection_ = {};
  member_ =
      std::make_unique<Member>(settings_.identity, layout_, static_cast<Member::Handler&>(*this),
                               Member::Extras{.memory = gradients_.file(),
                                              .learning = settings_.learning,
                                              .copiers = settings_.copiers,
                                              .port = settings_.port});
  return member_->start();
}

std::optional<Farewell> LiveSession::farewell() {
  const std::lock_guard lock(mutex_);
  return connection_.farewell;
}

bool LiveSession::wait_until_connected(Duration patience) {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, patience,
                           [&] { return connection_.connected || connection_.farewell; });
}

bool LiveSession::was_connected() {
  const std::lock_guard lock(mutex_);
  return connection_.connected;
}

// --- the training loop's thread

void LiveSession::leave(const std::string& reason) {
  if (!member_) return;  // start() was never called
  send_report();
  const std::lock_guard lock(mutex_);
  const Farewell farewell{reason.empty() ? RunOutcome::kCompleted : RunOutcome::kFailed, reason};
  unsent_.messages().push_back({to_coordinator(), control_frame(farewell)});
  send_unsent();
  member_->send_last({});
  if (!connection_.farewell) connection_.farewell = farewell;
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
  while (!connection_.farewell || awaits_final(clock_now())) {
    if (connection_.connected && !asked_) {
      asked_ = true;
      work_->machine.begin_pull(clock_now(), unsent_.messages());
      send_unsent();
    }
    std::optional<TimePoint> wake = deadline;
    if (connection_.farewell)
      wake = std::min(wake.value_or(connection_.over_at + kFinalPatience),
                      connection_.over_at + kFinalPatience);
    if (connection_.connected) {
      work_->machine.on_time(clock_now());
      if (are_final()) send_report();  // the coordinator waits for it
      if (connection_.farewell && work_->machine.ready()) return Waited::kOver;
      if (!are_final() && parameters_are_here()) {
        begin_step(lock);
        return Waited::kStep;
      }
      const auto due = work_->machine.wake_at();
      if (due && !work_->machine.ready()) wake = wake ? std::min(*wake, *due) : *due;
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

// Whether the parameters are those after the last step: no step begins with them, and Farewell is
// about to come.
bool LiveSession::are_final() const {
  return asked_ && work_->machine.ready() && !welcome_.asynchronous &&
         work_->machine.step() >= welcome_.steps;
}

// A worker that keeps the model waits for the final parameters, also if Farewell comes first. The
// coordinator lets shards stay until the workers have left.
bool LiveSession::awaits_final(TimePoint now) const {
  if (settings_.exit_when_over || connection_.farewell->outcome != RunOutcome::kCompleted)
    return false;
  return connection_.connected && !connection_.shard_left && !are_final() &&
         now < connection_.over_at + kFinalPatience;
}

bool LiveSession::parameters_are_here() {
  return work_->machine.ready() && gradients_.choose_free(welcome_.partial_pull);
}

void LiveSession::begin_step(std::unique_lock<std::mutex>& lock) {
  work_->machine.begin_step(gradients_.current());
  step_ = work_->machine.step();
  gradients_.begin(step_);
  rate_.begin(step_, welcome_.shards.size(), unsent_.messages());
  batch_ = work_->share.batch_of(step_);
  if (abandoned_) {
    abandoned_->resumed = step_;
    member_->send({{to_coordinator(), control_frame(*std::exchange(abandoned_, {}))}});
  }
  const Duration delay = work_->slowness.begin(step_);
  began_ = computed_ = clock_now();
  work_->slowness.resume(began_);
  if (delay > Duration::zero()) wait_unless_stopped(lock, delay);
}

void LiveSession::set_rate(double rate, std::vector<GroupSettings> groups) {
  const std::lock_guard lock(mutex_);
  rate_.set(rate, std::move(groups), step_, welcome_.shards.size(), unsent_.messages());
}

void LiveSession::pull_ahead() {
  const std::lock_guard lock(mutex_);
  if (welcome_.partial_pull || welcome_.asynchronous || connection_.farewell) return;
  work_->machine.pull_ahead(unsent_.messages());
}

bool LiveSession::tensor_ready(uint32_t tensor, uint32_t samples) {
  return push(tensor, samples, 0);
}

bool LiveSession::push(uint32_t tensor, uint32_t samples, uint16_t flags) {
  std::unique_lock lock(mutex_);
  stretch(lock);
  computed_ = clock_now();
  if (connection_.farewell || !work_->machine.wanted(step_)) return false;
  if (unsent_.offer(work_->machine, tensor, samples, flags)) send_unsent();
  return true;
}

void LiveSession::expect_norm(const std::vector<uint32_t>& tensors) {
  const std::lock_guard lock(mutex_);
  work_->machine.expect_norm(tensors);
}

std::optional<LiveSession::Norm> LiveSession::wait_for_norm(Duration patience) {
  std::unique_lock lock(mutex_);
  send_unsent();
  const auto in_vain = [&] {
    return connection_.farewell || work_->machine.held_in_vain() || !work_->machine.wanted(step_);
  };
  changed_.wait_for(lock, patience, [&] { return work_->machine.norm() || in_vain(); });
  if (const auto norm = work_->machine.norm()) return Norm{.known = true, .norm = *norm};
  return in_vain() ? std::optional(Norm{}) : std::nullopt;
}

void LiveSession::release(double scale, bool used) {
  const std::lock_guard lock(mutex_);
  work_->machine.release(scale, used, unsent_.messages());
}

std::vector<uint32_t> LiveSession::changed_tensors() {
  std::vector<uint32_t> changed;
  for (const Block& block : welcome_.blocks.blocks) {
    if (block.kind != TensorKind::kTrained || arrived_.size() <= block.id) continue;
    if (digest_of(parameters_->span().subspan(block.offset, block.length)) == arrived_[block.id])
      continue;
    for (uint32_t tensor = block.tensor; tensor < block.tensor + block.tensors; ++tensor) {
      if (changed.empty() || changed.back() < tensor) changed.push_back(tensor);
    }
  }
  return changed;
}

bool LiveSession::wanted() {
  std::unique_lock lock(mutex_);
  stretch(lock);
  return !connection_.farewell && work_->machine.wanted(step_);
}

void LiveSession::finish_step(const GradientReport& report) {
  const std::lock_guard lock(mutex_);
  if (!report.finished) {
    abandoned_ = Abandoned{.step = step_, .resumed = 0, .wasted = clock_now() - began_};
    return;
  }
  unsent_.messages().push_back({to_coordinator(), control_frame(described(report))});
}

StepReport LiveSession::described(const GradientReport& report) {
  StepReport message{.step = step_,
                     .samples = report.samples,
                     .loss = report.loss,
                     .correct = report.correct,
                     .predictions = report.predictions,
                     .compute = computed_ - began_,
                     .learning_rate = rate_.value()};
  work_->machine.describe_pull(clock_now(), message);
  return message;
}

void LiveSession::hold_report(const GradientReport& report) {
  send_report();
  if (!report.finished) return finish_step(report);
  const std::lock_guard lock(mutex_);
  report_ = described(report);
}

void LiveSession::amend_report(double loss, uint32_t correct, uint32_t predictions) {
  if (!report_) return;
  report_->loss = loss;
  report_->correct = correct;
  report_->predictions = predictions;
}

void LiveSession::send_report() {
  if (report_) member_->send({{to_coordinator(), control_frame(*std::exchange(report_, {}))}});
}

void LiveSession::ask_for_length(Step steps) {
  send_report();
  member_->send({{to_coordinator(), control_frame(RunLength{steps})}});
}

bool LiveSession::ask_for_average() {
  const std::lock_guard lock(mutex_);
  Outbox out;
  const bool kept = average_.begin(settings_.identity.worker(), welcome_.blocks, step_,
                                   welcome_.evaluate_every, out);
  if (kept) send(std::move(out));
  return kept;
}

std::optional<Version> LiveSession::wait_for_average(Duration patience) {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, patience, [&] { return connection_.farewell || average_.complete(); });
  if (!average_.complete()) return std::nullopt;
  return average_.version();
}

void LiveSession::send_evaluated(const Evaluated& evaluated) {
  member_->send({{to_coordinator(), control_frame(evaluated)}});
}

// --- the connections' thread

void LiveSession::on_welcome(const Welcome& welcome) {
  const std::lock_guard lock(mutex_);
  welcome_ = welcome;
  work_.emplace(welcome, settings_, parameters_, gradients_.current());
  if (settings_.watch) arrived_.assign(welcome.blocks.blocks.size(), 0);
}

void LiveSession::on_length(Step steps) {
  const std::lock_guard lock(mutex_);
  welcome_.steps = steps;
  changed_.notify_all();
}

void LiveSession::on_norm(ShardId shard, const GradientNorm& norm) {
  const std::lock_guard lock(mutex_);
  if (work_) work_->machine.on_norm(shard, norm);
  changed_.notify_all();
}

void LiveSession::on_connected(bool in_place) {
  const std::lock_guard lock(mutex_);
  connection_.in_place = in_place;
  connection_.connected = true;
  changed_.notify_all();
}

Result<std::span<std::byte>> LiveSession::payload_for(ShardId shard, const FrameHeader& header) {
  const std::lock_guard lock(mutex_);
  const auto block = work_->machine.destination(shard, header);
  if (!block) return block.error();
  const bool averaged = (header.flags & kSnapshotFlag) != 0;
  if (averaged && average_.expects(header))
    return std::as_writable_bytes(average_.destination(block.value()));
  if (averaged || !work_->machine.expects(header)) {
    unwanted_.resize(block.value().length * sizeof(float));
    return std::span(unwanted_);
  }
  return std::as_writable_bytes(work_->machine.begin_receiving(header)->span().subspan(
      block.value().offset, block.value().length));
}

bool LiveSession::expects(const FrameHeader& header) {
  const std::lock_guard lock(mutex_);
  if ((header.flags & kSnapshotFlag) != 0) return average_.expects(header);
  return work_->machine.expects(header);
}

Status LiveSession::on_frame(ShardId shard, const FrameHeader& header) {
  const std::lock_guard lock(mutex_);
  const bool averaged = (header.flags & kSnapshotFlag) != 0 || header.type == FrameType::kGone;
  Outbox out;
  if (!averaged && header.type == FrameType::kParameters) note_arrived(header);
  const Status status = averaged ? average_.on_frame(header, out)
                                 : work_->machine.on_frame(shard, header, clock_now(), out);
  send(std::move(out));
  const bool news = averaged ? average_.complete()
                             : work_->machine.ready() || work_->machine.wake_at().has_value() ||
                                   work_->machine.held_in_vain();
  if (news) changed_.notify_all();
  return status;
}

void LiveSession::on_want_initial(ShardId shard) {
  const std::lock_guard lock(mutex_);
  Outbox out;
  work_->machine.on_want_initial(shard, out);
  send(std::move(out));
}

void LiveSession::on_stop(Step step) {
  const std::lock_guard lock(mutex_);
  if (work_) work_->machine.on_stop(step);
  changed_.notify_all();
}

void LiveSession::on_share(const Share& share) {
  const std::lock_guard lock(mutex_);
  if (work_) work_->share.on_share(share);
}

void LiveSession::on_pull_share(const PullShare& share) {
  const std::lock_guard lock(mutex_);
  if (work_) work_->machine.on_pull_share(share);
}

void LiveSession::on_floats_sent(const ConstBuffer& buffer) {
  const std::lock_guard lock(mutex_);
  if (gradients_.on_sent(buffer)) changed_.notify_all();
}

void LiveSession::on_over(const Farewell& farewell) {
  const std::lock_guard lock(mutex_);
  connection_.farewell = farewell;
  connection_.over_at = clock_now();
  const bool failed = farewell.outcome == RunOutcome::kFailed;
  changed_.notify_all();
  if (!settings_.exit_when_over || farewell.rejoin) return;
  if (failed) spdlog::error("stopping: {}", farewell.reason);
  exit_soon(failed ? 1 : 0, farewell.outcome == RunOutcome::kCompleted ? settings_.port : nullptr);
}

void LiveSession::on_shard_left() {
  const std::lock_guard lock(mutex_);
  connection_.shard_left = true;
  changed_.notify_all();
}

// --- both threads. REQUIRES: mutex_ is held.

void LiveSession::note_arrived(const FrameHeader& header) {
  if (header.block >= arrived_.size() || !work_->machine.expects(header)) return;
  const Block& block = welcome_.blocks.blocks[header.block];
  arrived_[block.id] = digest_of(parameters_->span().subspan(block.offset, block.length));
}

void LiveSession::send(Outbox out) {
  for (Outgoing& message : out) {
    FrameHeader& header = message.frame.header;
    if (connection_.in_place && header.type == FrameType::kOffer && header.step != kInitialStep &&
        (header.flags & kNothingFlag) == 0) {
      header.flags |= kInPlaceFlag;
      header.place = gradients_.place();
      message.frame.payload = {};
    }
    if (const auto* slice = std::get_if<FloatSlice>(&message.frame.payload))
      gradients_.on_sending(slice->buffer);
  }
  member_->send(std::move(out));
}

void LiveSession::wait_unless_stopped(std::unique_lock<std::mutex>& lock, Duration duration) {
  changed_.wait_for(lock, duration,
                    [&] { return connection_.farewell || !work_->machine.wanted(step_); });
  work_->slowness.resume(clock_now());
}

// Not interrupted by an order to stop: a machine that is really slow also notices it only after the
// layer.
void LiveSession::stretch(std::unique_lock<std::mutex>& lock) {
  if (!work_ || !work_->slowness.stretches()) return;
  changed_.wait_for(lock, work_->slowness.stretch(clock_now()),
                    [&] { return connection_.farewell.has_value(); });
  work_->slowness.resume(clock_now());
}

}  // namespace drover
