#include "node/shard_node.h"

#include <spdlog/spdlog.h>
#include <unistd.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "node/alarm.h"
#include "node/channel.h"
#include "node/checkpoint_saver.h"
#include "node/clock.h"
#include "node/host.h"
#include "node/introduction.h"
#include "node/side_thread.h"
#include "node/sittings.h"
#include "node/standby_link.h"
#include "server/grant_window.h"
#include "server/kept_parts.h"
#include "server/replication.h"
#include "server/shard.h"

namespace drover {
namespace {

// How long the coordinator has to say why the shard is gone that this one stands by for.
constexpr Duration kPatience = std::chrono::seconds(2);

const Error kNotJoined =
    invalid_input("blocks can be sent only when control and bulk are both connected");

class ShardNode {
 public:
  // What is kept outlives this, for the next sitting.
  ShardNode(const ShardSettings& settings, KeptParts& kept)
      : settings_(settings),
        shard_(settings.id, settings.window_bytes,
               [this](size_t floats) { return published_.make(floats); }),
        kept_(kept),
        source_(settings.id, kept) {
    if (settings_.port)
      courier_ = std::make_shared<MessageCourier>(loop_.get_executor(), *settings_.port);
  }

  Sitting run() {
    if (const Status started = start(); !started) {
      return {.exit_status = 1,
              .again = started.error().kind == ErrorKind::kDisconnected,
              .was_in = false,
              .why = started.error().message};
    }
    loop_.run();
    // Before what it writes to is gone.
    if (courier_) courier_->close();
    if (settings_.port && completed_) settings_.port->finish();
    return end_;
  }

 private:
  struct Incoming {
    SharedBuffer floats;
    std::vector<uint16_t> halves;  // of which they are made, where numbers are short
  };
  struct Lent {
    ConstBuffer parameters;
    uint32_t times = 0;
  };
  struct Peer {
    std::shared_ptr<Channel> control;
    std::shared_ptr<Channel> bulk;
    // One payload at a time is being read on each lane.
    Incoming control_payload;
    Incoming bulk_payload;
    uint32_t out_of_order = 0;  // packets, as far as is known
    bool joined = false;
    bool by_messages = false;  // its blocks do not travel on its socket
    // Where both share memory: its gradients, and what was published there that it has not taken.
    Descriptor memory;
    std::optional<GradientView> gradients;
    std::map<uint32_t, Lent> lent;  // by place
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
    coordinator_ = open_channel(std::move(socket).value(), settings_.key, Tls::Side::kConnects);
    Channel::Callbacks callbacks;
    callbacks.on_control = [this](const Control& message) { return on_coordinator(message); };
    callbacks.on_closed = [this](const Error& why) {
      stop(Farewell{.outcome = RunOutcome::kFailed,
                    .reason = "lost the coordinator: " + why.message,
                    .again = why.kind == ErrorKind::kDisconnected});
    };
    introduce(coordinator_, settings_.key,
              {.hello = {.role = settings_.role,
                         .index = settings_.id,
                         .lane = Lane::kControl,
                         .host = host_name(),
                         .pid = ::getpid(),
                         .address = doorman_->address(),
                         .tensors = {},
                         .kept = kept_.versions()}},
              std::move(callbacks));
    return done();
  }

  Status on_coordinator(const Control& message) {
    if (const auto* plan = std::get_if<Plan>(&message)) {
      if (planned_ || link_) return invalid_input("a second plan");
      if (const Status shared = share_memory(*plan); !shared) {
        stop(Farewell{.outcome = RunOutcome::kFailed,
                      .reason = shared.error().message + "; try --transport uds"});
        return done();
      }
      on_plan(*plan);
    } else if (const auto* decision = std::get_if<Decision>(&message)) {
      if (!shard_.has_plan()) return invalid_input("a decision before the plan");
      if (const Status sane = shard_.check_decision(*decision); !sane) return sane;
      work([&](Outbox& out) { shard_.on_decision(*decision, clock_now(), out); });
      source_.on_decision(decision->step);
    } else if (const auto* stand_by = std::get_if<StandBy>(&message)) {
      if (planned_ || link_) return invalid_input("an order to stand by out of turn");
      stand_by_for(stand_by->address);
    } else if (const auto* farewell = std::get_if<Farewell>(&message)) {
      stop(*farewell);
    }
    return done();
  }

  using Saved = std::optional<std::vector<SavedBlock>>;

  // A checkpoint is read beside the loop: whoever is silent for as long as that may take is taken
  // for dead.
  void on_plan(const Plan& plan) {
    planned_ = true;
    plan_ = plan;
    if (plan.kept) {
      const Result<Saved> blocks = kept_blocks(plan);
      kept_.keep_only(*plan.kept);
      return begin(blocks);
    }
    kept_.clear();
    if (plan.resume_from.empty()) return begin(Saved());
    const bool started =
        reader_.begin([plan, shard = settings_.id] { return read_saved(plan, shard); },
                      [this](const Result<Saved>& saved) { begin(saved); });
    if (!started) begin(system_error("no thread could be started to read " + plan.resume_from));
  }

  void begin(const Result<Saved>& saved) {
    if (!saved) {
      // The coordinator ends the run, and tells everybody why.
      return coordinator_->send(
          control_frame(Farewell{.outcome = RunOutcome::kFailed, .reason = saved.error().message}));
    }
    shard_.on_plan(plan_);
    if (saved.value()) shard_.restore(*saved.value());
    gradient_floats_ = Layout(plan_.tensors).buffer_size();
    weak_ = plan_.weak;
    // Joining may lose a peer, and with it its entry.
    std::vector<WorkerId> waiting;
    for (const auto& [worker, peer] : peers_) waiting.push_back(worker);
    for (const WorkerId worker : waiting) join_if_complete(worker);
  }

  // Another process serves: what it makes is kept here. When it is lost the coordinator says what
  // is next; if it does not, there is nothing to do but to come again.
  void stand_by_for(const std::string& address) {
    link_ = std::make_unique<StandbyLink>(
        loop_, settings_.key, settings_.id, kept_, [this](const Error& why) {
          patience_.expires_after(kPatience);
          patience_.async_wait([this, why](const boost::system::error_code& error) {
            if (!error)
              stop(Farewell{.outcome = RunOutcome::kFailed, .reason = why.message, .again = true});
          });
        });
    link_->connect(address);
  }

  // This shard's blocks as they are kept in memory.
  Result<Saved> kept_blocks(const Plan& plan) const {
    const CheckpointPart* const part = kept_.find(*plan.kept);
    std::vector<SavedBlock> blocks = part ? part->blocks : std::vector<SavedBlock>();
    auto next = blocks.begin();
    for (const Block& block : plan.blocks.blocks) {
      if (block.shard != settings_.id) continue;
      if (next == blocks.end() || next->offset != block.offset || next->length != block.length)
        return invalid_input("what " + peer_name(settings_.role, settings_.id) +
                             " keeps in memory is not what the run is to go on from");
      ++next;
    }
    return Saved(std::move(blocks));
  }

  Status admit_standby(const std::shared_ptr<Channel>& channel, const Hello& hello) {
    if (!plan_.standby || hello.index != settings_.id || hello.lane != Lane::kBulk)
      return invalid_input("this is not the shard that it stands by for");
    if (standby_) standby_->close();  // an earlier life, whose end has not been noticed yet
    standby_ = channel;
    Channel::Callbacks callbacks;
    callbacks.on_control = [this](const Control& message) {
      const auto* replicated = std::get_if<Replicated>(&message);
      if (replicated == nullptr)
        return Status(invalid_input("a message that standbys do not send"));
      Outbox out;
      Status status = source_.on_replicated(*replicated, out);
      send_all(std::move(out));
      return status;
    };
    callbacks.on_closed = [this](const Error&) {
      standby_.reset();
      Outbox out;
      source_.on_standby_lost(out);
      send_all(std::move(out));
    };
    channel->replace_callbacks(std::move(callbacks));
    Outbox out;
    source_.on_standby(out);
    send_all(std::move(out));
    return done();
  }

  Status admit(const std::shared_ptr<Channel>& channel, const Hello& hello) {
    if (hello.role == Role::kStandby) return admit_standby(channel, hello);
    if (hello.mpi && courier_ && !settings_.port->reaches({hello.mpi->rank, hello.mpi->tag}))
      return invalid_input("there is no other MPI rank " + std::to_string(hello.mpi->rank));
    if (hello.role != Role::kWorker && hello.role != Role::kEvaluator) {
      return invalid_input("only workers and the evaluator connect to a shard");
    }
    const WorkerId worker = hello.role == Role::kEvaluator ? kEvaluator : hello.index;
    if (worker != kEvaluator && shard_.has_plan() && !shard_.knows(worker)) {
      return invalid_input(peer_name(hello.role, hello.index) + " does not take part in this run");
    }
    // The coordinator lets nobody in twice: this lane's earlier one is of a life whose end has not
    // been noticed here yet.
    if (const auto earlier = peers_.find(worker);
        earlier != peers_.end() &&
        (hello.lane == Lane::kControl ? earlier->second.control : earlier->second.bulk))
      lose(worker);
    Peer& peer = peers_[worker];
    auto& lane = hello.lane == Lane::kControl ? peer.control : peer.bulk;
    lane = channel;
    if (hello.lane == Lane::kControl) peer.memory = channel->take_file();
    if (hello.lane == Lane::kBulk && hello.mpi && courier_) {
      channel->carry_floats_by(courier_, {hello.mpi->rank, hello.mpi->tag});
      peer.by_messages = true;
    }
    auto& payload = hello.lane == Lane::kControl ? peer.control_payload : peer.bulk_payload;
    Channel::Callbacks callbacks;
    callbacks.payload_for = [this, worker, &peer,
                             &payload](const FrameHeader& header) -> Result<std::span<std::byte>> {
      if (!peer.joined) return kNotJoined;
      const auto floats = shard_.payload_floats(worker, header);
      if (!floats) return floats.error();
      payload.floats = shard_.pool().take(floats.value());
      if (header.number_type == NumberType::kFloat32)
        return std::as_writable_bytes(payload.floats->span());
      payload.halves.resize(floats.value());
      return std::as_writable_bytes(std::span(payload.halves));
    };
    callbacks.on_frame = [this, worker, &peer, &payload](const FrameHeader& header) {
      if (!peer.joined) return Status(kNotJoined);
      if (header.type == FrameType::kTaken) return on_taken(peer, header.place);
      if (payload.floats && header.number_type != NumberType::kFloat32)
        widen(header.number_type, payload.halves, payload.floats->span());
      ConstBuffer values = std::exchange(payload.floats, nullptr);
      if ((header.flags & kInPlaceFlag) != 0) {
        auto view = view_of(worker, peer, header);
        if (!view) return Status(view.error());
        values = std::move(view).value();
      }
      if (header.type == FrameType::kBlock) note_losses(peer);
      Status status = done();
      work([&](Outbox& out) {
        status = shard_.on_frame(worker, header, std::move(values), clock_now(), out);
      });
      return status;
    };
    callbacks.on_control = [this, worker, &peer](const Control& message) {
      const auto* rate = std::get_if<LearningRate>(&message);
      if (rate == nullptr || !shard_.knows(worker))
        return Status(invalid_input("a message that shards do not take"));
      return peer.joined ? shard_.on_rate(worker, *rate) : Status(kNotJoined);
    };
    callbacks.on_closed = [this, worker](const Error&) { lose(worker); };
    channel->replace_callbacks(std::move(callbacks));
    join_if_complete(worker);
    return done();
  }

  void join_if_complete(WorkerId worker) {
    Peer& peer = peers_.at(worker);
    if (peer.joined || !peer.control || !peer.bulk || !shard_.has_plan()) return;
    if (published_.reserved() && peer.memory.open()) {
      auto view = GradientView::map(std::move(peer.memory), gradient_floats_);
      if (!view) {
        peer.control->refuse(view.error());
        return lose(worker);
      }
      peer.gradients = std::move(view).value();
    }
    peer.joined = true;
    work([&](Outbox& out) { shard_.on_joined(worker, out); });
  }

  Status share_memory(const Plan& plan) {
    if (settings_.sharing == Sharing::kNo) return done();
    const Status reserved = published_.reserve(plan.blocks, settings_.id);
    return settings_.sharing == Sharing::kMust ? reserved : done();
  }

  // What an offer in place offers.
  Result<ConstBuffer> view_of(WorkerId worker, const Peer& peer, const FrameHeader& header) {
    const auto floats = shard_.payload_floats(worker, header);
    if (!floats) return floats.error();
    if (!peer.gradients || floats.value() == 0)
      return invalid_input("a block is offered in memory that is not shared");
    return peer.gradients->block(header.place, header.step, shard_.block(header.block));
  }

  static Status on_taken(Peer& peer, uint32_t place) {
    const auto found = peer.lent.find(place);
    if (found == peer.lent.end())
      return invalid_input("parameters were taken that had not been given");
    if (--found->second.times == 0) peer.lent.erase(found);
    return done();
  }

  // Tells a peer that reads in place where to find parameters. Returns whether that was possible.
  bool lend(Peer& peer, const Frame& frame) {
    if (!peer.gradients || frame.header.type != FrameType::kParameters) return false;
    const auto& floats = std::get<FloatSlice>(frame.payload);
    const auto place = published_.place_of(floats.buffer->data() + floats.offset);
    if (!place) return false;
    Lent& lent = peer.lent[*place];
    lent.parameters = floats.buffer;
    ++lent.times;
    FrameHeader header = frame.header;
    header.flags |= kInPlaceFlag;
    header.place = *place;
    peer.control->send({header, {}});
    return true;
  }

  // The kernel of the receiver sees a loss as packets that come before their turn.
  void note_losses(Peer& peer) {
    if (!settings_.adapt_window || !peer.bulk) return;
    const uint32_t seen = peer.bulk->packets_out_of_order();
    window_.on_block(seen != std::exchange(peer.out_of_order, seen));
    shard_.set_window(window_.bytes());
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
    while (auto part = shard_.take_checkpoint()) {
      if (is_checkpoint(part->version, plan_.checkpoint_every, plan_.steps))
        saver_.save(plan_, *part);
      if (!plan_.standby) continue;
      Outbox replica;
      source_.on_version(std::move(*part), plan_.life, replica);
      send_all(std::move(replica));
    }
  }

  // What is between the shard and its standby, and what both have let pass to the coordinator.
  void send_all(Outbox out) {
    for (Outgoing& message : out) {
      if (message.to.role == Role::kCoordinator) {
        coordinator_->send(std::move(message.frame));
      } else if (standby_) {
        standby_->send(std::move(message.frame));
      }
    }
  }

  void send(Outgoing message, TimePoint began) {
    if (message.to.role == Role::kCoordinator) {
      if (auto* control = std::get_if<Control>(&message.frame.payload)) {
        if (auto* closed = std::get_if<StepClosed>(control)) {
          closed->busy = std::exchange(busy_, Duration::zero());
          closed->closing += clock_now() - began;
        }
      }
      Outbox told;
      source_.tell(std::move(message), told);
      return send_all(std::move(told));
    }
    const WorkerId worker = message.to.role == Role::kEvaluator ? kEvaluator : message.to.index;
    const auto found = peers_.find(worker);
    if (found == peers_.end()) return;
    Peer& peer = found->second;
    if (lend(peer, message.frame)) return;
    // Nobody waits to hear that a gradient in place was taken, and waking its worker costs.
    const FrameHeader& header = message.frame.header;
    if (peer.gradients && header.type == FrameType::kAnswer && header.answer == Answer::kAccepted)
      return peer.control->send_with_next(std::move(message.frame));
    auto* const control = std::get_if<Control>(&message.frame.payload);
    auto* const connected = control != nullptr ? std::get_if<Connected>(control) : nullptr;
    if (connected != nullptr && peer.by_messages) connected->mpi_rank = settings_.port->rank();
    // What finds no room in shared memory goes where that is told of: on another lane an old
    // version could come after a newer one, or be written over it.
    const auto& lane =
        message.to.lane == Lane::kControl || peer.gradients ? peer.control : peer.bulk;
    // Who goes on without some blocks counts what comes.
    if (message.to.lane == Lane::kBulk && !weak_)
      return lane->send_latest(std::move(message.frame));
    lane->send(std::move(message.frame),
               connected != nullptr && peer.gradients ? published_.file() : -1);
  }

  void stop(const Farewell& farewell) {
    const bool failed = farewell.outcome == RunOutcome::kFailed;
    completed_ = farewell.outcome == RunOutcome::kCompleted;
    end_ = {.exit_status = failed ? 1 : 0,
            .again = farewell.again,
            .was_in = planned_ || link_ != nullptr,
            .why = farewell.reason};
    if (failed && !farewell.again) spdlog::error("stopping: {}", farewell.reason);
    loop_.stop();
  }

  const ShardSettings settings_;
  boost::asio::io_context loop_{1};
  ParameterMemory published_;
  Shard shard_;
  KeptParts& kept_;
  ReplicaSource source_;
  size_t gradient_floats_ = 0;
  bool weak_ = false;
  Alarm alarm_{loop_, [this] { work([&](Outbox& out) { shard_.on_time(clock_now(), out); }); }};
  std::unique_ptr<Doorman> doorman_;
  std::shared_ptr<Channel> coordinator_;
  std::shared_ptr<Channel> standby_;
  std::unique_ptr<StandbyLink> link_;  // if this one stands by
  boost::asio::steady_timer patience_{loop_};
  std::map<WorkerId, Peer> peers_;  // a map: callbacks point into its entries
  std::shared_ptr<MessageCourier> courier_;
  Duration busy_{};  // in the machine since the last step closed
  GrantWindow window_{settings_.window_bytes};
  Sitting end_;
  bool completed_ = false;  // the run
  bool planned_ = false;    // there is a plan, though what it goes on from may still be read
  Plan plan_;
  SideThread reader_{loop_};  // of what was saved
  // Not before the steps that led to it: a standby may hold up their news.
  CheckpointSaver saver_{
      loop_, [this](CheckpointSaved saved) {
        send({{Role::kCoordinator, 0, Lane::kControl}, control_frame(std::move(saved))},
             clock_now());
      }};
};

}  // namespace

int run_shard(const ShardSettings& settings) {
  KeptParts kept;
  return run_sittings(settings.rejoin_for, [&] { return ShardNode(settings, kept).run(); });
}

}  // namespace drover
