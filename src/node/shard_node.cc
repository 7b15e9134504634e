#include "node/shard_node.h"

#include <spdlog/spdlog.h>
#include <unistd.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <utility>

#include "node/alarm.h"
#include "node/channel.h"
#include "node/clock.h"
#include "node/host.h"
#include "server/shard.h"

namespace drover {
namespace {

const Error kNotJoined =
    invalid_input("blocks can be sent only when control and bulk are both connected");

class ShardNode {
 public:
  explicit ShardNode(const ShardSettings& settings)
      : settings_(settings), shard_(settings.id, settings.window_bytes) {}

  int run() {
    if (const Status started = start(); !started) {
      spdlog::error("{}", started.error().message);
      return 1;
    }
    loop_.run();
    return exit_status_;
  }

 private:
  struct Peer {
    std::shared_ptr<Channel> control;
    std::shared_ptr<Channel> bulk;
    // One payload at a time is being read on each lane.
    SharedBuffer control_payload;
    SharedBuffer bulk_payload;
    bool joined = false;
  };

  Status start() {
    auto listener = Listener::open(loop_, settings_.listen);
    if (!listener) return listener.error();
    doorman_ =
        std::make_unique<Doorman>(loop_, std::move(listener).value(), settings_.key,
                                  [this](const std::shared_ptr<Channel>& channel,
                                         const Hello& hello) { return admit(channel, hello); });
    auto socket = connect_socket(loop_, settings_.coordinator, "the coordinator");
    if (!socket) return socket.error();
    coordinator_ = std::make_shared<Channel>(std::move(socket).value(), settings_.key.run);
    Channel::Callbacks callbacks;
    callbacks.on_control = [this](const Control& message) { return on_coordinator(message); };
    callbacks.on_closed = [this](const Error& why) {
      stop(Farewell{RunOutcome::kFailed, "lost the coordinator: " + why.message});
    };
    coordinator_->start(std::move(callbacks));
    coordinator_->send(control_frame(Hello{.role = Role::kShard,
                                           .index = settings_.id,
                                           .lane = Lane::kControl,
                                           .token = settings_.key.token,
                                           .host = host_name(),
                                           .pid = ::getpid(),
                                           .address = doorman_->address(),
                                           .tensors = {}}));
    return done();
  }

  Status on_coordinator(const Control& message) {
    if (const auto* plan = std::get_if<Plan>(&message)) {
      if (shard_.has_plan()) return invalid_input("a second plan");
      shard_.on_plan(*plan);
      for (auto& [worker, peer] : peers_) join_if_complete(worker, peer);
    } else if (const auto* decision = std::get_if<Decision>(&message)) {
      if (!shard_.has_plan()) return invalid_input("a decision before the plan");
      work([&](Outbox& out) { shard_.on_decision(*decision, clock_now(), out); });
    } else if (const auto* farewell = std::get_if<Farewell>(&message)) {
      stop(*farewell);
    }
    return done();
  }

  Status admit(const std::shared_ptr<Channel>& channel, const Hello& hello) {
    if (hello.role != Role::kWorker && hello.role != Role::kEvaluator) {
      return invalid_input("only workers and the evaluator connect to a shard");
    }
    const WorkerId worker = hello.role == Role::kEvaluator ? kEvaluator : hello.index;
    if (worker != kEvaluator && shard_.has_plan() && !shard_.knows(worker)) {
      return invalid_input(peer_name(hello.role, hello.index) + " does not take part in this run");
    }
    Peer& peer = peers_[worker];
    auto& lane = hello.lane == Lane::kControl ? peer.control : peer.bulk;
    if (lane) return invalid_input(peer_name(hello.role, hello.index) + " is connected already");
    lane = channel;
    auto& payload = hello.lane == Lane::kControl ? peer.control_payload : peer.bulk_payload;
    Channel::Callbacks callbacks;
    callbacks.payload_for = [this, worker, &peer,
                             &payload](const FrameHeader& header) -> Result<std::span<std::byte>> {
      if (!peer.joined) return kNotJoined;
      const auto floats = shard_.payload_floats(worker, header);
      if (!floats) return floats.error();
      payload = shard_.pool().take(floats.value());
      return std::as_writable_bytes(payload->span());
    };
    callbacks.on_frame = [this, worker, &peer, &payload](const FrameHeader& header) {
      if (!peer.joined) return Status(kNotJoined);
      Status status = done();
      work([&](Outbox& out) {
        status = shard_.on_frame(worker, header, std::exchange(payload, nullptr), clock_now(), out);
      });
      return status;
    };
    callbacks.on_closed = [this, worker](const Error&) { lose(worker); };
    channel->replace_callbacks(std::move(callbacks));
    join_if_complete(worker, peer);
    return done();
  }

  void join_if_complete(WorkerId worker, Peer& peer) {
    if (peer.joined || !peer.control || !peer.bulk || !shard_.has_plan()) return;
    peer.joined = true;
    work([&](Outbox& out) { shard_.on_joined(worker, out); });
  }

  void lose(WorkerId worker) {
    const auto found = peers_.find(worker);
    if (found == peers_.end()) return;
    const Peer peer = std::move(found->second);
    peers_.erase(found);
    if (peer.control) peer.control->close();
    if (peer.bulk) peer.bulk->close();
    if (shard_.has_plan()) work([&](Outbox& out) { shard_.on_lost(worker, clock_now(), out); });
  }

  // Lets the machine work, keeps account of how long that takes, and sends what it wants sent.
  template <typename Work>
  void work(Work&& machine) {
    const TimePoint began = clock_now();
    Outbox out;
    machine(out);
    busy_ += clock_now() - began;
    // New parameters come before the news of the close, so that they have left when it does.
    for (Outgoing& message : out) send(std::move(message), began);
    alarm_.set(shard_.wake_at());
  }

  void send(Outgoing message, TimePoint began) {
    if (message.to.role == Role::kCoordinator) {
      if (auto* control = std::get_if<Control>(&message.frame.payload)) {
        if (auto* closed = std::get_if<StepClosed>(control)) {
          closed->busy = std::exchange(busy_, Duration::zero());
          closed->closing += clock_now() - began;
        }
      }
      return coordinator_->send(std::move(message.frame));
    }
    const WorkerId worker = message.to.role == Role::kEvaluator ? kEvaluator : message.to.index;
    const auto found = peers_.find(worker);
    if (found == peers_.end()) return;
    (message.to.lane == Lane::kControl ? found->second.control : found->second.bulk)
        ->send(std::move(message.frame));
  }

  void stop(const Farewell& farewell) {
    if (farewell.outcome == RunOutcome::kFailed) {
      spdlog::error("stopping: {}", farewell.reason);
      exit_status_ = 1;
    }
    loop_.stop();
  }

  const ShardSettings settings_;
  boost::asio::io_context loop_{1};
  Shard shard_;
  Alarm alarm_{loop_, [this] { work([&](Outbox& out) { shard_.on_time(clock_now(), out); }); }};
  std::unique_ptr<Doorman> doorman_;
  std::shared_ptr<Channel> coordinator_;
  std::map<WorkerId, Peer> peers_;  // a map: callbacks point into its entries
  Duration busy_{};                 // in the machine since the last step closed
  int exit_status_ = 0;
};

}  // namespace

int run_shard(const ShardSettings& settings) { return ShardNode(settings).run(); }

}  // namespace drover
