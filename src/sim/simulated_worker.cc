#include "sim/simulated_worker.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "core/check.h"

namespace drover {
namespace {

// How long a script waits for the final parameters of a run that has completed.
constexpr Duration kFinalPullTimeout = std::chrono::seconds(5);

// Records the order in which tensors become ready. The simulation decides when they do.
class TensorOrderRecorder : public GradientListener {
 public:
  explicit TensorOrderRecorder(std::vector<uint32_t>& order) : order_(order) {}
  bool tensor_ready(uint32_t tensor) override {
    order_.push_back(tensor);
    return true;
  }
  bool wanted() override { return true; }

 private:
  std::vector<uint32_t>& order_;
};

}  // namespace

SimulatedWorker::SimulatedWorker(SimulatedWorkerSettings settings, Task& task, EventQueue& time,
                                 Send send, std::function<void()> left)
    : settings_(std::move(settings)),
      task_(task),
      time_(time),
      send_(std::move(send)),
      left_(std::move(left)),
      parameters_(std::make_shared<FloatBuffer>(task.layout().buffer_size())),
      gradients_{std::make_shared<FloatBuffer>(task.layout().buffer_size()), nullptr},
      share_(settings_.id, settings_.workers, settings_.batch, settings_.own_part) {}

void SimulatedWorker::on_welcome(const Welcome& welcome) {
  task_.initial_parameters(parameters_->span());
  if (!welcome.asynchronous) steps_ = welcome.steps;
  std::optional<PartialPull::Settings> partial;
  if (welcome.partial_pull) {
    partial = {welcome.pull_share, welcome.pull_grace};
    gradients_[1] = std::make_shared<FloatBuffer>(task_.layout().buffer_size());
  }
  machine_.emplace(settings_.id, welcome.blocks, parameters_, gradients_[0],
                   welcome.asynchronous ? PullKind::kMixed : PullKind::kTogether, partial);
  machine_->set_number_type(settings_.number_type);
}

void SimulatedWorker::on_connected(ShardId shard) {
  connected_.insert(shard);
  if (connected_.size() < settings_.shards) return;
  send({{to_coordinator(), control_frame(Ready{})}});
  pull();
}

void SimulatedWorker::on_want_initial(ShardId shard) {
  Outbox out;
  machine_->on_want_initial(shard, out);
  send(std::move(out));
}

Status SimulatedWorker::on_frame(ShardId shard, const FrameHeader& header,
                                 std::span<const float> floats) {
  if (!floats.empty()) {
    const auto block = machine_->destination(shard, header);
    if (!block) return block.error();
    if (machine_->expects(header))
      std::copy(floats.begin(), floats.end(),
                machine_->begin_receiving(header)->data() + block.value().offset);
  }
  Outbox out;
  const Status status = machine_->on_frame(shard, header, time_.now(), out);
  send(std::move(out));
  begin_if_ready();
  return status;
}

void SimulatedWorker::pull() {
  Outbox out;
  machine_->begin_pull(time_.now(), out);
  send(std::move(out));
  begin_if_ready();
}

void SimulatedWorker::begin_if_ready() {
  if (over_ || computing_ || connected_.size() < settings_.shards) return;
  if (!machine_->ready()) return plan_wake();
  if (has_final()) {
    if (completed_) leave(Farewell{});
    return;
  }
  if (completed_) return;
  if (settings_.leave && machine_->step() >= settings_.leave->before) {
    if (settings_.leave->fails)
      return leave({.outcome = RunOutcome::kFailed, .reason = "ValueError: made up"});
    return leave(Farewell{});
  }
  if (gradients_[1]) in_use_ = 1 - in_use_;
  machine_->begin_step(gradients_[in_use_]);
  const auto tensors = static_cast<int64_t>(task_.layout().tensors().size());
  const auto layers = settings_.layers == 0 ? tensors : int64_t{settings_.layers};
  const Batch batch = share_.batch_of(machine_->step());
  Duration whole = settings_.compute_time(machine_->step());
  if (batch.count != settings_.batch)
    whole = from_seconds(seconds(whole) * batch.count / settings_.batch);
  computing_ = Computing{.step = machine_->step(),
                         .batch = batch,
                         .began = time_.now(),
                         .tensor = whole / (2 * tensors),
                         .layer = whole / (2 * layers)};
  if (abandoned_) {
    abandoned_->resumed = machine_->step();
    send({{to_coordinator(), control_frame(*std::exchange(abandoned_, {}))}});
  }
  if (settings_.script) {
    Outbox out;
    announce_rate(machine_->step(), out);
    if (settings_.script->pulls_ahead) {
      copy_.emplace(parameters_->size());
      std::copy(parameters_->span().begin(), parameters_->span().end(), copy_->span().begin());
      machine_->pull_ahead(out);
    }
    send(std::move(out));
  }
  ++turn_;
  plan_next_tensor();
}

// Announces the learning rate if it has changed, or if this process has not announced it yet.
void SimulatedWorker::announce_rate(Step step, Outbox& out) {
  const double rate = settings_.script->rate_at(step);
  if (rate_ == rate) return;
  rate_ = rate;
  for (ShardId shard = 0; shard < settings_.shards; ++shard) {
    out.push_back(
        {to_shard(shard, Lane::kControl), control_frame(LearningRate{.from = step, .rate = rate})});
  }
}

void SimulatedWorker::on_completed() {
  if (!settings_.script) return on_over();
  if (over_ || std::exchange(completed_, true)) return;
  if (connected_.size() < settings_.shards) return leave(Farewell{});
  time_.plan(time_.now() + kFinalPullTimeout, [this] { leave(Farewell{}); });
  if (computing_) return abandon();
  begin_if_ready();
}

void SimulatedWorker::leave(const Farewell& farewell) {
  if (std::exchange(over_, true)) return;
  send({{to_coordinator(), control_frame(farewell)}});
  if (left_) left_();
}

// Plans the end of the pull grace: then the machine may be ready.
void SimulatedWorker::plan_wake() {
  const auto wake = machine_->wake_at();
  if (!wake || wake_ == wake) return;
  wake_ = wake;
  time_.plan(std::max(*wake, time_.now()), [this, at = *wake] {
    if (over_ || computing_ || wake_ != at) return;
    wake_.reset();
    machine_->on_time(time_.now());
    begin_if_ready();
  });
}

void SimulatedWorker::plan_next_tensor() {
  const auto tensors = task_.layout().tensors().size();
  const auto times = static_cast<int64_t>(tensors + computing_->next + 1);
  time_.plan(computing_->began + computing_->tensor * times, [this, turn = turn_] {
    if (turn == turn_ && computing_ && !over_) on_tensor();
  });
}

void SimulatedWorker::on_tensor() {
  Computing& now = *computing_;
  if (!machine_->wanted(now.step)) return abandon();
  if (now.order.empty()) compute();
  Outbox out;
  machine_->offer(now.order[now.next], now.batch.count, out);
  if (++now.next < now.order.size()) {
    send(std::move(out));
    return plan_next_tensor();
  }
  StepReport report{.step = now.step,
                    .samples = now.report.samples,
                    .loss = now.report.loss,
                    .correct = now.report.correct,
                    .predictions = now.report.predictions,
                    .compute = time_.now() - now.began,
                    .learning_rate = rate_};
  machine_->describe_pull(time_.now(), report);
  out.push_back({to_coordinator(), control_frame(std::move(report))});
  send(std::move(out));
  computing_.reset();
  pull();
}

void SimulatedWorker::compute() {
  Computing& now = *computing_;
  TensorOrderRecorder noting(now.order);
  FloatBuffer& gradient = *gradients_[in_use_];
  const FloatBuffer& parameters = copy_ ? *copy_ : *parameters_;
  now.report = task_.gradient(parameters.span(), now.batch, gradient.span(), noting);
  DROVER_CHECK(now.order.size() == task_.layout().tensors().size());
  if (settings_.is_corrupt(now.step)) gradient.data()[0] = std::numeric_limits<float>::quiet_NaN();
  const double factor = settings_.gradient_factor ? settings_.gradient_factor(now.step) : 1.0;
  if (factor == 1.0) return;
  for (float& value : gradient.span()) value = static_cast<float>(factor) * value;
}

void SimulatedWorker::on_stop(Step step) {
  if (!machine_) return;
  machine_->on_stop(step);
  if (!computing_ || machine_->wanted(computing_->step)) return;
  // The worker notices the stop between two layers.
  time_.plan(time_.now() + computing_->layer, [this, turn = turn_] {
    if (turn == turn_ && computing_ && !over_) abandon();
  });
}

void SimulatedWorker::abandon() {
  abandoned_ =
      Abandoned{.step = computing_->step, .resumed = 0, .wasted = time_.now() - computing_->began};
  computing_.reset();
  pull();
}

}  // namespace drover
