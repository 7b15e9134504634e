// Compares the shard's loops with the speed of memory: with memcpy of the same size.
//
// bytes_per_second counts the bytes that must be read and written once, without the cache lines
// that a store fetches first. Sizes are those of LeNet-5, of a small MLP, and of ResNet-50; the
// middle one fits into a third-level cache, the last into none.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "core/float_buffer.h"
#include "core/training.h"
#include "shard/gradient_sum.h"
#include "shard/kernels.h"
#include "shard/optimizer.h"

namespace drover {
namespace {

constexpr int64_t kSizes[] = {61'706, 1'663'370, 25'600'000};

void fill(std::span<float> values) {
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = 1e-3F * static_cast<float>(i % 1000) + 1e-3F;
}

void count_floats(benchmark::State& state, size_t floats_an_iteration) {
  state.SetBytesProcessed(state.iterations() *
                          static_cast<int64_t>(floats_an_iteration * sizeof(float)));
}

void memcpy_floats(benchmark::State& state) {
  const auto size = static_cast<size_t>(state.range(0));
  FloatBuffer from(size);
  FloatBuffer to(size);
  fill(from.span());
  while (state.KeepRunning()) {
    std::memcpy(to.data(), from.data(), size * sizeof(float));
    benchmark::ClobberMemory();
  }
  count_floats(state, 2 * size);
}

void all_finite_floats(benchmark::State& state) {
  const auto size = static_cast<size_t>(state.range(0));
  FloatBuffer values(size);
  fill(values.span());
  while (state.KeepRunning()) benchmark::DoNotOptimize(all_finite(values.span()));
  count_floats(state, size);
}

void sum_of_squares_floats(benchmark::State& state) {
  const auto size = static_cast<size_t>(state.range(0));
  FloatBuffer values(size);
  fill(values.span());
  while (state.KeepRunning()) benchmark::DoNotOptimize(sum_of_squares(values.span()));
  count_floats(state, size);
}

void add_scaled_floats(benchmark::State& state) {
  const auto size = static_cast<size_t>(state.range(0));
  FloatBuffer sum(size);
  FloatBuffer in(size);
  fill(in.span());
  while (state.KeepRunning()) {
    add_scaled(sum.span(), in.span(), 1e-3F);
    benchmark::ClobberMemory();
  }
  count_floats(state, 3 * size);
}

// Reads and writes per element of the update: parameters in and out, and the optimiser's state.
size_t update_traffic(const OptimizerSettings& settings) {
  size_t floats = 2;
  switch (settings.kind) {
    case OptimizerKind::kSgd:
      break;
    case OptimizerKind::kMomentum:
    case OptimizerKind::kNesterov:
    case OptimizerKind::kRmsProp:
      floats += 2;
      break;
    case OptimizerKind::kAdam:
    case OptimizerKind::kAdamW:
      floats += 4;
      break;
  }
  return floats + (settings.ema_decay > 0.0 ? 2 : 0);
}

// The pass that closes a block, with two gradients: the sum, and the last one.
void closing_pass(benchmark::State& state, const OptimizerSettings& settings) {
  const auto size = static_cast<size_t>(state.range(0));
  FloatBuffer now(size);
  FloatBuffer next(size);
  fill(now.span());
  BlockOptimizer optimizer(settings, TensorKind::kTrained, size);
  optimizer.start(now.span());
  BufferPool pool;
  GradientSum sum(SumOrder::kArrival, size, &pool);
  for (WorkerId worker = 0; worker < 2; ++worker) {
    SharedBuffer gradient = pool.take(size);
    fill(gradient->span());
    sum.add(worker, 16, std::move(gradient));
  }
  while (state.KeepRunning()) {
    optimizer.apply(sum, 1e-3, now.span(), next.span());
    benchmark::ClobberMemory();
  }
  count_floats(state, size * (2 + update_traffic(settings)));
}

// A whole step of one shard with a 4 MB gradient in blocks: check, add and close, for this number
// of workers. Gradients come block by block, as they do over the network.
void aggregate(benchmark::State& state, SumOrder order) {
  constexpr size_t total = 1U << 20;
  constexpr size_t block_floats = kBlockFloats;
  constexpr size_t blocks = total / block_floats;
  const auto workers = static_cast<WorkerId>(state.range(0));
  const OptimizerSettings settings{.kind = OptimizerKind::kMomentum};
  FloatBuffer gradient(total);
  FloatBuffer now(total);
  FloatBuffer next(total);
  fill(gradient.span());
  BufferPool pool;
  std::vector<GradientSum> sums;
  std::vector<BlockOptimizer> optimizers;
  for (size_t block = 0; block < blocks; ++block) {
    sums.emplace_back(order, block_floats, &pool);
    optimizers.emplace_back(settings, TensorKind::kTrained, block_floats);
    optimizers.back().start(now.span().subspan(block * block_floats, block_floats));
  }
  // Copies arrivals outside of the timed section, because receiving is network time.
  std::vector<SharedBuffer> arrivals(workers * blocks);
  while (state.KeepRunning()) {
    state.PauseTiming();
    for (GradientSum& sum : sums) sum.reset();
    for (size_t i = 0; i < arrivals.size(); ++i) {
      arrivals[i] = pool.take(block_floats);
      std::copy_n(gradient.data() + i % blocks * block_floats, block_floats, arrivals[i]->data());
    }
    state.ResumeTiming();
    for (WorkerId worker = 0; worker < workers; ++worker) {
      for (size_t block = 0; block < blocks; ++block) {
        SharedBuffer& arrival = arrivals[worker * blocks + block];
        sums[block].add(worker, 16, std::move(arrival));
      }
    }
    for (size_t block = 0; block < blocks; ++block) {
      optimizers[block].apply(sums[block], 1e-3,
                              now.span().subspan(block * block_floats, block_floats),
                              next.span().subspan(block * block_floats, block_floats));
    }
    benchmark::ClobberMemory();
  }
  count_floats(state,
               workers * total);  // received gradient bytes, to compare with a network's speed
}

void each_size(benchmark::internal::Benchmark* bench) {
  for (const int64_t size : kSizes) bench->Arg(size);
}

BENCHMARK(memcpy_floats)->Apply(each_size);
BENCHMARK(all_finite_floats)->Apply(each_size);
BENCHMARK(sum_of_squares_floats)->Apply(each_size);
BENCHMARK(add_scaled_floats)->Apply(each_size);

#define CLOSING_PASS(name, ...) \
  BENCHMARK_CAPTURE(closing_pass, name, OptimizerSettings __VA_ARGS__)->Apply(each_size)
CLOSING_PASS(sgd, {.kind = OptimizerKind::kSgd});
CLOSING_PASS(momentum, {.kind = OptimizerKind::kMomentum});
CLOSING_PASS(nesterov, {.kind = OptimizerKind::kNesterov});
CLOSING_PASS(rmsprop, {.kind = OptimizerKind::kRmsProp});
CLOSING_PASS(adam, {.kind = OptimizerKind::kAdam});
CLOSING_PASS(adamw, {.kind = OptimizerKind::kAdamW, .weight_decay = 0.01});
CLOSING_PASS(momentum_with_average, {.kind = OptimizerKind::kMomentum, .ema_decay = 0.999});

BENCHMARK_CAPTURE(aggregate, by_arrival, SumOrder::kArrival)->Arg(4)->Arg(32)->UseRealTime();
BENCHMARK_CAPTURE(aggregate, by_worker, SumOrder::kWorker)->Arg(4)->Arg(32)->UseRealTime();

}  // namespace
}  // namespace drover
