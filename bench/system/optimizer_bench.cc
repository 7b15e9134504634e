// system_bench optimizer: a shard's update, compared with the speed of memory.
//
// One round updates all parameters once, block by block as a shard does: each block has the sum of
// two gradients; one pass computes their mean (and the sum of its squares, for the noise scale) and
// writes the new parameters to another buffer. The floor moves the same floats through memory with
// a plain loop (floors.h), over its own streams of equal length: through each at full length, in
// blocks as a shard has them, and through blocks a few cache lines of every stream at a time. The
// fastest of the three in a round is the floor.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>
#include <limits>
#include <utility>
#include <vector>

#include "cli/run_report.h"
#include "core/float_buffer.h"
#include "core/layout.h"
#include "core/training.h"
#include "node/clock.h"
#include "shard/gradient_sum.h"
#include "shard/optimizer.h"
#include "system/benches.h"
#include "system/floors.h"
#include "system/rounds.h"

namespace drover {
namespace {

constexpr uint64_t kMostMegabytes = 4096;
constexpr uint64_t kMostRounds = 1000;
constexpr uint32_t kSamples = 32;
constexpr double kRate = 1e-3;

void fill(std::span<float> values) {
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = 1e-3F * static_cast<float>(i % 1000) + 1e-3F;
}

struct HostedBlock {
  HostedBlock(const OptimizerSettings& settings, BufferPool& pool, size_t length)
      : sum(SumOrder::kArrival, length, &pool),
        optimizer(settings, TensorKind::kTrained, length),
        now(pool.take(length)),
        next(pool.take(length)) {
    fill(now->span());
    optimizer.start(now->span());
    for (WorkerId worker = 0; worker < 2; ++worker) {
      SharedBuffer gradient = pool.take(length);
      fill(gradient->span());
      sum.add(worker, kSamples, std::move(gradient));
    }
  }

  void update() {
    optimizer.apply(sum, kRate, now->span(), next->span());
    std::swap(now, next);
  }

  GradientSum sum;
  BlockOptimizer optimizer;
  SharedBuffer now;
  SharedBuffer next;
};

// Streams of the floor, with the given length.
class FloorStreams {
 public:
  FloorStreams(OptimizerKind kind, size_t floats)
      : sum_(floats),
        parameters_{FloatBuffer(floats), FloatBuffer(floats)},
        momentum_(kind == OptimizerKind::kSgd || kind == OptimizerKind::kRmsProp ? 0 : floats),
        squares_(kind == OptimizerKind::kRmsProp || kind == OptimizerKind::kAdam ||
                         kind == OptimizerKind::kAdamW
                     ? floats
                     : 0) {
    for (FloatBuffer* each : {&sum_, &parameters_[0], &parameters_[1], &momentum_, &squares_})
      fill(each->span());
  }

  size_t moved() { return floats_moved(streams()); }

  // In pieces of this number of floats, a piece of all streams before the next.
  void move(size_t piece) {
    const UpdateStreams all = streams();
    const size_t size = all.next.size();
    const auto part = [&](auto stream, size_t begin) {
      return stream.empty() ? stream : stream.subspan(begin, std::min(piece, size - begin));
    };
    for (size_t begin = 0; begin < size; begin += piece) {
      touch({.sum = part(all.sum, begin),
             .now = part(all.now, begin),
             .next = part(all.next, begin),
             .momentum = part(all.momentum, begin),
             .squares = part(all.squares, begin)});
    }
    std::swap(parameters_[0], parameters_[1]);
  }

 private:
  UpdateStreams streams() {
    return {.sum = sum_.span(),
            .now = parameters_[0].span(),
            .next = parameters_[1].span(),
            .momentum = momentum_.span(),
            .squares = squares_.span()};
  }

  FloatBuffer sum_;
  std::array<FloatBuffer, 2> parameters_;
  FloatBuffer momentum_;
  FloatBuffer squares_;
};

// The orders of traversal; which one is the fastest depends on the machine.
constexpr std::array<const char*, 3> kWays = {"long", "blocks", "chunks"};

class OptimizerBench {
 public:
  OptimizerBench(const OptimizerSettings& settings, size_t floats) : long_(settings.kind, floats) {
    for (size_t begin = 0; begin < floats; begin += kBlockFloats) {
      const size_t size = std::min<size_t>(kBlockFloats, floats - begin);
      blocks_.emplace_back(settings, pool_, size);
      short_.emplace_back(settings.kind, size);
    }
  }

  double bytes() { return static_cast<double>(long_.moved() * sizeof(float)); }

  void update() {
    for (HostedBlock& block : blocks_) block.update();
  }
  void move(size_t way) {
    if (way == 0) return long_.move(std::numeric_limits<size_t>::max());
    for (FloorStreams& each : short_) each.move(way == 1 ? kBlockFloats : kChunkFloats);
  }

 private:
  static constexpr size_t kChunkFloats = 256;

  BufferPool pool_;
  std::vector<HostedBlock> blocks_;
  FloorStreams long_;
  std::vector<FloorStreams> short_;
};

Status check(const OptimizerBenchOptions& options) {
  if (const Status status = check_range("--mb", options.mb, 1, kMostMegabytes); !status)
    return status;
  return check_range("--rounds", options.rounds, 1, kMostRounds);
}

}  // namespace

int bench_optimizer_command(const OptimizerBenchOptions& options) {
  if (const Status status = check(options); !status) return fail(status.error(), kExitUsage);
  const Result<OptimizerKind> kind = parse_optimizer(options.kind);
  if (!kind) return fail(invalid_input("--kind: " + kind.error().message), kExitUsage);

  const size_t floats = options.mb * 1'000'000 / sizeof(float);
  OptimizerBench bench({.kind = kind.value()}, floats);
  Figure figure{.what = options.kind,
                .unit = "gb_per_s",
                .values = {},
                .beside = {{"floor", {}}},
                .further = {}};
  const auto timed = [&](auto&& work) {
    const TimePoint began = clock_now();
    work();
    return gb_per_s(bench.bytes(), clock_now() - began);
  };
  std::array<std::vector<double>, kWays.size()> ways;
  const auto move = [&](size_t way) { ways[way].push_back(timed([&] { bench.move(way); })); };
  const std::array<std::function<void()>, 4> all = {
      [&] { figure.values.push_back(timed([&] { bench.update(); })); }, [&] { move(0); },
      [&] { move(1); }, [&] { move(2); }};
  take_turns(0, all);  // a first round for the page faults
  figure.values.clear();
  for (auto& way : ways) way.clear();
  for (uint32_t round = 0; round < options.rounds; ++round) {
    take_turns(round, all);
    figure.beside[0].values.push_back(std::max({ways[0].back(), ways[1].back(), ways[2].back()}));
  }
  for (size_t way = 0; way < kWays.size(); ++way)
    figure.further[fmt::format("floor_{}_gb_per_s", kWays[way])] = spread_of(ways[way]).median;

  print({.title = fmt::format("An update of {} MB of parameters with {}, bytes read and written "
                              "once each, on one core; the floor is the best of three plain "
                              "loops over as many streams:",
                              options.mb, options.kind),
         .bench = "optimizer",
         .settings = {{"kind", options.kind},
                      {"mb", options.mb},
                      {"rounds", options.rounds},
                      {"block_floats", kBlockFloats},
                      {"streams", bench.bytes() / static_cast<double>(floats * sizeof(float))}},
         .figures = {figure},
         .notes = {}},
        options.json);
  return 0;
}

}  // namespace drover
