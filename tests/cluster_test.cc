// The whole protocol without a network: coordinator, shards and workers as state machines, joined
// by queues that a seeded scheduler delivers from in random order. Whatever the order, training
// must equal plain SGD, and the death of workers must neither hang nor spoil it.
#include <gtest/gtest.h>

#include <cmath>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>

#include "server/coordinator.h"
#include "server/shard.h"
#include "worker/worker_machine.h"

namespace drover {
namespace {

// The task: pull parameters p towards a point that depends on worker and step; gradient = p -
// target.
float target(WorkerId worker, Step step) {
  return static_cast<float>((worker * 7 + step * 3) % 11) - 5.0f;
}

class Cluster {
 public:
  Cluster(uint64_t seed, uint32_t workers, uint32_t shards, Step steps, bool deterministic)
      : random_(seed),
        steps_(steps),
        layout_({{"a", 9'000, TensorKind::kTrained},
                 {"b", 33, TensorKind::kTrained},
                 {"c", 5'000, TensorKind::kTrained}}),
        coordinator_({.workers = workers,
                      .shards = shards,
                      .steps = steps,
                      .deterministic = deterministic,
                      .evaluator = false,
                      .schedule = {.base = 0.1}},
                     now_) {
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

  // Delivers until nothing is left to do. Returns how the run ended, if it did.
  std::optional<RunEnd> run() {
    for (size_t delivery = 0; delivery < 3'000'000; ++delivery) {
      if (const auto death = deaths_.find(delivery); death != deaths_.end()) kill(death->second);
      now_ += Duration(1000);
      if (!deliver_one() && !compute_one()) break;
    }
    return end_;
  }

  // The final parameters, as a late puller would get them: block by block from the shards.
  std::vector<float> parameters() {
    std::vector<float> all(layout_.buffer_size(), 0.0f);
    for (auto& shard : shards_) {
      Outbox out;
      EXPECT_TRUE(
          shard->on_frame(0, {.type = FrameType::kPull, .version = steps_}, nullptr, now_, out)
              .ok());
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

  const Layout& layout() const { return layout_; }
  const std::vector<StepStory>& stories() const { return stories_; }
  const std::set<WorkerId>& dead() const { return dead_; }

 private:
  struct LocalWorker {
    SharedBuffer parameters;
    SharedBuffer gradient;
    std::unique_ptr<WorkerMachine> machine;
    size_t shards_connected = 0;
    bool waiting = false;       // for parameters
    std::deque<uint32_t> left;  // tensors of the step that are still to be computed
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
      with_coordinator([&](CoordinatorOutput& out) {
        const Status admitted = coordinator_.on_hello(hello, now_, out);
        EXPECT_TRUE(admitted.ok()) << admitted.error().message;
      });
    });
  }

  template <typename Work>
  void with_coordinator(Work&& work) {
    CoordinatorOutput out;
    work(out);
    for (Outgoing& message : out.messages) send(0, 0, std::move(message));
    for (Happening& happening : out.happenings) {
      if (auto* story = std::get_if<StepStory>(&happening)) stories_.push_back(*story);
      if (auto* end = std::get_if<RunEnd>(&happening)) end_ = *end;
    }
  }

  void send_all(int from_role, uint32_t from, Outbox out) {
    for (Outgoing& message : out) send(from_role, from, std::move(message));
  }

  void send(int from_role, uint32_t from, Outgoing message) {
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
        worker.machine = std::make_unique<WorkerMachine>(id, welcome->blocks, worker.parameters,
                                                         worker.gradient);
        for (ShardId shard = 0; shard < shards_.size(); ++shard) {
          // Connecting is a message like any other.
          post(static_cast<int>(Role::kWorker), id, {Role::kShard, shard, Lane::kControl},
               [this, id, shard] {
                 if (dead_.contains(id)) return;
                 if (!shards_[shard]->has_plan()) {
                   return post(static_cast<int>(Role::kWorker), id,
                               {Role::kShard, shard, Lane::kControl},
                               [this, id, shard] { join(id, shard); });
                 }
                 join(id, shard);
               });
        }
      }
    } else if (control && std::holds_alternative<Welcome>(*control)) {
      if (++worker.shards_connected == shards_.size()) {
        send(static_cast<int>(Role::kWorker), id, {to_coordinator(), control_frame(Ready{})});
        worker.waiting = true;
        worker.machine->begin_pull(out);
      }
    } else if (control && std::holds_alternative<WantInitial>(*control)) {
      worker.machine->on_want_initial(from, out);
    } else {
      if (!floats.empty()) {
        const auto block = worker.machine->destination(from, header);
        ASSERT_TRUE(block.ok()) << block.error().message;
        std::copy(floats.begin(), floats.end(), worker.parameters->data() + block.value().offset);
      }
      const Status status = worker.machine->on_frame(from, header, out);
      EXPECT_TRUE(status.ok()) << status.error().message;
    }
    send_all(static_cast<int>(Role::kWorker), id, std::move(out));
  }

  void join(WorkerId id, ShardId shard) {
    if (dead_.contains(id)) return;
    if (!shards_[shard]->has_plan()) {
      return post(static_cast<int>(Role::kWorker), id, {Role::kShard, shard, Lane::kControl},
                  [this, id, shard] { join(id, shard); });
    }
    Outbox out;
    shards_[shard]->on_joined(id, out);
    send_all(static_cast<int>(Role::kShard), shard, std::move(out));
  }

  // A random lane's first parcel.
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
      const float goal = target(id, worker.machine->step());
      for (size_t i = 0; i < worker.gradient->size(); ++i)
        worker.gradient->data()[i] = worker.parameters->data()[i] - goal;
    }
    const uint32_t tensor = worker.left.front();
    worker.left.pop_front();
    const Step step = worker.machine->step();
    if (worker.machine->wanted(step)) worker.machine->offer(tensor, 1 + id, out);
    if (worker.left.empty()) {
      send(static_cast<int>(Role::kWorker), id,
           {to_coordinator(),
            control_frame(StepReport{.step = step, .samples = 1 + id, .compute = Duration(7)})});
      worker.waiting = true;
      worker.machine->begin_pull(out);
    }
    send_all(static_cast<int>(Role::kWorker), id, std::move(out));
    return true;
  }

  void kill(WorkerId id) {
    if (!dead_.insert(id).second) return;
    // Its connections end after what it had already sent. (Half of what is under way is lost with
    // it.)
    for (auto& [key, parcels] : lanes_) {
      if (std::get<0>(key) == static_cast<int>(Role::kWorker) && std::get<1>(key) == id)
        parcels.clear();
    }
    post(-1, id, to_coordinator(), [this, id] {
      with_coordinator([&](CoordinatorOutput& out) {
        coordinator_.on_lost(Role::kWorker, id, "killed", now_, out);
      });
    });
    for (ShardId shard = 0; shard < shards_.size(); ++shard) {
      post(-1, id, {Role::kShard, shard, Lane::kControl}, [this, id, shard] {
        if (!shards_[shard]->has_plan()) return;
        Outbox out;
        shards_[shard]->on_lost(id, now_, out);
        send_all(static_cast<int>(Role::kShard), shard, std::move(out));
      });
    }
  }

  std::mt19937_64 random_;
  TimePoint now_{};
  const Step steps_;
  const Layout layout_;
  Coordinator coordinator_;
  BlockPlan blocks_;
  std::vector<std::unique_ptr<Shard>> shards_;
  std::vector<std::unique_ptr<LocalWorker>> workers_;
  std::map<LaneKey, std::deque<Parcel>> lanes_;
  std::map<size_t, WorkerId> deaths_;
  std::set<WorkerId> dead_;
  std::vector<StepStory> stories_;
  std::optional<RunEnd> end_;
};

// Plain SGD on one machine with the weighted mean of all workers' gradients.
float expected_parameter(uint32_t workers, Step steps) {
  double value = 0.0;
  for (Step step = 0; step < steps; ++step) {
    double gradient = 0.0;
    double samples = 0.0;
    for (WorkerId worker = 0; worker < workers; ++worker) {
      gradient += (1.0 + worker) * (value - static_cast<double>(target(worker, step)));
      samples += 1.0 + worker;
    }
    value -= 0.1 * gradient / samples;
  }
  return static_cast<float>(value);
}

TEST(Cluster, EqualsPlainSgdUnderAnyOrderOfMessages) {
  for (uint64_t seed = 0; seed < 40; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const auto workers = static_cast<uint32_t>(1 + seed % 5);
    const auto shards = static_cast<uint32_t>(1 + seed % 4);
    Cluster cluster(seed, workers, shards, 12, seed % 2 == 0);
    const auto end = cluster.run();
    ASSERT_TRUE(end) << "the run hangs";
    ASSERT_EQ(end->outcome, RunOutcome::kCompleted) << end->reason;
    ASSERT_EQ(cluster.stories().size(), 12u);
    for (const StepStory& story : cluster.stories()) {
      ASSERT_EQ(story.step.contributors, workers);
      ASSERT_EQ(story.step.samples, workers * (workers + 1) / 2);
      if (story.step.step + 1 == 12) continue;  // the run ends before its last reports are in
      for (const ArrivalRecord& arrival : story.arrivals) ASSERT_EQ(arrival.compute, Duration(7));
    }
    const float expected = expected_parameter(workers, 12);
    const auto parameters = cluster.parameters();
    for (size_t tensor = 0; tensor < cluster.layout().tensors().size(); ++tensor) {
      for (uint64_t i = 0; i < cluster.layout().tensors()[tensor].size; ++i) {
        ASSERT_NEAR(parameters[cluster.layout().offset(tensor) + i], expected, 1e-5f);
      }
    }
  }
}

TEST(Cluster, DeterministicRunsAgreeBitForBitUnderAnyOrder) {
  std::optional<std::vector<float>> first;
  for (uint64_t seed = 100; seed < 110; ++seed) {
    Cluster cluster(seed, 4, 2, 6, true);
    ASSERT_TRUE(cluster.run());
    const auto parameters = cluster.parameters();
    if (!first) first = parameters;
    ASSERT_EQ(parameters, *first) << "seed " << seed;
  }
}

TEST(Cluster, DeathOfWorkersNeverHangsTheRun) {
  for (uint64_t seed = 0; seed < 150; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    const auto workers = static_cast<uint32_t>(2 + random() % 4);
    Cluster cluster(seed, workers, static_cast<uint32_t>(1 + random() % 3), 8, random() % 2 == 0);
    // All but one may die, at any moment from before the greeting to after the end.
    const uint32_t deaths = static_cast<uint32_t>(1 + random() % (workers - 1));
    for (uint32_t i = 0; i < deaths; ++i)
      cluster.kill_at(random() % 1500, static_cast<WorkerId>(random() % (workers - 1)));
    const auto end = cluster.run();
    ASSERT_TRUE(end) << "the run hangs";
    ASSERT_EQ(end->outcome, RunOutcome::kCompleted) << end->reason;
    ASSERT_EQ(cluster.stories().size(), 8u);
    for (const float value : cluster.parameters()) ASSERT_TRUE(std::isfinite(value));
    for (const StepStory& story : cluster.stories()) ASSERT_GE(story.step.contributors + 0u, 1u);
  }
}

}  // namespace
}  // namespace drover
