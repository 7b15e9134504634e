#include "node/shard_node.h"

#include <spdlog/spdlog.h>
#include <unistd.h>

#include <utility>
#include <vector>

#include "node/clock.h"
#include "node/host.h"
#include "node/introduction.h"

namespace drover {
namespace {

// How long a standby waits for the coordinator's order after its shard is lost.
constexpr Duration kPatience = std::chrono::seconds(2);

const Error kNotJoined =
    invalid_input("blocks can be sent only when control and bulk are both connected");

}  // namespace

ShardNode::ShardNode(const ShardSettings& settings, KeptParts& kept)
    : settings_(settings),
      shard_(settings.id, settings.window_bytes,
             [this](size_t floats) { return published_.make(floats); }),
      kept_(kept),
      timer_(loop_, [this] { work([&](Outbox& out) { shard_.on_time(clock_now(), out); }); }),
      standby_(settings.id, kept, [this](Frame frame) { coordinator_->send(std::move(frame)); }),
      saver_(loop_, [this](CheckpointSaved saved) {
        send_to_coordinator(std::move(saved), clock_now());
      }) {
  if (settings_.port)
    courier_ = std::make_shared<MessageCourier>(loop_.get_executor(), *settings_.port);
}

Attempt ShardNode::run() {
  if (const Status started = start(); !started) {
    return {.exit_status = 1,
            .again = started.error().kind == ErrorKind::kDisconnected,
            .joined = false,
            .why = started.error().message};
  }
  loop_.run();
  // The courier writes to memory of peers: close it first.
  if (courier_) courier_->close();
  if (settings_.port && end_.outcome == RunOutcome::kCompleted) settings_.port->finish();
  return {.exit_status = end_.outcome == RunOutcome::kFailed ? 1 : 0,
          .again = end_.rejoin,
          .joined = plan_ || link_ != nullptr,
          .why = end_.reason};
}

Status ShardNode::start() {
  auto listener = Listener::open(loop_, settings_.listen);
  if (!listener) return listener.error();
  acceptor_ =
      std::make_unique<Acceptor>(loop_, std::move(listener).value(), settings_.key,
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
                  .rejoin = why.kind == ErrorKind::kDisconnected});
  };
  introduce(coordinator_, settings_.key,
            {.hello = {.role = settings_.role,
                       .index = settings_.id,
                       .lane = Lane::kControl,
                       .host = host_name(),
                       .pid = ::getpid(),
                       .address = acceptor_->address(),
                       .tensors = {},
                       .kept = kept_.versions()}},
            std::move(callbacks));
  return done();
}

Status ShardNode::on_coordinator(const Control& message) {
  if (const auto* plan = std::get_if<Plan>(&message)) {
    if (plan_ || link_) return invalid_input("a second Plan");
    return on_first_plan(*plan);
  }
  if (const auto* decision = std::get_if<Decision>(&message)) {
    if (!shard_.has_plan()) return invalid_input("a Decision before the Plan");
    if (const Status sane = shard_.check_decision(*decision); !sane) return sane;
    work([&](Outbox& out) { shard_.on_decision(*decision, clock_now(), out); });
    standby_.on_decision(decision->step);
  } else if (const auto* length = std::get_if<RunLength>(&message)) {
    if (!shard_.has_plan()) return invalid_input("the run's length before the plan");
    Status may = done();
    work([&](Outbox&) {
      may = shard_.on_length(length->steps);
      if (may) plan_->steps = length->steps;
    });
    return may;
  } else if (const auto* stand_by = std::get_if<StandBy>(&message)) {
    if (plan_ || link_) return invalid_input("StandBy after a Plan or another StandBy");
    stand_by_for(stand_by->address);
  } else if (const auto* farewell = std::get_if<Farewell>(&message)) {
    stop(*farewell);
  }
  return done();
}

Status ShardNode::on_first_plan(const Plan& plan) {
  if (const Status shared = share_memory(plan); !shared) {
    stop(Farewell{.outcome = RunOutcome::kFailed,
                  .reason = shared.error().message + "; try --transport uds"});
    return done();
  }
  plan_ = plan;
  load(plan);
  return done();
}

Status ShardNode::share_memory(const Plan& plan) {
  if (settings_.sharing == Sharing::kNo) return done();
  const Status reserved = published_.reserve(plan.blocks, settings_.id);
  return settings_.sharing == Sharing::kMust ? reserved : done();
}

// A checkpoint is read beside the loop, so that the heartbeat continues however long that takes.
void ShardNode::load(const Plan& plan) {
  if (plan.kept) {
    const auto blocks =
        kept_blocks(plan, settings_.id, kept_, peer_name(settings_.role, settings_.id));
    kept_.keep_only(*plan.kept);
    return begin(blocks);
  }
  kept_.clear();
  if (plan.resume_from.empty()) return begin(SavedBlocks());
  const bool started =
      reader_.begin([plan, shard = settings_.id] { return read_saved(plan, shard); },
                    [this](const Result<SavedBlocks>& saved) { begin(saved); });
  if (!started) begin(system_error("cannot start a thread to read " + plan.resume_from));
}

void ShardNode::begin(const Result<SavedBlocks>& saved) {
  if (!saved) {
    // The coordinator ends the run and sends all others the reason.
    return coordinator_->send(
        control_frame(Farewell{.outcome = RunOutcome::kFailed, .reason = saved.error().message}));
  }
  shard_.on_plan(*plan_);
  if (saved.value()) shard_.restore(*saved.value());
  // A copy: joining may lose a peer and erase its entry.
  std::vector<WorkerId> waiting;
  for (const auto& [worker, peer] : peers_) waiting.push_back(worker);
  for (const WorkerId worker : waiting) join_if_complete(worker);
}

// Another process serves, and this one keeps its versions. When that process is lost the
// coordinator sends the next order; if none comes, this one rejoins the run.
void ShardNode::stand_by_for(const std::string& address) {
  link_ = std::make_unique<StandbyLink>(
      loop_, settings_.key, settings_.id, kept_, [this](const Error& why) {
        patience_.expires_after(kPatience);
        patience_.async_wait([this, why](const boost::system::error_code& error) {
          if (!error)
            stop(Farewell{.outcome = RunOutcome::kFailed, .reason = why.message, .rejoin = true});
        });
      });
  link_->connect(address);
}

Status ShardNode::admit_standby(const std::shared_ptr<Channel>& channel, const Hello& hello) {
  if (!plan_ || !plan_->standby || hello.index != settings_.id || hello.lane != Lane::kBulk)
    return invalid_input("shard " + std::to_string(settings_.id) +
                         " has no standby, or is not the shard of this one");
  standby_.attach(channel);
  return done();
}

Status ShardNode::check(const Hello& hello) const {
  if (hello.mpi && courier_ && !settings_.port->reaches({hello.mpi->rank, hello.mpi->tag}))
    return invalid_input("there is no other MPI rank " + std::to_string(hello.mpi->rank));
  if (hello.role != Role::kWorker && hello.role != Role::kEvaluator)
    return invalid_input("only workers and the evaluator connect to a shard");
  if (hello.role == Role::kWorker && shard_.has_plan() && !shard_.knows(hello.index))
    return invalid_input(peer_name(hello.role, hello.index) + " does not take part in this run");
  return done();
}

Status ShardNode::admit(const std::shared_ptr<Channel>& channel, const Hello& hello) {
  if (hello.role == Role::kStandby) return admit_standby(channel, hello);
  if (const Status sane = check(hello); !sane) return sane;
  const WorkerId worker = hello.role == Role::kEvaluator ? kEvaluator : hello.index;
  // The coordinator admits a worker once, so an earlier connection of this lane is of an
  // incarnation that has ended, which this shard has not noticed yet.
  if (const auto earlier = peers_.find(worker);
      earlier != peers_.end() && earlier->second.has(hello.lane))
    lose(worker);
  ShardPeer& peer = peers_.try_emplace(worker, published_).first->second;
  peer.attach(hello.lane, channel);
  if (hello.lane == Lane::kBulk && hello.mpi && courier_)
    peer.carry_floats_by(courier_, {hello.mpi->rank, hello.mpi->tag});
  channel->replace_callbacks(callbacks_for(worker, peer, hello.lane));
  join_if_complete(worker);
  return done();
}

Channel::Callbacks ShardNode::callbacks_for(WorkerId worker, ShardPeer& peer, Lane lane) {
  Channel::Callbacks callbacks;
  callbacks.payload_for = [this, worker, &peer,
                           lane](const FrameHeader& header) -> Result<std::span<std::byte>> {
    if (!peer.joined()) return kNotJoined;
    const auto floats = shard_.payload_floats(worker, header);
    if (!floats) return floats.error();
    return peer.receive(lane, header, floats.value(), shard_.pool());
  };
  callbacks.on_frame = [this, worker, &peer, lane](const FrameHeader& header) {
    return on_frame(worker, peer, lane, header);
  };
  callbacks.on_control = [this, worker, &peer](const Control& message) {
    const auto* rate = std::get_if<LearningRate>(&message);
    const auto* release = std::get_if<Release>(&message);
    if ((rate == nullptr && release == nullptr) || !shard_.knows(worker))
      return Status(invalid_input("a message that is not for shards"));
    if (!peer.joined()) return Status(kNotJoined);
    return rate ? shard_.on_rate(worker, *rate) : on_release(*release);
  };
  callbacks.on_closed = [this, worker](const Error&) { lose(worker); };
  return callbacks;
}

Status ShardNode::on_frame(WorkerId worker, ShardPeer& peer, Lane lane, const FrameHeader& header) {
  if (!peer.joined()) return kNotJoined;
  if (header.type == FrameType::kTaken) return peer.on_taken(header.place);
  ConstBuffer values = peer.take_received(lane, header);
  if ((header.flags & kInPlaceFlag) != 0) {
    const auto floats = shard_.payload_floats(worker, header);
    if (!floats) return floats.error();
    if (floats.value() == 0) return invalid_input("an offer in place without a block");
    auto block = peer.block_in_place(header, shard_.block(header.block));
    if (!block) return block.error();
    values = std::move(block).value();
  }
  if (header.type == FrameType::kBlock && settings_.adapt_window) {
    window_.on_block(peer.lost_packets());
    shard_.set_window(window_.bytes());
  }
  Status status = done();
  work([&](Outbox& out) {
    status = shard_.on_frame(worker, header, std::move(values), clock_now(), out);
  });
  return status;
}

Status ShardNode::on_release(const Release& release) {
  work([&](Outbox& out) { shard_.on_release(release, clock_now(), out); });
  return done();
}

void ShardNode::join_if_complete(WorkerId worker) {
  ShardPeer& peer = peers_.at(worker);
  if (peer.joined() || !peer.has(Lane::kControl) || !peer.has(Lane::kBulk) || !shard_.has_plan())
    return;
  if (const Status joined = peer.join(Layout(plan_->tensors).buffer_size()); !joined) {
    peer.refuse(joined.error());
    return lose(worker);
  }
  work([&](Outbox& out) { shard_.on_joined(worker, out); });
}

void ShardNode::lose(WorkerId worker) {
  auto lost = peers_.extract(worker);
  if (lost.empty()) return;
  lost.mapped().close();
  if (shard_.has_plan()) work([&](Outbox& out) { shard_.on_lost(worker, clock_now(), out); });
}

// Calls the state machine, measures how long that takes, and sends its messages.
template <typename Work>
void ShardNode::work(Work&& machine) {
  const TimePoint began = clock_now();
  Outbox out;
  machine(out);
  busy_ += clock_now() - began;
  // The machine puts new parameters before the report of the closed step, so they are sent first.
  for (Outgoing& message : out) send(std::move(message), began);
  timer_.set(shard_.wake_at());
  while (auto part = shard_.take_checkpoint()) {
    if (is_checkpoint(part->version, plan_->checkpoint_every, plan_->steps))
      saver_.save(*plan_, *part);
    // The last version may be saved a second time; see Shard::on_length().
    if (!plan_->standby || replicated_ == part->version) continue;
    replicated_ = part->version;
    standby_.on_version(std::move(*part), plan_->incarnation);
  }
}

void ShardNode::send(Outgoing message, TimePoint began) {
  if (message.to.role == Role::kCoordinator)
    return send_to_coordinator(std::get<Control>(std::move(message.frame.payload)), began);
  const WorkerId worker = message.to.role == Role::kEvaluator ? kEvaluator : message.to.index;
  const auto found = peers_.find(worker);
  if (found == peers_.end()) return;
  // With partial pull every version is sent: a worker counts those that come.
  found->second.send(message.to.lane, std::move(message.frame), !plan_->partial_pull);
}

void ShardNode::send_to_coordinator(Control message, TimePoint began) {
  if (auto* closed = std::get_if<StepClosed>(&message)) {
    closed->busy = std::exchange(busy_, Duration::zero());
    closed->closing += clock_now() - began;
  }
  standby_.send_to_coordinator({to_coordinator(), control_frame(std::move(message))});
}

void ShardNode::stop(const Farewell& farewell) {
  end_ = farewell;
  if (farewell.outcome == RunOutcome::kFailed && !farewell.rejoin)
    spdlog::error("stopping: {}", farewell.reason);
  loop_.stop();
}

int run_shard(const ShardSettings& settings) {
  KeptParts kept;
  return run_attempts(settings.rejoin_for, [&] { return ShardNode(settings, kept).run(); });
}

}  // namespace drover
