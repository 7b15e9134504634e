#include "system/server_cluster.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <boost/asio/io_context.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>
#include <cerrno>
#include <cstring>
#include <map>
#include <new>
#include <numeric>
#include <utility>

#include "core/float_buffer.h"
#include "node/acceptor.h"
#include "node/channel.h"
#include "node/clock.h"
#include "node/host.h"
#include "node/shard_node.h"
#include "node/worker_node.h"
#include "shard/kernels.h"
#include "system/far_end.h"
#include "system/push_task.h"

namespace drover {
namespace {

constexpr Step kManySteps = 1'000'000;

// The plain server: reads a block into the connection's own buffer, sums it, and answers the last.
class PlainServer {
 public:
  PlainServer(size_t floats, std::function<void()> round_done)
      : sum_(floats), round_done_(std::move(round_done)) {}

  void add(Socket socket) {
    peers_.push_back(std::make_unique<Peer>(std::move(socket)));
    read(*peers_.back());
  }
  size_t connected() const { return peers_.size(); }
  void begin_round() {
    finished_ = 0;
    std::fill_n(sum_.data(), sum_.size(), 0.0F);
  }
  TimePoint ended() const { return ended_; }
  std::span<const float> sum() const { return sum_.span(); }

 private:
  struct Peer {
    explicit Peer(Socket s) : socket(std::move(s)), block(kBlockFloats) {}
    Socket socket;
    PlainRequest header;
    FloatBuffer block;
  };

  void read(Peer& peer) {
    boost::asio::async_read(peer.socket, boost::asio::buffer(&peer.header, sizeof(peer.header)),
                            TransferAll{}, [this, &peer](const auto& error, size_t) {
                              if (error) return;
                              boost::asio::async_read(
                                  peer.socket,
                                  boost::asio::buffer(peer.block.data(), peer.header.bytes),
                                  TransferAll{}, [this, &peer](const auto& trouble, size_t) {
                                    if (!trouble) take(peer);
                                  });
                            });
  }

  void take(Peer& peer) {
    const size_t floats = peer.header.bytes / sizeof(float);
    add_scaled(sum_.span().subspan(peer.header.count, floats), peer.block.span().first(floats),
               1.0F);
    if (peer.header.count + floats == sum_.size()) {
      boost::asio::async_write(peer.socket, boost::asio::buffer(&peer.header, sizeof(peer.header)),
                               TransferAll{}, [](const auto&, size_t) {});
      if (++finished_ == peers_.size()) {
        ended_ = clock_now();
        round_done_();
      }
    }
    read(peer);
  }

  FloatBuffer sum_;
  const std::function<void()> round_done_;
  std::vector<std::unique_ptr<Peer>> peers_;
  size_t finished_ = 0;
  TimePoint ended_{};
};

class LiveCluster final : public ServerCluster {
 public:
  explicit LiveCluster(const ClusterSettings& settings, CommonMemory board, CommonMemory shared)
      : settings_(settings),
        board_memory_(std::move(board)),
        shared_(std::move(shared)),
        key_{.run = kBenchRun, .token = random_token()},
        plain_(settings.floats, [this] { look(); }) {
    for (uint32_t i = 0; i <= settings_.workers; ++i)
      board_.push_back(new (board_memory_.bytes().data() + i * sizeof(BoardLine)) BoardLine);
    std::memset(shared_.bytes().data(), 1, shared_.bytes().size());
  }

  Status open() {
    if (const Status loaded = use_tls(key_, settings_.tls); !loaded) return loaded;
    const auto addresses = listen();
    if (!addresses) return addresses.error();
    if (const Status forked = fork_all(addresses.value()); !forked) return forked;
    listeners_[0]->start([this](Socket socket) {
      plain_.add(std::move(socket));
      look();
    });
    acceptor_ =
        std::make_unique<Acceptor>(loop_, std::move(coordinator_listener_), key_,
                                   [this](const std::shared_ptr<Channel>& channel,
                                          const Hello& hello) { return admit(channel, hello); });
    // First all peers say hello, then all are ready, then step 0 begins.
    if (const Status met = wait("starting the processes", [this] { return all_peers_connected(); });
        !met)
      return met;
    welcome_workers();
    if (const Status ready =
            wait("connecting the workers", [this] { return ready_ == settings_.workers + 2; });
        !ready)
      return ready;
    decide(settings_.workers + 1);
    return wait("the first parameters", [this] { return answers_ == settings_.workers; });
  }

  Result<Duration> push() override {
    arrived_ = 0;
    answers_ = 0;
    const TimePoint began = clock_now();
    order_all(Order::kPush);
    if (const Status ran = wait("a push", [this] { return arrived_ == settings_.workers; }); !ran)
      return ran.error();
    return pushed_at_ - began;
  }

  Result<Duration> publish() override {
    const Step closing = step_;
    const TimePoint began = clock_now();
    decide(settings_.workers);
    const Status ran = wait("publishing parameters", [this, closing] {
      return step_ > closing && answers_ == settings_.workers;
    });
    if (!ran) return ran.error();
    decide(settings_.workers + 1);
    return last_stamp() - began;
  }

  Result<Duration> plain_push() override {
    plain_.begin_round();
    const TimePoint began = clock_now();
    if (const Status ran = order_and_wait(Order::kPlainPush, "a plain push"); !ran)
      return ran.error();
    plain_used_ = true;
    return plain_.ended() - began;
  }

  Result<Duration> copy() override {
    const TimePoint began = clock_now();
    if (const Status ran = order_and_wait(Order::kCopy, "copying"); !ran) return ran.error();
    return last_stamp() - began;
  }

  Result<uint64_t> count_wrong() override {
    if (const Status ran = order_and_wait(Order::kCheck, "checking the parameters"); !ran)
      return ran.error();
    uint64_t wrong = 0;
    for (const BoardLine* line : board_) wrong += line->wrong;
    for (size_t i = 0; plain_used_ && i < settings_.floats; ++i) {
      if (plain_.sum()[i] != sum_at(i)) ++wrong;
    }
    return wrong;
  }

  Result<uint64_t> retransmits() override {
    if (const Status ran = order_and_wait(Order::kCount, "counting retransmits"); !ran)
      return ran.error();
    const size_t namespaces =
        std::clamp<size_t>(settings_.netns.size(), 1, settings_.workers);  // each counts once
    uint64_t all = 0;
    for (size_t i = 0; i < namespaces; ++i) all += board_[i]->retransmits;
    return all;
  }

 private:
  struct Addresses {
    std::string coordinator;
    std::string plain;
  };

  Sharing sharing() const { return settings_.share_memory ? Sharing::kMust : Sharing::kNo; }

  float sum_at(size_t index) const {
    float sum = 0.0F;
    for (uint32_t worker = 0; worker < settings_.workers; ++worker)
      sum += gradient_value(worker, index);
    return sum;
  }

  Result<Addresses> listen() {
    const auto address = [&] {
      return listen_address(settings_.sockets, settings_.listen, "drover-bench-" + random_token());
    };
    auto coordinator = Listener::open(loop_, address());
    if (!coordinator) return coordinator.error();
    auto plain = Listener::open(loop_, address());
    if (!plain) return plain.error();
    coordinator_listener_ = std::move(coordinator).value();
    listeners_.push_back(std::move(plain).value());
    return Addresses{coordinator_listener_->address(), listeners_[0]->address()};
  }

  Status fork_all(const Addresses& addresses) {
    const std::string host = settings_.listen.substr(0, settings_.listen.rfind(':'));
    Status started = processes_.add("shard", [&] {
      return run_shard({.id = 0,
                        .key = key_,
                        .listen = listen_address(settings_.sockets, host + ":0",
                                                 "drover-bench-shard-" + random_token()),
                        .coordinator = addresses.coordinator,
                        .sharing = sharing(),
                        .window_bytes = settings_.window,
                        .adapt_window = settings_.adapt_window});
    });
    for (uint32_t i = 0; i <= settings_.workers && started; ++i)
      started = fork_worker(i, addresses);
    return started;
  }

  Status fork_worker(uint32_t index, const Addresses& addresses) {
    std::array<int, 2> ends{};
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0)
      return system_error(std::string("cannot make a pair of sockets: ") + std::strerror(errno));
    const Status forked = processes_.add(peer_name(Role::kWorker, index), [&] {
      ::close(ends[0]);
      return worker_main(index, ends[1], addresses);
    });
    ::close(ends[1]);
    orders_.push_back(std::make_unique<Orders>(loop_));
    orders_.back()->socket.assign(boost::asio::local::stream_protocol(), ends[0]);
    if (index < settings_.workers) read_answers(*orders_.back());
    return forked;
  }

  int worker_main(uint32_t index, int orders_fd, const Addresses& addresses) {
    const std::string netns =
        settings_.netns.empty() ? "" : settings_.netns[index % settings_.netns.size()];
    if (const Status entered = enter_network_namespace(netns); !entered) {
      spdlog::error("{}", entered.error().message);
      return 1;
    }
    const bool pushes = index < settings_.workers;
    const auto task = make_push_task({.index = index,
                                      .workers = settings_.workers,
                                      .floats = settings_.floats,
                                      .orders_fd = orders_fd,
                                      .plain_address = pushes ? addresses.plain : "",
                                      .shared = shared_.bytes(),
                                      .line = board_[index]});
    if (!task) {
      spdlog::error("{}", task.error().message);
      return 1;
    }
    return run_worker(
        {.identity = {Role::kWorker, index, key_, addresses.coordinator}, .sharing = sharing()},
        *task.value());
  }

  // --- the part of the coordinator

  Status admit(const std::shared_ptr<Channel>& channel, const Hello& hello) {
    Channel::Callbacks callbacks;
    callbacks.on_closed = [this, name = peer_name(hello.role, hello.index)](const Error& why) {
      trouble_ = fmt::format("lost {}: {}", name, why.message);
      loop_.stop();
    };
    if (hello.role == Role::kShard) {
      shard_ = channel;
      shard_address_ = hello.address;
      callbacks.on_control = [this](const Control& message) {
        on_shard(message);
        return done();
      };
    } else {
      workers_[hello.index] = channel;
      callbacks.on_control = [this](const Control& message) {
        if (std::holds_alternative<Ready>(message)) ++ready_;
        look();
        return done();
      };
    }
    channel->replace_callbacks(std::move(callbacks));
    look();
    return done();
  }

  bool all_peers_connected() const {
    return shard_ && workers_.size() == settings_.workers + 1 &&
           plain_.connected() == settings_.workers;
  }

  void welcome_workers() {
    const Layout layout = push_layout(settings_.floats);
    const BlockPlan blocks = plan_blocks(layout, 1, settings_.block_floats);
    shard_->send(control_frame(
        Plan{.workers = settings_.workers + 1,
             .steps = kManySteps,
             .learning = {.optimizer = {.kind = OptimizerKind::kSgd}, .schedule = {.base = 1.0}},
             .tensors = layout.tensors(),
             .blocks = blocks}));
    for (const auto& [index, channel] : workers_) {
      channel->send(control_frame(Welcome{.shards = {shard_address_},
                                          .blocks = blocks,
                                          .steps = kManySteps,
                                          .workers = settings_.workers + 1,
                                          .batch = 1}));
    }
  }

  void on_shard(const Control& message) {
    if (std::holds_alternative<Ready>(message)) {
      ++ready_;
    } else if (const auto* arrived = std::get_if<Arrived>(&message)) {
      arrived_ += arrived->arrivals.size();
      if (arrived_ == settings_.workers) pushed_at_ = clock_now();
    } else if (const auto* closed = std::get_if<StepClosed>(&message)) {
      step_ = closed->step + 1;
    }
    look();
  }

  void decide(uint32_t cutoff) {
    Decision decision{.step = step_, .cutoff = cutoff, .alive = {}, .report_every = 1};
    decision.alive.resize(settings_.workers + 1);
    std::iota(decision.alive.begin(), decision.alive.end(), 0U);
    shard_->send(control_frame(std::move(decision)));
  }

  // --- orders to the workers

  struct Orders {
    explicit Orders(boost::asio::io_context& loop) : socket(loop) {}
    boost::asio::local::stream_protocol::socket socket;
    char answer = 0;
  };

  void read_answers(Orders& orders) {
    boost::asio::async_read(orders.socket, boost::asio::buffer(&orders.answer, 1),
                            [this, &orders](const auto& error, size_t) {
                              if (error) return;
                              ++answers_;
                              look();
                              read_answers(orders);
                            });
  }

  void order_all(Order order) {
    const char byte = static_cast<char>(order);
    for (uint32_t i = 0; i < settings_.workers; ++i) {
      boost::system::error_code ignored;  // the loss of a worker is detected elsewhere
      boost::asio::write(orders_[i]->socket, boost::asio::buffer(&byte, 1), ignored);
    }
  }

  Status order_and_wait(Order order, const std::string& what) {
    answers_ = 0;
    order_all(order);
    return wait(what, [this] { return answers_ == settings_.workers; });
  }

  TimePoint last_stamp() const {
    int64_t last = 0;
    for (uint32_t i = 0; i < settings_.workers; ++i)
      last = std::max<int64_t>(last, board_[i]->done_at);
    return TimePoint(last);
  }

  // --- waiting

  Status wait(const std::string& what, std::function<bool()> enough) {
    if (enough()) return done();
    enough_ = std::move(enough);
    const Status ran = run_until_stopped(loop_, processes_, what);
    enough_ = nullptr;
    if (!trouble_.empty()) return Error{ErrorKind::kDisconnected, trouble_};
    return ran;
  }
  void look() {
    if (enough_ && enough_()) loop_.stop();
  }

  const ClusterSettings settings_;
  CommonMemory board_memory_;
  CommonMemory shared_;
  std::vector<BoardLine*> board_;
  RunKey key_;
  boost::asio::io_context loop_{1};
  std::unique_ptr<Listener> coordinator_listener_;
  std::vector<std::unique_ptr<Listener>> listeners_;
  std::unique_ptr<Acceptor> acceptor_;
  PlainServer plain_;
  std::vector<std::unique_ptr<Orders>> orders_;
  std::shared_ptr<Channel> shard_;
  std::string shard_address_;
  std::map<uint32_t, std::shared_ptr<Channel>> workers_;
  std::function<bool()> enough_;
  std::string trouble_;
  uint32_t ready_ = 0;
  size_t arrived_ = 0;
  uint32_t answers_ = 0;
  TimePoint pushed_at_{};
  Step step_ = 0;
  bool plain_used_ = false;
  BenchProcesses processes_;  // the last member, so that all processes end first
};

}  // namespace

Result<std::unique_ptr<ServerCluster>> ServerCluster::start(const ClusterSettings& settings) {
  raise_file_limit();
  auto board = CommonMemory::make((settings.workers + 1) * sizeof(BoardLine));
  if (!board) return board.error();
  auto shared = CommonMemory::make(settings.floats * sizeof(float));
  if (!shared) return shared.error();
  auto cluster =
      std::make_unique<LiveCluster>(settings, std::move(board).value(), std::move(shared).value());
  if (const Status opened = cluster->open(); !opened) return opened.error();
  return std::unique_ptr<ServerCluster>(std::move(cluster));
}

}  // namespace drover
