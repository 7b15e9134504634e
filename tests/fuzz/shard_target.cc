// A shard with any input that its node passes on: arbitrary frames of workers that join and leave,
// decisions, time. Every push is answered once, versions only grow, published parameters never
// change, and memory is bounded.
#include <algorithm>
#include <array>
#include <atomic>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "fuzz/choices.h"
#include "fuzz/promise.h"
#include "fuzz/targets.h"
#include "shard/shard.h"
#include "wire/limits.h"

namespace drover::fuzz {
namespace {

constexpr ShardId kShard = 0;
constexpr size_t kEventsMax = 400;

// The memory that a worker shares with the shard; the worker may write to it at any time.
struct SharedGradient {
  std::atomic<uint64_t> word{0};
  std::vector<float> floats;
};

Plan make_plan(Choices& choices) {
  Plan plan;
  plan.workers = 1 + choices.below(4);
  plan.steps = 1 + choices.below(12);
  plan.learning.deterministic = choices.flip();
  plan.evaluate_every = choices.below(4);
  plan.learning.optimizer.kind = static_cast<OptimizerKind>(choices.below(6));
  plan.learning.optimizer.ema_decay = choices.flip() ? 0.5 : 0.0;
  plan.learning.schedule.rule = static_cast<RateRule>(choices.below(4));
  plan.full_samples = choices.below(100);
  plan.asynchronous = choices.below(4) == 0;
  if (plan.asynchronous && choices.flip()) plan.staleness = choices.below(5);
  plan.partial_pull = !plan.asynchronous && choices.below(3) == 0;
  if (!plan.asynchronous) plan.push_grace = choices.flip() ? choices.pause() : Duration{};
  plan.checkpoint_every = choices.below(4);
  plan.tensors = {{"a", 8}, {"b", 20}, {"c", 5, TensorKind::kAveraged}};
  plan.blocks = plan_blocks(Layout(plan.tensors), 2, 8);
  return plan;
}

class ShardRun {
 public:
  explicit ShardRun(Choices& choices)
      : choices_(choices), plan_(make_plan(choices)), shard_(kShard, 16 + 8 * choices.below(32)) {
    for (const Block& block : plan_.blocks.blocks) {
      if (block.shard == kShard) blocks_.push_back(block);
    }
    shard_.on_plan(plan_);
  }

  void run() {
    for (size_t events = 0; events < kEventsMax && !choices_.over(); ++events) {
      give_input();
      while (shard_.take_checkpoint()) {
      }
      keep_promises();
    }
    for (const auto& [values, copy] : published_)
      promise(std::ranges::equal(values->span(), copy), "published parameters never change");
  }

 private:
  void give_input() {
    const uint32_t choice = choices_.below(16);
    if (choice < 2) return join_or_leave();
    if (choice < 4) return decide();
    if (choice == 4) return let_time_pass();
    if (choice == 5) return shard_.set_window(choices_.below(256));
    if (connected_.empty()) return join_or_leave();
    const WorkerId worker = *std::next(connected_.begin(), choices_.below(4) % connected_.size());
    if (choice == 6) return send_rate(worker);
    if (choice == 7) return overwrite(worker);
    receive(worker);
  }

  // The node disconnects an earlier incarnation before it admits a worker again.
  void join_or_leave() {
    const uint32_t choice = choices_.below(8);
    const WorkerId worker = choice == 7 ? kEvaluator : choice % plan_.workers;
    if (connected_.contains(worker)) lose(worker);
    if (choices_.flip()) return;
    connected_.insert(worker);
    if (worker != kEvaluator && choices_.flip()) {
      memory_[worker] = std::make_shared<SharedGradient>();
      memory_[worker]->floats.resize(Layout(plan_.tensors).buffer_size());
    }
    shard_.on_joined(worker, out_);
    read_outbox();
  }

  void lose(WorkerId worker) {
    connected_.erase(worker);
    memory_.erase(worker);
    std::erase_if(unanswered_,
                  [&](const auto& entry) { return std::get<0>(entry.first) == worker; });
    shard_.on_lost(worker, now_, out_);
    read_outbox();
  }

  void decide() {
    Decision decision{.step = choices_.around(decided_),
                      .cutoff = choices_.below(6),
                      .time_limit = choices_.flip() ? choices_.pause() : Duration{},
                      .at_least = choices_.below(3),
                      .alive = {},
                      .report_every = choices_.below(3),
                      .noise_scale = static_cast<double>(choices_.below(8))};
    const uint32_t alive = choices_.any<uint8_t>();
    for (WorkerId worker = 0; worker < 5; ++worker) {
      if ((alive >> worker & 1) != 0) decision.alive.push_back(worker);
    }
    if (alive >= 224) decision.time_limit = Duration(kDurationMaxNs);
    if (!shard_.check_decision(decision)) return;
    shard_.on_decision(decision, now_, out_);
    decided_ = decision.step;
    read_outbox();
  }

  void let_time_pass() {
    now_ += choices_.pause();
    const auto wake = shard_.wake_at();
    if (wake && choices_.flip())
      now_ = std::max(now_, std::min(*wake, now_ + Duration(1'000'000'000)));
    shard_.on_time(now_, out_);
    read_outbox();
  }

  void send_rate(WorkerId worker) {
    if (!shard_.knows(worker)) return lose(worker);
    const LearningRate rate{.from = choices_.around(step_), .rate = choices_.below(8) / 8.0};
    if (!shard_.on_rate(worker, rate)) lose(worker);
  }

  void overwrite(WorkerId worker) {
    const auto memory = memory_.find(worker);
    if (memory == memory_.end()) return;
    ++memory->second->word;
    std::ranges::fill(memory->second->floats, number());
  }

  float number() {
    constexpr std::array<float, 4> kSpecial = {std::numeric_limits<float>::infinity(),
                                               std::numeric_limits<float>::quiet_NaN(),
                                               std::numeric_limits<float>::max(), 1e-45f};
    const uint32_t choice = choices_.any<uint8_t>();
    return choice < 252 ? static_cast<float>(choice) / 8.0f - 16.0f : kSpecial[choice - 252];
  }

  FrameHeader any_frame() {
    constexpr std::array kTypes = {FrameType::kOffer, FrameType::kBlock, FrameType::kPull,
                                   FrameType::kDone,  FrameType::kOffer, FrameType::kBlock,
                                   FrameType::kPull,  FrameType::kStop};
    FrameHeader header;
    header.type = kTypes[choices_.below(kTypes.size())];
    const uint32_t place = choices_.below(static_cast<uint32_t>(blocks_.size()) + 1);
    header.block = place < blocks_.size() ? blocks_[place].id : choices_.below(256);
    header.flags = static_cast<uint16_t>(choices_.below(8));
    const uint64_t near = versions_.contains(header.block) ? versions_[header.block] : step_;
    header.step = choices_.around(near);
    header.version = choices_.around(near);
    header.samples = choices_.below(64);
    header.place = choices_.below(8);
    if (choices_.below(8) == 0) header.number_type = static_cast<NumberType>(choices_.below(3));
    if (choices_.below(8) == 0) {
      header.length = choices_.any<uint16_t>();
    } else if (place < blocks_.size() && choices_.flip()) {
      header.length = static_cast<uint32_t>(blocks_[place].length * bytes_of(header.number_type));
    }
    return header;
  }

  // Handles a frame as ShardNode does.
  void receive(WorkerId worker) {
    const auto header = decode_header(encode_header(any_frame()));
    if (!header) return lose(worker);
    const auto floats = shard_.payload_floats(worker, header.value());
    if (!floats) return lose(worker);
    ConstBuffer payload;
    if (header.value().length > 0) {
      const SharedBuffer buffer = shard_.pool().take(floats.value());
      std::ranges::fill(buffer->span(), number());
      payload = buffer;
    }
    if ((header.value().flags & kInPlaceFlag) != 0) {
      const auto memory = memory_.find(worker);
      if (memory == memory_.end() || floats.value() == 0) return lose(worker);
      const Block& block = shard_.block(header.value().block);
      auto& shared = *memory->second;
      payload = std::make_shared<FloatBuffer>(shared.floats.data() + block.offset, block.length,
                                              memory->second, Stamp{&shared.word, shared.word});
    }
    const bool pushes =
        header.value().type == FrameType::kOffer || header.value().type == FrameType::kBlock;
    const Push push{worker, header.value().step, header.value().block};
    if (pushes) ++unanswered_[push];
    const Status taken = shard_.on_frame(worker, header.value(), std::move(payload), now_, out_);
    read_outbox();
    if (!taken) lose(worker);
  }

  void read_outbox() {
    for (const Outgoing& message : std::exchange(out_, {})) {
      if (message.to.role == Role::kCoordinator) {
        read_news(std::get<Control>(message.frame.payload));
        continue;
      }
      const WorkerId worker = message.to.role == Role::kEvaluator ? kEvaluator : message.to.index;
      const FrameHeader& header = message.frame.header;
      if (header.type == FrameType::kAnswer || header.type == FrameType::kGrant)
        on_answer(worker, header);
      if (header.type == FrameType::kAnswer) on_version(header.block, header.version);
      if (const auto* floats = std::get_if<FloatSlice>(&message.frame.payload)) {
        promise(connected_.contains(worker), "parameters go to connected workers");
        if ((header.flags & kSnapshotFlag) == 0) on_version(header.block, header.version);
        if (published_.size() < 64)
          published_.emplace_back(floats->buffer,
                                  std::vector<float>(floats->span().begin(), floats->span().end()));
      }
    }
  }

  // A grant consumes an offer: a block that is sent for it is another push.
  void on_answer(WorkerId worker, const FrameHeader& header) {
    if (!connected_.contains(worker)) return;
    const auto push = unanswered_.find({worker, header.step, header.block});
    promise(push != unanswered_.end() && push->second > 0, "no push is answered twice");
    if (--push->second == 0) unanswered_.erase(push);
  }

  void on_version(BlockId block, Version version) {
    promise(version >= versions_[block], "versions only grow");
    promise(version <= plan_.steps, "no version is beyond the last step");
    versions_[block] = version;
  }

  void read_news(const Control& message) {
    const auto* closed = std::get_if<StepClosed>(&message);
    if (closed == nullptr) return;
    promise(closed->step == step_, "steps close one after the other");
    promise(++step_ <= plan_.steps, "no step is beyond the last");
    promise(closed->elapsed >= Duration::zero(), "a step takes some time");
    for (size_t i = 0; i < closed->arrivals.size(); ++i) {
      promise(closed->arrivals[i].worker < plan_.workers, "only workers arrive");
      promise(i == 0 || closed->arrivals[i - 1].worker < closed->arrivals[i].worker,
              "no worker arrives twice");
    }
  }

  void keep_promises() {
    const size_t all = plan_.workers * blocks_.size();
    // Pulls of two kinds, early pushes, offers of 64 steps; steps that were open, with their late
    // workers; learning rates of 1,024 steps.
    const size_t most = all * (2 + 1 + kOffersOpenMax) + 2 * blocks_.size() +
                        (2 * plan_.workers + 3) * (64 + kDecidedAheadMax + kUndecidedMax) + 1'025;
    promise(shard_.pending() <= most, "memory is bounded");
    size_t open = 0;
    for (const auto& [push, times] : unanswered_) open += times;
    promise(open <= all * (kOffersOpenMax + 2), "every push is answered");
  }

  using Push = std::tuple<WorkerId, Step, BlockId>;

  Choices& choices_;
  const Plan plan_;
  Shard shard_;
  std::vector<Block> blocks_;
  Outbox out_;
  TimePoint now_{};
  Step decided_ = 0;
  Step step_ = 0;
  std::set<WorkerId> connected_;
  std::map<WorkerId, std::shared_ptr<SharedGradient>> memory_;
  std::map<BlockId, Version> versions_;
  std::map<Push, uint32_t> unanswered_;
  std::vector<std::pair<ConstBuffer, std::vector<float>>> published_;
};

}  // namespace

void shard(Bytes input) {
  Choices choices(input);
  ShardRun(choices).run();
}

}  // namespace drover::fuzz
