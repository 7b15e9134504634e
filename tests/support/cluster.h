// Cluster: coordinator, shards and workers as state machines, joined by queues that a seeded
// scheduler delivers from in random order. Tests kill and revive workers.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "coordinator/coordinator.h"
#include "policy/simple.h"
#include "shard/shard.h"
#include "worker/worker_machine.h"

namespace drover::testing_support {

// The task: pull parameters p towards a point that depends on worker and step; gradient = p -
// target.
inline float target(WorkerId worker, Step step) {
  return static_cast<float>((Step{worker} * 7 + step * 3) % 11) - 5.0f;
}

// Chooses the same in every step, whichever workers are alive.
class FixedChoice : public Policy {
 public:
  explicit FixedChoice(uint32_t cutoff, double time_limit = kNoTimeLimit, uint32_t at_least = 1)
      : choice_{cutoff, time_limit, at_least, "fixed"} {}
  Choice decide(const Situation&) override { return choice_; }
  void learn(const StepTimes&) override {}
  void learn_late(Step, WorkerId, double) override {}

 private:
  const Choice choice_;
};

class Cluster {
 public:
  Cluster(uint64_t seed, uint32_t workers, uint32_t shards, Step steps, bool deterministic,
          std::unique_ptr<Policy> policy = std::make_unique<SyncPolicy>(),
          std::optional<Asynchronous> asynchronous = {})
      : random_(seed),
        steps_(steps),
        asynchronous_(asynchronous),
        layout_({{"a", 9'000, TensorKind::kTrained},
                 {"b", 33, TensorKind::kTrained},
                 {"c", 5'000, TensorKind::kTrained}}),
        coordinator_({.workers = workers,
                      .shards = shards,
                      .steps = steps,
                      .evaluator = false,
                      .learning = {.schedule = {.base = 0.1}, .deterministic = deterministic},
                      .asynchronous = asynchronous},
                     std::move(policy), now_) {
    for (ShardId shard = 0; shard < shards; ++shard) {
      shards_.push_back(std::make_unique<Shard>(shard, 20'000));
      post_hello({.role = Role::kShard, .index = shard, .address = "shard"});
    }
    for (WorkerId worker = 0; worker < workers; ++worker) {
      workers_.push_back(std::make_unique<LocalWorker>());
      workers_.back()->parameters = std::make_shared<FloatBuffer>(layout_.buffer_size());
      workers_.back()->gradient = std::make_shared<FloatBuffer>(layout_.buffer_size());
      post_hello({.role = Role::kWorker, .index = worker, .tensors = layout_.tensors()});
    }
  }

  // Kills `worker` after so many deliveries.
  void kill_at(size_t delivery, WorkerId worker) { deaths_[delivery] = worker; }
  // Starts it again, if it is dead then.
  void revive_at(size_t delivery, WorkerId worker) { revivals_[delivery] = worker; }

  // Delivers until nothing is left to do. Returns how the run ended, if it did.
  std::optional<RunEnd> run() {
    for (size_t delivery = 0; delivery < 3'000'000; ++delivery) {
      if (const auto death = deaths_.find(delivery); death != deaths_.end()) kill(death->second);
      if (const auto again = revivals_.find(delivery); again != revivals_.end())
        revive(again->second);
      now_ += Duration(1000);
      wake_servers();
      if (!deliver_one() && !compute_one() && !sleep()) break;
    }
    return end_;
  }

  // The final parameters, as the evaluator would get them: block by block from the shards.
  std::vector<float> parameters() {
    std::vector<float> all(layout_.buffer_size(), 0.0f);
    for (auto& shard : shards_) {
      Outbox out;
      const FrameHeader pull{.type = FrameType::kPull, .flags = kSnapshotFlag, .version = steps_};
      EXPECT_TRUE(shard->on_frame(kEvaluator, pull, nullptr, now_, out).ok());
      for (const Outgoing& each : out) {
        if (each.frame.header.type != FrameType::kParameters) continue;
        const auto values = std::get<FloatSlice>(each.frame.payload).span();
        std::copy(values.begin(), values.end(),
                  all.begin() +
                      static_cast<std::ptrdiff_t>(blocks_.blocks[each.frame.header.block].offset));
      }
    }
    return all;
  }

  // What every block must be after the gradients that shards said they accepted: plain SGD with
  // their means, weighted by samples.
  std::vector<float> expected_parameters() const {
    std::vector<float> all(layout_.buffer_size(), 0.0f);
    for (const Block& block : blocks_.blocks) {
      double value = 0.0;
      for (Step step = 0; step < steps_; ++step) {
        const auto found = accepted_.find({block.id, step});
        if (found == accepted_.end()) continue;
        double gradient = 0.0;
        double samples = 0.0;
        for (const WorkerId worker : found->second) {
          gradient += (1.0 + worker) * (value - static_cast<double>(target(worker, step)));
          samples += 1.0 + worker;
        }
        value -= 0.1 * gradient / samples;
      }
      std::fill_n(all.begin() + static_cast<std::ptrdiff_t>(block.offset), block.length,
                  static_cast<float>(value));
    }
    return all;
  }

  // In asynchronous training: one update after the other, in the order of acceptance.
  std::vector<float> parameters_after_each() const {
    std::vector<float> all(layout_.buffer_size(), 0.0f);
    for (const Block& block : blocks_.blocks) {
      double value = 0.0;
      const auto found = applied_.find(block.id);
      if (found == applied_.end()) continue;
      for (const float gradient : found->second) value -= 0.1 * static_cast<double>(gradient);
      std::fill_n(all.begin() + static_cast<std::ptrdiff_t>(block.offset), block.length,
                  static_cast<float>(value));
    }
    return all;
  }
  // Gradients accepted, by block.
  const std::map<BlockId, std::vector<float>>& applied() const { return applied_; }
  const BlockPlan& blocks() const { return blocks_; }

  const Layout& layout() const { return layout_; }
  const std::vector<StepSummary>& summaries() const { return summaries_; }
  size_t count_events(EventKind kind) const {
    return static_cast<size_t>(
        std::count_if(events_.begin(), events_.end(),
                      [&](const EventRecord& event) { return event.kind() == kind; }));
  }

 private:
  struct LocalWorker {
    SharedBuffer parameters;
    SharedBuffer gradient;
    std::unique_ptr<WorkerMachine> machine;
    size_t shards_connected = 0;
    bool waiting = false;       // for parameters
    std::deque<uint32_t> left;  // tensors of the step that are still to be computed
    Step next = 0;              // asynchronous: the number of its next gradient
    bool over = false;
  };
  // One ordered queue per direction and lane, as connections are.
  using LaneKey = std::tuple<int, uint32_t, int, uint32_t, int>;
  struct Parcel {
    std::function<void()> deliver;
  };

  void post(int from_role, uint32_t from, const Address& to, std::function<void()> deliver) {
    lanes_[{from_role, from, static_cast<int>(to.role), to.index, static_cast<int>(to.lane)}]
        .push_back({std::move(deliver)});
  }

  void post_hello(Hello hello) {
    post(static_cast<int>(hello.role), hello.index, to_coordinator(), [this, hello] {
      if (hello.role == Role::kWorker && dead_.contains(hello.index)) return;
      // A worker that returns before its loss is noticed is refused, and tries again.
      if (hello.role == Role::kWorker && unnoticed_.contains({kCoordinator, hello.index}))
        return post_hello(hello);
      with_coordinator([&](CoordinatorOutput& out) {
        const Status admitted = coordinator_.on_hello(hello, now_, out);
        EXPECT_TRUE(admitted.ok() || revived_) << admitted.error().message;
      });
    });
  }

  template <typename Work>
  void with_coordinator(Work&& work) {
    CoordinatorOutput out;
    work(out);
    for (Outgoing& message : out.messages) send(0, 0, std::move(message));
    for (RunRecord& record : out.records) {
      if (auto* summary = std::get_if<StepSummary>(&record)) summaries_.push_back(*summary);
      if (auto* event = std::get_if<EventRecord>(&record)) events_.push_back(*event);
      if (auto* end = std::get_if<RunEnd>(&record)) end_ = *end;
    }
  }

  void send_all(int from_role, uint32_t from, Outbox out) {
    for (Outgoing& message : out) send(from_role, from, std::move(message));
  }

  void send(int from_role, uint32_t from, Outgoing message) {
    if (from_role == static_cast<int>(Role::kShard)) note_answer(message);
    if (message.to.role == Role::kWorker) {
      // A connection that has ended delivers nothing to the next incarnation.
      const int peer =
          from_role == static_cast<int>(Role::kShard) ? static_cast<int>(from) : kCoordinator;
      if (dead_.contains(message.to.index) || unnoticed_.contains({peer, message.to.index})) return;
    }
    // What is sent from a buffer is copied when it leaves, as a socket does.
    std::vector<float> floats;
    if (const auto* slice = std::get_if<FloatSlice>(&message.frame.payload)) {
      const auto values = slice->span();
      floats.assign(values.begin(), values.end());
      message.frame.header.length = static_cast<uint32_t>(floats.size() * sizeof(float));
    }
    post(from_role, from, message.to, [this, from_role, from, message, floats] {
      const FrameHeader& header = message.frame.header;
      const auto* control = std::get_if<Control>(&message.frame.payload);
      switch (message.to.role) {
        case Role::kCoordinator:
          if (from_role == static_cast<int>(Role::kWorker) && dead_.contains(from)) return;
          with_coordinator([&](CoordinatorOutput& out) {
            EXPECT_TRUE(
                coordinator_.on_message(static_cast<Role>(from_role), from, *control, now_, out)
                    .ok());
          });
          return;
        case Role::kShard:
          return to_shard_machine(message.to.index, from_role, from, header, control, floats);
        default:
          return to_worker_machine(message.to.index, from_role, from, header, control, floats);
      }
    });
  }

  static bool is_accepted(const FrameHeader& header) {
    return header.type == FrameType::kAnswer && header.answer == Answer::kAccepted &&
           header.step != kInitialStep;
  }

  void note_answer(const Outgoing& message) {
    const FrameHeader& header = message.frame.header;
    if (!is_accepted(header)) return;
    if (asynchronous_ && revived_) return;  // a further incarnation may reuse its numbers
    auto& workers = accepted_[{header.block, header.step}];
    EXPECT_TRUE(workers.insert(header.worker).second)
        << "worker " << header.worker << " counted twice in step " << header.step;
  }

  void to_shard_machine(ShardId id, int from_role, uint32_t from, const FrameHeader& header,
                        const Control* control, const std::vector<float>& floats) {
    Shard& shard = *shards_[id];
    Outbox out;
    if (from_role == static_cast<int>(Role::kWorker)) {
      if (dead_.contains(from)) return;
      SharedBuffer payload;
      if (!floats.empty()) {
        payload = shard.pool().take(floats.size());
        std::copy(floats.begin(), floats.end(), payload->data());
      }
      const Status status = shard.on_frame(from, header, std::move(payload), now_, out);
      EXPECT_TRUE(status.ok()) << status.error().message;
      for (const Outgoing& each : out) {
        if (is_accepted(each.frame.header)) applied_[header.block].push_back(floats.at(0));
      }
    } else if (const auto* plan = std::get_if<Plan>(control)) {
      blocks_ = plan->blocks;
      shard.on_plan(*plan);
    } else if (const auto* decision = std::get_if<Decision>(control)) {
      shard.on_decision(*decision, now_, out);
    }
    send_all(static_cast<int>(Role::kShard), id, std::move(out));
  }

  void to_worker_machine(WorkerId id, int from_role, uint32_t from, const FrameHeader& header,
                         const Control* control, const std::vector<float>& floats) {
    if (dead_.contains(id)) return;
    LocalWorker& worker = *workers_[id];
    Outbox out;
    if (from_role == static_cast<int>(Role::kCoordinator)) {
      if (control && std::holds_alternative<Farewell>(*control)) worker.over = true;
      if (header.type == FrameType::kStop && worker.machine) worker.machine->on_stop(header.step);
      const auto* welcome = control ? std::get_if<Welcome>(control) : nullptr;
      if (welcome != nullptr) {
        worker.machine = std::make_unique<WorkerMachine>(
            id, welcome->blocks, worker.parameters, worker.gradient,
            welcome->asynchronous ? PullKind::kMixed : PullKind::kTogether);
        for (ShardId shard = 0; shard < shards_.size(); ++shard) {
          // Connecting is a message like any other.
          post(static_cast<int>(Role::kWorker), id, {Role::kShard, shard, Lane::kControl},
               [this, id, shard] { join(id, shard); });
        }
      }
    } else if (control && std::holds_alternative<Connected>(*control)) {
      if (++worker.shards_connected == shards_.size()) {
        send(static_cast<int>(Role::kWorker), id, {to_coordinator(), control_frame(Ready{})});
        worker.waiting = true;
        worker.machine->begin_pull(now_, out);
      }
    } else if (control && std::holds_alternative<WantInitial>(*control)) {
      worker.machine->on_want_initial(from, out);
    } else {
      if (!floats.empty()) {
        const auto block = worker.machine->destination(from, header);
        ASSERT_TRUE(block.ok()) << block.error().message;
        if (worker.machine->expects(header))
          std::copy(floats.begin(), floats.end(), worker.parameters->data() + block.value().offset);
      }
      const Status status = worker.machine->on_frame(from, header, now_, out);
      EXPECT_TRUE(status.ok()) << status.error().message;
    }
    send_all(static_cast<int>(Role::kWorker), id, std::move(out));
  }

  void join(WorkerId id, ShardId shard) {
    if (dead_.contains(id)) return;
    if (!shards_[shard]->has_plan() || unnoticed_.contains({static_cast<int>(shard), id})) {
      return post(static_cast<int>(Role::kWorker), id, {Role::kShard, shard, Lane::kControl},
                  [this, id, shard] { join(id, shard); });
    }
    Outbox out;
    shards_[shard]->on_joined(id, out);
    send_all(static_cast<int>(Role::kShard), shard, std::move(out));
  }

  void wake_servers() {
    for (ShardId shard = 0; shard < shards_.size(); ++shard) {
      const auto alarm = shards_[shard]->wake_at();
      if (!alarm || *alarm > now_) continue;
      Outbox out;
      shards_[shard]->on_time(now_, out);
      send_all(static_cast<int>(Role::kShard), shard, std::move(out));
    }
    if (const auto alarm = coordinator_.wake_at(); alarm && *alarm <= now_)
      with_coordinator([&](CoordinatorOutput& out) { coordinator_.on_time(now_, out); });
  }

  // Advances the clock to the next timer. False: there is none.
  bool sleep() {
    std::optional<TimePoint> next = coordinator_.wake_at();
    for (const auto& shard : shards_) {
      if (const auto alarm = shard->wake_at()) next = std::min(next.value_or(*alarm), *alarm);
    }
    if (next) now_ = std::max(now_, *next);
    return next.has_value();
  }

  // Delivers the first message of a random lane.
  bool deliver_one() {
    std::vector<LaneKey> ready;
    for (const auto& [key, parcels] : lanes_) {
      if (!parcels.empty()) ready.push_back(key);
    }
    if (ready.empty()) return false;
    if (random_() % 8 == 0 && compute_one()) return true;
    auto& lane = lanes_[ready[random_() % ready.size()]];
    const Parcel parcel = std::move(lane.front());
    lane.pop_front();
    parcel.deliver();
    return true;
  }

  // A random worker computes one tensor of its gradient.
  bool compute_one() {
    std::vector<WorkerId> able;
    for (WorkerId id = 0; id < workers_.size(); ++id) {
      const LocalWorker& worker = *workers_[id];
      if (dead_.contains(id) || worker.over || !worker.machine) continue;
      if (!worker.left.empty() || (worker.waiting && worker.machine->ready())) able.push_back(id);
    }
    if (able.empty()) return false;
    const WorkerId id = able[random_() % able.size()];
    LocalWorker& worker = *workers_[id];
    Outbox out;
    if (worker.left.empty()) {
      worker.machine->begin_step();
      worker.waiting = false;
      worker.left = {2, 1, 0};
      expect_within_bound(worker.machine->step());
      const float goal = target(id, worker.machine->step());
      for (size_t i = 0; i < worker.gradient->size(); ++i)
        worker.gradient->data()[i] = worker.parameters->data()[i] - goal;
      // The parameters are not needed any more, as with a device that has its own copy.
      if (!asynchronous_ && random_() % 2 == 0) worker.machine->pull_ahead(out);
    }
    const uint32_t tensor = worker.left.front();
    worker.left.pop_front();
    const Step step = worker.machine->step();
    if (worker.machine->wanted(step)) worker.machine->offer(tensor, 1 + id, out);
    if (worker.left.empty()) {
      worker.next = step + 1;
      send(static_cast<int>(Role::kWorker), id,
           {to_coordinator(),
            control_frame(StepReport{.step = step, .samples = 1 + id, .compute = Duration(7)})});
      worker.waiting = true;
      worker.machine->begin_pull(now_, out);
    }
    send_all(static_cast<int>(Role::kWorker), id, std::move(out));
    return true;
  }

  // With a bound on staleness no worker begins a gradient further ahead of the slowest worker.
  void expect_within_bound(Step step) {
    if (!asynchronous_ || !asynchronous_->staleness || revived_) return;
    for (WorkerId id = 0; id < workers_.size(); ++id) {
      if (dead_.contains(id)) continue;
      EXPECT_LE(step, workers_[id]->next + *asynchronous_->staleness) << "worker " << id;
    }
  }

  void kill(WorkerId id) {
    if (!dead_.insert(id).second) return;
    // Its connections end, and messages under way on them are lost.
    for (auto& [key, parcels] : lanes_) {
      const auto& [from_role, from, to_role, to, lane] = key;
      const int role = static_cast<int>(Role::kWorker);
      if ((from_role == role && from == id) || (to_role == role && to == id)) parcels.clear();
    }
    unnoticed_.insert({kCoordinator, id});
    post(-1, id, to_coordinator(), [this, id] {
      unnoticed_.erase({kCoordinator, id});
      with_coordinator([&](CoordinatorOutput& out) {
        coordinator_.on_lost(Role::kWorker, id, disconnected("killed"), now_, out);
      });
    });
    for (ShardId shard = 0; shard < shards_.size(); ++shard) {
      unnoticed_.insert({static_cast<int>(shard), id});
      post(-1, id, {Role::kShard, shard, Lane::kControl}, [this, id, shard] {
        unnoticed_.erase({static_cast<int>(shard), id});
        if (!shards_[shard]->has_plan()) return;
        Outbox out;
        shards_[shard]->on_lost(id, now_, out);
        send_all(static_cast<int>(Role::kShard), shard, std::move(out));
      });
    }
  }

  void revive(WorkerId id) {
    if (dead_.erase(id) == 0) return;
    revived_ = true;
    LocalWorker& worker = *workers_[id];
    worker.machine.reset();
    worker.shards_connected = 0;
    worker.waiting = false;
    worker.left.clear();
    worker.next = 0;
    std::fill_n(worker.parameters->data(), worker.parameters->size(), 0.0f);
    post_hello({.role = Role::kWorker, .index = id, .tensors = layout_.tensors()});
  }

  static constexpr int kCoordinator = -1;  // beside the shards 0, 1, ...

  std::mt19937_64 random_;
  TimePoint now_{};
  const Step steps_;
  const std::optional<Asynchronous> asynchronous_;
  const Layout layout_;
  Coordinator coordinator_;
  BlockPlan blocks_;
  std::vector<std::unique_ptr<Shard>> shards_;
  std::vector<std::unique_ptr<LocalWorker>> workers_;
  std::map<LaneKey, std::deque<Parcel>> lanes_;
  std::map<size_t, WorkerId> deaths_;
  std::map<size_t, WorkerId> revivals_;
  std::set<WorkerId> dead_;
  bool revived_ = false;  // a worker was revived
  std::set<std::pair<int, WorkerId>>
      unnoticed_;  // {server, worker}: losses that the server has not noticed
  std::map<std::pair<BlockId, Step>, std::set<WorkerId>> accepted_;
  std::map<BlockId, std::vector<float>> applied_;  // accepted gradients, in order
  std::vector<EventRecord> events_;
  std::vector<StepSummary> summaries_;
  std::optional<RunEnd> end_;
};

}  // namespace drover::testing_support
