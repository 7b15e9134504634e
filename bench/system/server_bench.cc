// system_bench server: the speed at which a shard receives gradients and sends parameters.
//
// push: from the command to W workers to push one gradient each until the shard has summed them
// all, with offers, grants, blocks and answers. Its floor sums as many bytes in this process's own
// memory, with the same loop. Its second reference is a plain Asio server that reads 256 KB at a
// time and sums them (no offers, no checks, only the last answer), with shared memory over Unix
// sockets. publish: from the decision to close until the last worker has the new parameters in its
// own memory, including the update. Its floor is the memory traffic of the update, and then W
// processes that copy as many bytes at once.
//
// All figures are GB of gradients or parameters per second, W times the size of one.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "cli/run_report.h"
#include "core/block_share.h"
#include "core/float_buffer.h"
#include "core/layout.h"
#include "node/clock.h"
#include "shard/kernels.h"
#include "system/benches.h"
#include "system/floors.h"
#include "system/processes.h"
#include "system/push_task.h"
#include "system/rounds.h"
#include "system/server_cluster.h"
#include "wire/limits.h"

namespace drover {
namespace {

constexpr uint64_t kMostMegabytes = 1024;
constexpr uint64_t kMostBytes = uint64_t{16} << 30;  // of gradients in the memory of one process
constexpr uint64_t kMostWorkers = 1000;
constexpr uint64_t kMostRounds = 1000;
constexpr uint32_t kWarmUp = 2;

// The work of the shard, on gradients that are in memory already.
class PlainMemory {
 public:
  PlainMemory(uint32_t workers, size_t floats) : sum_(floats), now_(floats), next_(floats) {
    for (uint32_t worker = 0; worker < workers; ++worker) {
      gradients_.emplace_back(floats);
      for (size_t i = 0; i < floats; ++i) gradients_.back().data()[i] = gradient_value(worker, i);
    }
  }

  Duration sum() {
    const TimePoint began = clock_now();
    for (FloatBuffer& gradient : gradients_) {
      for (size_t begin = 0; begin < sum_.size(); begin += kBlockFloats) {
        const size_t size = std::min<size_t>(kBlockFloats, sum_.size() - begin);
        add_scaled(sum_.span().subspan(begin, size), gradient.span().subspan(begin, size), 1.0F);
      }
    }
    const Duration took = clock_now() - began;
    std::fill_n(sum_.data(), sum_.size(), 0.0F);
    return took;
  }

  Duration update() {
    const TimePoint began = clock_now();
    touch({.sum = sum_.span(),
           .now = now_.span(),
           .next = next_.span(),
           .momentum = {},
           .squares = {}});
    return clock_now() - began;
  }

 private:
  std::vector<FloatBuffer> gradients_;
  FloatBuffer sum_;
  FloatBuffer now_;
  FloatBuffer next_;
};

class ServerBench {
 public:
  ServerBench(ServerCluster& cluster, uint32_t workers, size_t floats)
      : cluster_(cluster),
        memory_(workers, floats),
        bytes_(static_cast<double>(workers) * static_cast<double>(floats * sizeof(float))) {}

  Result<std::vector<Figure>> run(uint32_t rounds) {
    for (uint32_t i = 0; i < kWarmUp; ++i) round(i);
    if (const Status good = check(); !good) return good.error();
    for (Figure* figure : {&push_, &publish_}) {
      figure->values.clear();
      for (Beside& beside : figure->beside) beside.values.clear();
    }
    push_again_ = plain_again_ = 0;
    for (uint32_t i = 0; i < rounds && status_; ++i) round(i);
    if (const Status good = check(); !good) return good.error();
    push_.further = {{"gbit_per_s", spread_of(push_.values).median * 8.0},
                     {"asio_gbit_per_s", spread_of(push_.beside[1].values).median * 8.0},
                     {"retransmits", push_again_},
                     {"asio_retransmits", plain_again_}};
    return std::vector<Figure>{push_, publish_};
  }

 private:
  void round(uint32_t number) {
    Duration copy{};
    Duration update{};
    const std::array<std::function<void()>, 4> all = {
        [&] {
          push_again_ += retransmits_of([&] {
            note(cluster_.push(), push_.values);
            if (status_) note(cluster_.publish(), publish_.values);
          });
        },
        [&] { push_.beside[0].values.push_back(gb_per_s(bytes_, memory_.sum())); },
        [&] {
          plain_again_ +=
              retransmits_of([&] { note(cluster_.plain_push(), push_.beside[1].values); });
        },
        [&] {
          const auto took = cluster_.copy();
          if (!took) return fail_with(took.error());
          copy = took.value();
          update = memory_.update();
        }};
    take_turns(number, all);
    if (status_) publish_.beside[0].values.push_back(gb_per_s(bytes_, copy + update));
  }

  // TCP segments that workers retransmitted meanwhile.
  template <typename Work>
  uint64_t retransmits_of(Work&& work) {
    const auto before = cluster_.retransmits();
    work();
    if (!status_) return 0;
    const auto after = cluster_.retransmits();
    for (const auto* each : {&before, &after}) {
      if (!*each) fail_with(each->error());
    }
    return status_ ? after.value() - before.value() : 0;
  }

  void note(const Result<Duration>& took, std::vector<double>& values) {
    if (!took) return fail_with(took.error());
    values.push_back(gb_per_s(bytes_, took.value()));
  }
  void fail_with(const Error& error) {
    if (status_) status_ = error;
  }

  Status check() {
    if (!status_) return status_;
    const auto wrong = cluster_.count_wrong();
    if (!wrong) return wrong.error();
    if (wrong.value() == 0) return done();
    return system_error(
        fmt::format("{} elements of the sums are wrong: the figures would mean nothing. This is a "
                    "bug; please report it",
                    wrong.value()));
  }

  ServerCluster& cluster_;
  PlainMemory memory_;
  const double bytes_;
  Status status_ = done();
  Figure push_{.what = "push",
               .unit = "gb_per_s",
               .values = {},
               .beside = {{"floor", {}}, {"asio", {}}},
               .further = {}};
  Figure publish_{.what = "publish",
                  .unit = "gb_per_s",
                  .values = {},
                  .beside = {{"floor", {}}},
                  .further = {}};
  uint64_t push_again_ = 0;
  uint64_t plain_again_ = 0;
};

Status check(const ServerBenchOptions& options, uint64_t bytes) {
  for (const Status& status :
       {check_range("--workers", options.workers, 1, kMostWorkers),
        check_range("--mb", options.mb, 1, kMostMegabytes),
        check_range("--rounds", options.rounds, 1, kMostRounds),
        check_range("--window", options.window, 1, uint64_t{1} << 40),
        check_range("--block-kb", options.block_kb, 0, kBlockBytesMax >> 10)}) {
    if (!status) return status;
  }
  if (bytes * options.workers <= kMostBytes) return done();
  return invalid_input(
      fmt::format("--mb: {} gradients of {} MB would take {} GB; take fewer of "
                  "either",
                  options.workers, bytes >> 20, bytes * options.workers >> 30));
}

}  // namespace

int bench_server_command(const ServerBenchOptions& options) {
  const uint64_t bytes = options.kb > 0 ? uint64_t{options.kb} << 10 : options.mb << 20;
  if (const Status status = check(options, bytes); !status) return fail(status.error(), kExitUsage);
  const bool share_memory = options.transport == "shm";
  const Result<SocketKind> kind = parse_socket_kind(share_memory ? "uds" : options.transport);
  if (!kind) return fail(kind.error(), kExitUsage);
  std::signal(SIGPIPE, SIG_IGN);
  const size_t floats = bytes / sizeof(float);
  const uint32_t block_floats =
      options.block_kb > 0 ? (options.block_kb << 10) / sizeof(float)
                           : block_floats_for(push_layout(floats), 1,
                                              share_memory ? kBlockFloatsInPlace : kBlockFloats);
  const auto cluster = ServerCluster::start({.sockets = kind.value(),
                                             .share_memory = share_memory,
                                             .listen = options.listen,
                                             .netns = split_names(options.netns),
                                             .workers = options.workers,
                                             .floats = floats,
                                             .block_floats = block_floats,
                                             .window = options.window,
                                             .tls = options.tls,
                                             .adapt_window = !options.fixed_window});
  if (!cluster) return fail(cluster.error());
  ServerBench bench(*cluster.value(), options.workers, floats);
  auto figures = bench.run(options.rounds);
  if (!figures) return fail(figures.error());
  print({.title = fmt::format("{} workers and a shard over {}, {} KB each; the sums were checked:",
                              options.workers, options.transport, bytes >> 10),
         .bench = "server",
         .settings = {{"workers", options.workers},
                      {"kb", bytes >> 10},
                      {"transport", options.transport},
                      {"window", options.window},
                      {"fixed_window", options.fixed_window},
                      {"block_kb", block_floats * sizeof(float) >> 10},
                      {"rounds", options.rounds},
                      {"listen", options.listen},
                      {"tls", !options.tls.empty()},
                      {"netns", options.netns}},
         .figures = std::move(figures).value(),
         .notes = {}},
        options.json);
  return 0;
}

}  // namespace drover
