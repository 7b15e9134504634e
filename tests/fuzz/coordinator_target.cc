// A coordinator with any input that its node passes on: peers that join, leave and send arbitrary
// messages. Its messages can be decoded, it never waits for more gradients than there are workers,
// it reports steps in order, and it is silent after its end, unless it is to restart and is
// interrupted.
#include <algorithm>
#include <array>
#include <limits>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "coordinator/coordinator.h"
#include "fuzz/any_message.h"
#include "fuzz/choices.h"
#include "fuzz/promise.h"
#include "fuzz/targets.h"
#include "policy/catalogue.h"
#include "wire/limits.h"

namespace drover::fuzz {
namespace {

constexpr size_t kEventsMax = 300;

std::vector<TensorSpec> tensors() { return {{"a", 40'000}, {"b", 32}, {"c", 30'000}}; }

CoordinatorSettings make_settings(Choices& choices) {
  CoordinatorSettings settings;
  settings.workers = 1 + choices.below(4);
  if (choices.flip()) settings.workers_at_start = 1 + choices.below(settings.workers);
  settings.shards = 1 + choices.below(2);
  settings.steps = 1 + choices.below(12);
  settings.evaluator = choices.flip();
  settings.evaluate_every = choices.below(3);
  if (choices.below(4) == 0) settings.stop_at = drover::Target{TargetKind::kLoss, 0.1};
  settings.workers_bring_model = choices.below(4) == 0;
  if (choices.flip()) settings.worker_options.job = "a job";
  settings.learning.schedule.rule = static_cast<RateRule>(choices.below(4));
  settings.batch = 8;
  settings.full_samples = uint64_t{settings.batch} * settings.workers;
  settings.limits.at_least = choices.below(3);
  static_cast<void>(choices.below(3));  // unused; keeps the inputs of the corpus valid
  if (choices.flip()) settings.limits.max_wait = 0.01;
  settings.limits.min_inclusion = choices.below(3) / 4.0;
  settings.stragglers = choices.flip() ? StragglerRule::kStop : StragglerRule::kFinish;
  settings.probe = choices.below(3) / 2.0;
  if (choices.below(5) == 0) {
    settings.asynchronous.emplace();
    if (choices.flip()) settings.asynchronous->staleness = choices.below(4);
  } else {
    if (choices.flip()) settings.balance = BalanceSettings{.warmup = 2};
    if (choices.flip()) settings.pull.share = 0.5;
    settings.pull.choose = choices.below(4) == 0;
    settings.pull.warmup = 2;
  }
  settings.checkpoint_every = choices.below(4);
  settings.checkpoint_dir = settings.checkpoint_every > 0 ? "checkpoints" : "";
  settings.recovers = choices.below(4) == 0;
  settings.standby = settings.recovers && !settings.asynchronous && !settings.pull.is_partial() &&
                     choices.below(4) > 0;
  settings.incarnation = 2;
  if (settings.standby && settings.steps > 3 && choices.flip()) {
    settings.resume =
        ResumeFrom{.step = 3, .tensors = tensors(), .kept = KeptVersion{3, 1}, .keepers = {0}};
  }
  return settings;
}

std::unique_ptr<Policy> any_policy(Choices& choices) {
  // The eighth and later ones have a forecast, and can decide again inside a step.
  constexpr std::array kNames = {"sync",           "static:0.5", "deadline:0.01", "mad",
                                 "bandit",         "dbw",        "dropcompute",   "elfving",
                                 "elfving-online", "ecdf",       "ecdf:hedge=on", "ewma"};
  const uint32_t choice = choices.below(kNames.size());
  const PolicySettings settings{.warmup = 2, .live = choice >= 7 && choices.flip()};
  auto made = make_policy(kNames[choice], settings);
  promise(made.ok(), "every policy of the list can be made");
  return std::move(made).value();
}

class CoordinatorRun {
 public:
  explicit CoordinatorRun(Choices& choices)
      : choices_(choices),
        settings_(make_settings(choices)),
        coordinator_(settings_, settings_.asynchronous ? nullptr : any_policy(choices), now_) {}

  void run() {
    for (size_t events = 0; events < kEventsMax && !choices_.over(); ++events) {
      const bool was_over = coordinator_.ended();
      const bool was_to_restart = coordinator_.restarts();
      give_input();
      // An interruption also reaches a coordinator that only waits for its next incarnation.
      const bool interrupted = was_to_restart && !coordinator_.restarts();
      promise(!was_over || interrupted || (out_.messages.empty() && out_.records.empty()),
              "a coordinator that has ended is silent");
      read_output();
      promise(coordinator_.pending() <= 8'192, "memory is bounded");
    }
    promise(ends_ == (coordinator_.ended() && !coordinator_.restarts() ? 1 : 0), "a run ends once");
    promise(!coordinator_.committed() ||
                (coordinator_.restarts() && coordinator_.committed()->step < settings_.steps),
            "the step that the next incarnation continues from is not the last");
  }

 private:
  using PeerId = std::pair<Role, uint32_t>;

  void give_input() {
    const uint32_t choice = choices_.below(16);
    if (choice < 4 || (peers_.empty() && choice < 12)) return connect();
    if (choice == 4) return disconnect(any_peer());
    if (choice < 7) return let_time_pass();
    if (choice == 7) return end_otherwise();
    if (choice == 8) return keep_checkpoint();
    const PeerId peer = any_peer();
    if (!peers_.contains(peer)) return;
    const std::string sent = encode_control(any_message(choices_, coordinator_.step()));
    const auto message = decode_control(std::as_bytes(std::span(sent)));
    if (!message || !coordinator_.on_message(peer.first, peer.second, message.value(), now_, out_))
      disconnect(peer);
  }

  PeerId any_peer() {
    const uint32_t choice = choices_.below(16);
    if (peers_.empty()) return {Role::kWorker, choice};
    return *std::next(peers_.begin(), choice % static_cast<uint32_t>(peers_.size()));
  }

  void connect() {
    const uint32_t choice = choices_.below(16);
    Hello hello{.role = choice < 4    ? Role::kShard
                        : choice < 13 ? Role::kWorker
                        : choice < 15 ? Role::kEvaluator
                                      : Role::kCoordinator,
                .index = choices_.below(8) % 5,
                .host = "here"};
    if (hello.role == Role::kWorker || hello.role == Role::kEvaluator) {
      hello.tensors = tensors();
      if (choices_.below(8) == 0) hello.tensors[0].size = choices_.below(4);
      if (settings_.workers_bring_model) hello.learning.emplace();
    }
    if (hello.role == Role::kShard && settings_.standby) {
      if (choices_.flip()) hello.role = Role::kStandby;
      if (choices_.flip()) hello.kept = {{3, choices_.below(3)}};
    }
    if (hello.role == Role::kWorker && choices_.below(8) == 0) {
      const auto place = coordinator_.offer_place("a host", now_);
      promise(!place || place.value().worker < settings_.workers, "a place is one of the run's");
      return;
    }
    if (coordinator_.on_hello(hello, now_, out_)) peers_.insert({hello.role, hello.index});
  }

  void disconnect(PeerId peer) {
    peers_.erase(peer);
    coordinator_.on_lost(peer.first, peer.second, disconnected("the connection was closed"), now_,
                         out_);
  }

  void let_time_pass() {
    now_ += choices_.pause();
    const auto wake = coordinator_.wake_at();
    if (wake && choices_.flip())
      now_ = std::max(now_, std::min(*wake, now_ + std::chrono::hours(1)));
    coordinator_.on_time(now_, out_);
    coordinator_.on_tick(now_, out_);
    const auto next = coordinator_.wake_at();
    promise(!next || *next != wake || *next > now_, "a due action is done");
  }

  void end_otherwise() {
    const uint32_t choice = choices_.below(32);
    if (choice == 0) coordinator_.on_interrupt(now_, out_);
    if (choice == 1)
      coordinator_.on_failure(EndCause::kRecordFailed, "the disk is full", now_, out_);
  }

  void keep_checkpoint() {
    if (unkept_.empty()) return;
    const Version version = unkept_.back();
    unkept_.pop_back();
    coordinator_.on_checkpoint_kept(
        version, choices_.flip() ? done() : Status(system_error("the disk is full")), Duration(1),
        now_, out_);
  }

  void read_output() {
    const CoordinatorOutput out = std::exchange(out_, {});
    for (const Outgoing& message : out.messages) {
      if (const auto* control = std::get_if<Control>(&message.frame.payload))
        read_message(*control);
    }
    for (const RunRecord& each : out.records) read_record(each);
    for (const CheckpointReady& ready : out.checkpoints) {
      promise(ready.version <= settings_.steps, "checkpoints are of the run's steps");
      unkept_.push_back(ready.version);
    }
  }

  void read_message(const Control& message) {
    const std::string sent = encode_control(message);
    promise(decode_control(std::as_bytes(std::span(sent))).ok(), "messages can be decoded");
    const auto* decision = std::get_if<Decision>(&message);
    if (decision == nullptr) return;
    promise(decision->step < settings_.steps, "decisions are about the run's steps");
    promise(decision->cutoff >= 1, "every step waits for a gradient");
    promise(decision->cutoff <= decision->alive.size(),
            "no step waits for more gradients than there are workers");
    promise(decision->at_least <= decision->cutoff, "the least is no more than the cutoff");
    promise(std::ranges::is_sorted(decision->alive), "workers are listed in order");
  }

  void read_record(const RunRecord& record) {
    if (std::holds_alternative<RunEnd>(record)) ++ends_;
    if (const auto* decision = std::get_if<DecisionRecord>(&record)) {
      promise(decision->step >= decided_ && decision->step < settings_.steps,
              "steps are decided in order");
      promise(!decision->reason.empty(), "a decision has a reason");
      decided_ = decision->step;
    }
    if (const auto* summary = std::get_if<StepSummary>(&record))
      promise(summary->step.step == reported_++, "steps are reported in order");
  }

  Choices& choices_;
  const CoordinatorSettings settings_;
  TimePoint now_{};
  Coordinator coordinator_;
  CoordinatorOutput out_;
  std::set<PeerId> peers_;
  std::vector<Version> unkept_;
  Step decided_ = 0;
  Step reported_ = settings_.resume ? settings_.resume->step : 0;
  int ends_ = 0;
};

}  // namespace

void coordinator(Bytes input) {
  Choices choices(input);
  CoordinatorRun(choices).run();
}

}  // namespace drover::fuzz
