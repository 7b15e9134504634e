// system_bench transport: latency and bandwidth of a channel between two processes, compared with
// plain Asio on the same kind of socket.
//
// A round trip is a header of 64 bytes in both directions between peers that sleep while they wait.
// Bandwidth is messages in one direction, from the request to the last byte: over the channel in
// frames of at most 256 KB, over plain Asio each in one piece after 64 bytes. Both kinds of socket
// have the same options (net/socket.h). With shared memory, messages are copied out of it, and only
// references and answers are sent, over Unix sockets. The floor of bandwidth is memcpy of as
// many bytes.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <boost/asio/io_context.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>
#include <csignal>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "cli/run_report.h"
#include "core/quantile.h"
#include "net/shared_memory.h"
#include "net/socket.h"
#include "node/channel.h"
#include "node/clock.h"
#include "node/host.h"
#include "system/benches.h"
#include "system/far_end.h"
#include "system/processes.h"
#include "system/rounds.h"
#include "wire/limits.h"

namespace drover {
namespace {

constexpr uint64_t kMostRounds = 1000;
constexpr uint64_t kMostVolume = 100'000;  // MB
constexpr uint32_t kRoundTrips = 1000;
struct Size {
  const char* name;
  uint64_t bytes;
};
constexpr std::array<Size, 3> kSizes = {
    {{"64 KB", 64U << 10}, {"1 MB", 1U << 20}, {"25 MB", 25U << 20}}};
constexpr uint64_t kLargest = kSizes.back().bytes;

// One of the two ways to a far end. Both calls return at once; `finished` is called at the end.
class NearEnd {
 public:
  using Finished = std::function<void()>;
  virtual ~NearEnd() = default;
  virtual void round_trip(Finished finished) = 0;
  virtual void receive(uint64_t bytes, uint64_t count, Finished finished) = 0;
};

class ChannelNearEnd final : public NearEnd {
 public:
  ChannelNearEnd(Socket socket, std::span<std::byte> into)
      : into_(into), channel_(std::make_shared<Channel>(std::move(socket), kBenchRun)) {
    Channel::Callbacks callbacks;
    callbacks.payload_for = [this](const FrameHeader& header) -> Result<std::span<std::byte>> {
      return into_.subspan(uint64_t{header.block} * kBlockBytes, header.length);
    };
    callbacks.on_frame = [this](const FrameHeader&) {
      if (--frames_left_ == 0) finished_();
      return done();
    };
    channel_->start(std::move(callbacks));
  }

  void round_trip(Finished finished) override {
    finished_ = std::move(finished);
    frames_left_ = 1;
    channel_->send(Frame{{.type = FrameType::kStop}, {}});
  }
  void receive(uint64_t bytes, uint64_t count, Finished finished) override {
    finished_ = std::move(finished);
    frames_left_ = count * frames_of(bytes);
    channel_->send(Frame{{.type = FrameType::kPull, .step = count, .version = bytes}, {}});
  }

 private:
  const std::span<std::byte> into_;
  std::shared_ptr<Channel> channel_;
  Finished finished_;
  uint64_t frames_left_ = 0;
};

class SharedNearEnd final : public NearEnd {
 public:
  // `ready` is called when the memory has been received.
  SharedNearEnd(Socket socket, std::span<std::byte> into, Finished ready)
      : into_(into), channel_(std::make_shared<Channel>(std::move(socket), kBenchRun)) {
    Channel::Callbacks callbacks;
    callbacks.on_control = [this, ready = std::move(ready)](const Control&) -> Status {
      auto memory = SharedMemory::map(channel_->take_file(), kSharedMessages * kLargest,
                                      kSharedMessages * kLargest, SharedMemory::Pages::kAtOnce);
      if (!memory) return memory.error();
      memory_ = std::move(memory).value();
      ready();
      return done();
    };
    callbacks.on_frame = [this](const FrameHeader& header) {
      if (header.type == FrameType::kOffer) {
        std::memcpy(into_.data(), memory_->data() + header.block * kLargest, bytes_);
        channel_->send(Frame{{.type = FrameType::kAnswer, .block = header.block}, {}});
      }
      if (--left_ == 0) finished_();
      return done();
    };
    channel_->start(std::move(callbacks));
  }

  void round_trip(Finished finished) override {
    finished_ = std::move(finished);
    left_ = 1;
    channel_->send(Frame{{.type = FrameType::kStop}, {}});
  }
  void receive(uint64_t bytes, uint64_t count, Finished finished) override {
    finished_ = std::move(finished);
    bytes_ = bytes;
    left_ = count;
    channel_->send(Frame{{.type = FrameType::kPull, .step = count}, {}});
  }

 private:
  const std::span<std::byte> into_;
  std::shared_ptr<Channel> channel_;
  std::shared_ptr<const SharedMemory> memory_;
  Finished finished_;
  uint64_t bytes_ = 0;
  uint64_t left_ = 0;
};

class PlainNearEnd final : public NearEnd {
 public:
  PlainNearEnd(Socket socket, std::span<std::byte> into)
      : socket_(std::move(socket)), into_(into) {}

  void round_trip(Finished finished) override {
    finished_ = std::move(finished);
    ask({});
    boost::asio::async_read(socket_, boost::asio::buffer(&header_, sizeof(header_)), TransferAll{},
                            [this](const auto& error, size_t) {
                              if (!error) finished_();
                            });
  }
  void receive(uint64_t bytes, uint64_t count, Finished finished) override {
    finished_ = std::move(finished);
    ask({.bytes = bytes, .count = count});
    read_messages(count);
  }

 private:
  void ask(const PlainRequest& request) {
    request_ = request;
    boost::asio::async_write(socket_, boost::asio::buffer(&request_, sizeof(request_)),
                             TransferAll{}, [](const auto&, size_t) {});
  }
  void read_messages(uint64_t left) {
    if (left == 0) return finished_();
    boost::asio::async_read(socket_, boost::asio::buffer(&header_, sizeof(header_)), TransferAll{},
                            [this, left](const auto& error, size_t) {
                              if (error) return;
                              boost::asio::async_read(
                                  socket_, boost::asio::buffer(into_.data(), header_.bytes),
                                  TransferAll{}, [this, left](const auto& trouble, size_t) {
                                    if (!trouble) read_messages(left - 1);
                                  });
                            });
  }

  Socket socket_;
  const std::span<std::byte> into_;
  PlainRequest request_;
  PlainRequest header_;
  Finished finished_;
};

class TransportBench {
 public:
  TransportBench() : into_(kLargest), from_(kLargest, std::byte{1}) {}

  Status start(SocketKind kind, bool share_memory, const TransportBenchOptions& options) {
    std::array<std::string, 2> addresses;
    for (size_t i = 0; i < addresses.size(); ++i) {
      auto listener = Listener::open(
          loop_, listen_address(kind, options.listen, "drover-bench-" + random_token()));
      if (!listener) return listener.error();
      addresses[i] = listener.value()->address();
      listeners_.push_back(std::move(listener).value());
    }
    const FarEndSettings far{addresses[0], addresses[1], options.netns, kLargest, share_memory};
    if (const Status added = processes_.add("far end", [&] { return run_far_end(far); }); !added)
      return added;
    int ready = 0;
    const auto one_more = [this, &ready] {
      if (++ready == 2) loop_.stop();
    };
    listeners_[0]->start([this, share_memory, one_more](Socket socket) {
      if (share_memory) {
        ours_ = std::make_unique<SharedNearEnd>(std::move(socket), into_, one_more);
      } else {
        ours_ = std::make_unique<ChannelNearEnd>(std::move(socket), into_);
        one_more();
      }
    });
    listeners_[1]->start([this, one_more](Socket socket) {
      plain_ = std::make_unique<PlainNearEnd>(std::move(socket), into_);
      one_more();
    });
    return run_until_stopped(loop_, processes_, "connecting to the far end");
  }

  NearEnd& ours() { return *ours_; }
  NearEnd& plain() { return *plain_; }

  // Microseconds of each.
  Result<std::vector<double>> round_trips(NearEnd& end) {
    std::vector<double> times;
    TimePoint began = clock_now();
    std::function<void()> next = [&] {
      const TimePoint now = clock_now();
      times.push_back(seconds(now - began) * 1e6);
      if (times.size() == kRoundTrips) return loop_.stop();
      began = now;
      end.round_trip(next);
    };
    end.round_trip(next);
    if (const Status ran = run_until_stopped(loop_, processes_, "a round trip"); !ran)
      return ran.error();
    return times;
  }

  Result<double> bandwidth(NearEnd& end, uint64_t bytes, uint64_t count) {
    const TimePoint began = clock_now();
    TimePoint ended = began;
    end.receive(bytes, count, [&] {
      ended = clock_now();
      loop_.stop();
    });
    if (const Status ran = run_until_stopped(loop_, processes_, "moving bytes"); !ran)
      return ran.error();
    return gb_per_s(static_cast<double>(bytes * count), ended - began);
  }

  double memcpy_bandwidth(uint64_t bytes, uint64_t count) {
    const TimePoint began = clock_now();
    for (uint64_t i = 0; i < count; ++i) {
      std::memcpy(into_.data(), from_.data(), bytes);
      // Prevents the compiler from merging the copies.
      asm volatile("" : : "r"(into_.data()) : "memory");
    }
    return gb_per_s(static_cast<double>(bytes * count), clock_now() - began);
  }

 private:
  boost::asio::io_context loop_{1};
  BenchProcesses processes_;
  std::vector<std::unique_ptr<Listener>> listeners_;
  std::vector<std::byte> into_;
  std::vector<std::byte> from_;
  std::unique_ptr<NearEnd> ours_;
  std::unique_ptr<NearEnd> plain_;
};

Result<Figure> measure_round_trips(TransportBench& bench, uint32_t rounds) {
  Figure figure{.what = "round trip",
                .unit = "p50_us",
                .values = {},
                .beside = {{"asio", {}}},
                .further = {}};
  std::vector<double> slow;
  std::vector<double> plain_slow;
  Status status = done();
  const auto measure = [&](NearEnd& end, std::vector<double>& half, std::vector<double>& tenth) {
    auto times = bench.round_trips(end);
    if (!times) {
      status = times.error();
      return;
    }
    half.push_back(quantile(times.value(), 0.5));
    tenth.push_back(quantile(times.value(), 0.9));
  };
  const std::array<std::function<void()>, 2> both = {
      [&] { measure(bench.ours(), figure.values, slow); },
      [&] { measure(bench.plain(), figure.beside[0].values, plain_slow); }};
  for (uint32_t round = 0; round < rounds && status; ++round) take_turns(round, both);
  if (!status) return status.error();
  figure.further = {{"p90_us", spread_of(slow).median},
                    {"asio_p90_us", spread_of(plain_slow).median}};
  return figure;
}

Result<Figure> measure_bandwidth(TransportBench& bench, const Size& size, uint32_t rounds,
                                 uint64_t volume) {
  const uint64_t count = std::max<uint64_t>(1, volume / size.bytes);
  Figure figure{.what = size.name,
                .unit = "gb_per_s",
                .values = {},
                .beside = {{"floor", {}}, {"asio", {}}},
                .further = {{"bytes", size.bytes}}};
  Status status = done();
  const auto measure = [&](NearEnd& end, std::vector<double>& values) {
    const auto speed = bench.bandwidth(end, size.bytes, count);
    if (!speed) {
      status = speed.error();
      return;
    }
    values.push_back(speed.value());
  };
  const std::array<std::function<void()>, 3> all = {
      [&] { measure(bench.ours(), figure.values); },
      [&] { figure.beside[0].values.push_back(bench.memcpy_bandwidth(size.bytes, count)); },
      [&] { measure(bench.plain(), figure.beside[1].values); }};
  for (uint32_t round = 0; round < rounds && status; ++round) take_turns(round, all);
  if (!status) return status.error();
  return figure;
}

Result<std::vector<Figure>> measure(TransportBench& bench, const TransportBenchOptions& options) {
  std::vector<Figure> figures;
  auto trips = measure_round_trips(bench, options.rounds);
  if (!trips) return trips.error();
  figures.push_back(std::move(trips).value());
  for (const Size& size : kSizes) {
    const uint64_t volume = uint64_t{options.volume_mb} << 20;
    // A first round for page faults, and for the kernel to measure the connection.
    if (const auto warm = measure_bandwidth(bench, size, 1, volume / 4); !warm) return warm.error();
    auto figure = measure_bandwidth(bench, size, options.rounds, volume);
    if (!figure) return figure.error();
    figures.push_back(std::move(figure).value());
  }
  return figures;
}

}  // namespace

int bench_transport_command(const TransportBenchOptions& options) {
  for (const Status& status : {check_range("--rounds", options.rounds, 1, kMostRounds),
                               check_range("--volume-mb", options.volume_mb, 1, kMostVolume)}) {
    if (!status) return fail(status.error(), kExitUsage);
  }
  const bool share_memory = options.transport == "shm";
  const Result<SocketKind> kind = parse_socket_kind(share_memory ? "uds" : options.transport);
  if (!kind) return fail(kind.error(), kExitUsage);
  std::signal(SIGPIPE, SIG_IGN);
  TransportBench bench;
  if (const Status started = bench.start(kind.value(), share_memory, options); !started)
    return fail(started.error());
  auto figures = measure(bench, options);
  if (!figures) return fail(figures.error());
  print({.title = fmt::format("Two processes over {}: the median round trip of 64 bytes, and "
                              "messages one way; beside memcpy and plain Asio:",
                              options.transport),
         .bench = "transport",
         .settings = {{"transport", options.transport},
                      {"rounds", options.rounds},
                      {"volume_mb", options.volume_mb},
                      {"listen", options.listen},
                      {"netns", options.netns}},
         .figures = std::move(figures).value(),
         .notes = {}},
        options.json);
  return 0;
}

}  // namespace drover
