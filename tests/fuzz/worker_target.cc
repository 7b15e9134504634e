// A worker with any input that its session passes on: welcomes, arbitrary frames of shards,
// arbitrary orders of the coordinator, while its loop requests, computes and offers. It never
// computes on a mixture of versions, and its steps only grow.
#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "fuzz/choices.h"
#include "fuzz/promise.h"
#include "fuzz/targets.h"
#include "wire/limits.h"
#include "worker/sample_share.h"
#include "worker/welcome_check.h"
#include "worker/worker_machine.h"

namespace drover::fuzz {
namespace {

constexpr size_t kEventsMax = 400;
constexpr WorkerId kWorker = 1;

const Layout& layout() {
  static const Layout made({{"a", 8}, {"b", 20}, {"c", 5, TensorKind::kAveraged}});
  return made;
}

// A coordinator's message, or any other that can be decoded.
std::optional<Welcome> any_welcome(Choices& choices) {
  if (choices.below(8) == 0) {
    auto read = decode_control(choices.take(choices.below(256)));
    if (!read || !std::holds_alternative<Welcome>(read.value())) return std::nullopt;
    return std::get<Welcome>(std::move(read).value());
  }
  const uint32_t shards = 1 + choices.below(3);
  Welcome welcome{.shards = std::vector<std::string>(shards, "a shard"),
                  .blocks = plan_blocks(layout(), shards, 8),
                  .steps = 100,
                  .asynchronous = choices.below(4) == 0,
                  .workers = 2 + choices.below(3),
                  .batch = 1 + choices.below(16)};
  welcome.partial_pull = !welcome.asynchronous && choices.below(3) == 0;
  welcome.pull_share = welcome.partial_pull ? (1 + choices.below(8)) / 8.0 : 1.0;
  welcome.pull_grace = choices.flip() ? choices.pause() : Duration{};
  return welcome;
}

// The training loop's side of a session and the connections' side: see LiveSession and Member.
class WorkerRun {
 public:
  WorkerRun(Choices& choices, const Welcome& welcome)
      : choices_(choices),
        welcome_(welcome),
        mixed_(welcome.asynchronous || welcome.partial_pull),
        share_(kWorker, welcome.workers, welcome.batch),
        machine_(kWorker, welcome.blocks, parameters_, gradients_[0],
                 welcome.asynchronous ? PullKind::kMixed : PullKind::kTogether,
                 welcome.partial_pull
                     ? std::optional(PartialPull::Settings{welcome.pull_share, welcome.pull_grace})
                     : std::nullopt),
        average_(kWorker, welcome.blocks, PullKind::kSnapshot) {}

  // Ends when a server breaks the protocol, as the connection does.
  void run() {
    for (size_t events = 0; events < kEventsMax && !choices_.over(); ++events) {
      const bool going = choices_.flip() ? work() : hear();
      read_outbox();
      if (!going) return;
    }
  }

 private:
  bool work() {
    now_ += choices_.pause();
    switch (doing_) {
      case Doing::kNothing:
        machine_.begin_pull(now_, out_);
        doing_ = Doing::kAsking;
        break;
      case Doing::kAsking:
        machine_.on_time(now_);
        if (!machine_.ready()) break;
        begin_step();
        break;
      case Doing::kComputing:
        if (tensor_ == layout().tensors().size()) {
          StepReport report;
          machine_.describe_pull(now_, report);
          promise(report.fresh <= report.blocks, "no more is fresh than there is");
          doing_ = Doing::kNothing;
        } else if (machine_.wanted(machine_.step())) {
          machine_.offer(tensor_++, 1 + choices_.below(8), out_);
        } else {
          doing_ = Doing::kNothing;
        }
        break;
    }
    return true;
  }

  void begin_step() {
    machine_.begin_step(gradients_[welcome_.partial_pull ? ++begun_ % 2 : 0]);
    doing_ = Doing::kComputing;
    tensor_ = 0;
    const Step step = machine_.step();
    promise(!last_ || step > *last_, "a worker goes only forward");
    last_ = step;
    for (const Block& block : welcome_.blocks.blocks) {
      const float held = parameters_->data()[block.offset];
      promise(mixed_ || held == static_cast<float>(step), "all parameters are of one version");
    }
    promise(welcome_.batch == 0 || share_.batch_of(step).count > 0, "every step has samples");
    if (!mixed_ && choices_.below(4) == 0) machine_.pull_ahead(out_);
  }

  bool hear() {
    const uint32_t choice = choices_.below(16);
    if (choice == 0) machine_.on_stop(choices_.around(last_.value_or(0)));
    if (choice == 1) {
      const PullShare share{choices_.around(last_.value_or(0)), (1 + choices_.below(8)) / 8.0};
      machine_.on_pull_share(share);
    }
    if (choice == 2) {
      const uint32_t count = 1 + choices_.below(8);
      const uint64_t first = choices_.below(32);
      share_.on_share({choices_.around(last_.value_or(0)), first, count, first + count});
    }
    if (choice == 3) machine_.on_want_initial(any_shard(), out_);
    if (choice == 4) average_.begin(choices_.below(8), out_);
    return choice < 5 || receive(any_shard());
  }

  ShardId any_shard() { return choices_.below(static_cast<uint32_t>(welcome_.shards.size())); }

  FrameHeader any_frame(ShardId shard) {
    constexpr std::array kTypes = {
        FrameType::kParameters, FrameType::kGrant, FrameType::kAnswer, FrameType::kParameters,
        FrameType::kParameters, FrameType::kStop,  FrameType::kGone,   FrameType::kPull};
    FrameHeader header;
    header.type = kTypes[choices_.below(kTypes.size())];
    header.block = choices_.below(static_cast<uint32_t>(welcome_.blocks.blocks.size()) + 1);
    if (choices_.below(4) == 0) header.flags = static_cast<uint16_t>(choices_.below(8));
    const FrameHeader& pull = pulls_[{shard, (header.flags & kSnapshotFlag) != 0}];
    const bool serves = header.type == FrameType::kParameters || header.type == FrameType::kGone;
    header.step = choices_.around(serves ? pull.step : last_.value_or(0));
    header.version = choices_.around(pull.version);
    header.answer = static_cast<Answer>(choices_.below(4));
    if (header.type != FrameType::kParameters || (header.flags & kInPlaceFlag) != 0) return header;
    if (header.block < welcome_.blocks.blocks.size())
      header.length = welcome_.blocks.blocks[header.block].length * uint32_t{sizeof(float)};
    if (choices_.below(16) == 0) header.length = choices_.any<uint16_t>();
    return header;
  }

  bool receive(ShardId shard) {
    const auto read = decode_header(encode_header(any_frame(shard)));
    if (!read) return false;
    const FrameHeader& header = read.value();
    const bool in_place =
        header.type == FrameType::kParameters && (header.flags & kInPlaceFlag) != 0;
    if ((header.length > 0 || in_place) && !take_payload(shard, header)) return false;
    if ((header.flags & kSnapshotFlag) == 0 && header.type != FrameType::kGone)
      return machine_.on_frame(shard, header, now_, out_).ok();
    if (header.block >= welcome_.blocks.blocks.size()) return false;
    if (!average_.expects(header)) return true;
    if (header.type == FrameType::kGone) average_.on_gone(header, out_);
    if (header.type == FrameType::kParameters) average_.on_parameters(header, out_);
    return true;
  }

  // The parameters of a version are written as its number.
  bool take_payload(ShardId shard, const FrameHeader& header) {
    const auto block = machine_.destination(shard, header);
    if (!block) return false;
    if ((header.flags & kSnapshotFlag) != 0 || !machine_.expects(header)) return true;
    promise(mixed_ || ahead_or_asking(), "parameters that are computed on are not overwritten");
    const SharedBuffer& into = machine_.begin_receiving(header);
    std::ranges::fill(into->span().subspan(block.value().offset, block.value().length),
                      static_cast<float>(header.version));
    return true;
  }
  bool ahead_or_asking() const { return doing_ == Doing::kAsking || machine_.step() == *last_; }

  void read_outbox() {
    for (const Outgoing& message : std::exchange(out_, {})) {
      promise(message.to.role == Role::kShard && message.to.index < welcome_.blocks.shards,
              "frames go to shards");
      const FrameHeader& header = message.frame.header;
      if (header.type == FrameType::kPull)
        pulls_[{message.to.index, (header.flags & kSnapshotFlag) != 0}] = header;
      if (const auto* floats = std::get_if<FloatSlice>(&message.frame.payload)) {
        const Block& block = welcome_.blocks.blocks[header.block];
        promise(floats->offset == block.offset && floats->length == block.length,
                "a block is sent whole");
        promise(floats->offset + floats->length <= floats->buffer->size(), "and from its buffer");
      }
    }
  }

  enum class Doing : uint8_t { kNothing, kAsking, kComputing };

  Choices& choices_;
  const Welcome welcome_;
  const bool mixed_;
  const SharedBuffer parameters_ = std::make_shared<FloatBuffer>(layout().buffer_size());
  const std::array<ConstBuffer, 2> gradients_ = {
      std::make_shared<FloatBuffer>(layout().buffer_size()),
      std::make_shared<FloatBuffer>(layout().buffer_size())};
  SampleShare share_;
  WorkerMachine machine_;
  ParameterPull average_;
  Outbox out_;
  TimePoint now_{};
  Doing doing_ = Doing::kNothing;
  uint32_t tensor_ = 0;
  uint32_t begun_ = 0;
  std::optional<Step> last_;
  std::map<std::pair<ShardId, bool>, FrameHeader> pulls_;
};

}  // namespace

void worker(Bytes input) {
  Choices choices(input);
  const auto welcome = any_welcome(choices);
  if (!welcome || !check_welcome(*welcome, layout(), kWorker)) return;
  WorkerRun(choices, *welcome).run();
}

}  // namespace drover::fuzz
