#include "node/member.h"

#include <unistd.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <cstring>
#include <utility>

#include "node/host.h"
#include "node/introduction.h"
#include "node/shared_floats.h"
#include "worker/welcome_check.h"

namespace drover {
namespace {

constexpr size_t kSharedBytesMax = size_t{1} << 40;  // a shard's parameters, mapped but not touched
constexpr Duration kPatience = std::chrono::milliseconds(500);

}  // namespace

Member::Member(MemberIdentity identity, const Layout& layout, Handler& handler, Extras extras)
    : identity_(std::move(identity)),
      layout_(layout),
      handler_(handler),
      loop_(1),
      keep_running_(boost::asio::make_work_guard(loop_)),
      extras_(std::move(extras)),
      patience_(loop_) {
  if (extras_.port) {
    courier_ = std::make_shared<MessageCourier>(loop_.get_executor(), *extras_.port);
    message_lane_ = extras_.port->new_lane();
  }
  if (extras_.copiers == 0) return;
  copiers_.emplace(extras_.copiers);
  for (uint32_t i = 0; i < extras_.copiers; ++i) strands_.push_back(make_strand(*copiers_));
}

Member::~Member() {
  boost::asio::post(loop_, [this] {
    if (coordinator_) coordinator_->close();
    dialing_.clear();
    for (const auto* lanes : {&control_, &bulk_}) {
      for (const auto& channel : *lanes) {
        if (channel) channel->close();
      }
    }
    patience_.cancel();
    keep_running_.reset();
  });
  if (thread_.joinable()) thread_.join();
  if (copiers_) copiers_->join();
}

Hello Member::hello(Lane lane) const {
  Hello hello{.role = identity_.role,
              .index = identity_.index,
              .lane = lane,
              .host = host_name(),
              .pid = ::getpid(),
              .address = {},
              .tensors = {}};
  if (courier_ && lane == Lane::kBulk)
    hello.mpi = MpiPlace{.rank = extras_.port->rank(), .tag = message_lane_};
  return hello;
}

Status Member::start() {
  auto socket = connect_socket(loop_, identity_.coordinator, "the coordinator");
  if (!socket) return socket.error();
  coordinator_ = open_channel(std::move(socket).value(), identity_.key, Tls::Side::kConnects);
  Channel::Callbacks callbacks;
  callbacks.on_control = [this](Control message) { return on_coordinator(std::move(message)); };
  callbacks.on_frame = [this](const FrameHeader& header) -> Status {
    if (header.type != FrameType::kStop)
      return invalid_input("the coordinator sent a frame other than kStop");
    handler_.on_stop(header.step);
    return done();
  };
  callbacks.on_closed = [this](const Error& why) { lose("the coordinator", why); };
  Hello first = hello(Lane::kControl);
  first.tensors = layout_.tensors();
  first.learning = extras_.learning;
  introduce(coordinator_, identity_.key, {.hello = std::move(first)}, std::move(callbacks));
  thread_ = std::thread([this] { loop_.run(); });
  return done();
}

Status Member::on_coordinator(Control message) {
  if (over_) return done();
  if (const auto* welcome = std::get_if<Welcome>(&message)) {
    if (std::exchange(welcomed_, true)) return invalid_input("a second Welcome");
    const bool works = identity_.role == Role::kWorker;
    const Status fits = check_welcome(
        *welcome, layout_, works ? std::optional<WorkerId>(identity_.index) : std::nullopt);
    if (!fits) return fits;
    handler_.on_welcome(*welcome);
    connect_shards(*welcome);
  } else if (const auto* share = std::get_if<Share>(&message)) {
    handler_.on_share(*share);
  } else if (const auto* pull = std::get_if<PullShare>(&message)) {
    handler_.on_pull_share(*pull);
  } else if (const auto* length = std::get_if<RunLength>(&message)) {
    handler_.on_length(length->steps);
  } else if (const auto* farewell = std::get_if<Farewell>(&message)) {
    over(*farewell);
  }
  return done();
}

// Asynchronous: the coordinator may report meanwhile that a shard that does not answer is lost.
void Member::connect_shards(const Welcome& welcome) {
  const size_t shards = welcome.shards.size();
  shared_.resize(shards);
  control_.resize(shards);
  bulk_.resize(shards);
  for (ShardId shard = 0; shard < shards; ++shard) {
    const std::string name = peer_name(Role::kShard, shard);
    for (const Lane lane : {Lane::kControl, Lane::kBulk}) {
      dialing_.push_back(std::make_unique<Dialing>(
          loop_, welcome.shards[shard], name, [this, shard, lane, name](Result<Socket> socket) {
            if (over_) return;
            if (!socket) return lose(name, socket.error());
            (lane == Lane::kControl ? control_ : bulk_)[shard] =
                open_lane(shard, lane, std::move(socket).value());
          }));
    }
  }
}

std::shared_ptr<Channel> Member::open_lane(ShardId shard, Lane lane, Socket socket) {
  auto channel = open_channel(std::move(socket), identity_.key, Tls::Side::kConnects);
  Channel::Callbacks callbacks;
  callbacks.payload_for = [this, shard](const FrameHeader& header) {
    return handler_.payload_for(shard, header);
  };
  callbacks.on_frame = [this, shard](const FrameHeader& header) {
    const bool shared = header.type == FrameType::kParameters && (header.flags & kInPlaceFlag) != 0;
    return shared ? take_shared(shard, header) : handler_.on_frame(shard, header);
  };
  callbacks.on_control = [this, shard](const Control& message) { return on_shard(shard, message); };
  callbacks.on_closed = [this, shard](const Error& why) { lose_shard(shard, why); };
  callbacks.on_floats_sent = [this](const ConstBuffer& buffer) { handler_.on_floats_sent(buffer); };
  introduce(channel, identity_.key,
            {.hello = hello(lane),
             .file = lane == Lane::kControl ? extras_.memory : -1,
             .on_authenticated =
                 [this] {
                   ++lanes_authenticated_;
                   connect_if_complete();
                 }},
            std::move(callbacks));
  return channel;
}

Status Member::on_shard(ShardId shard, const Control& message) {
  if (std::holds_alternative<WantInitial>(message)) handler_.on_want_initial(shard);
  if (const auto* norm = std::get_if<GradientNorm>(&message)) handler_.on_norm(shard, *norm);
  const auto* connected = std::get_if<Connected>(&message);
  if (connected == nullptr) return done();
  if (connected->mpi_rank) {
    const Status carried = carry_blocks_by_messages(shard, *connected->mpi_rank);
    if (!carried) return carried;
  }
  if (Descriptor file = control_[shard]->take_file(); file.open()) {
    auto memory =
        SharedMemory::map(std::move(file), 1, kSharedBytesMax, SharedMemory::Pages::kWhenTouched);
    if (!memory) return memory.error();
    shared_[shard] = std::move(memory).value();
  }
  ++shards_connected_;
  connect_if_complete();
  return done();
}

Status Member::carry_blocks_by_messages(ShardId shard, uint32_t rank) {
  const MessageAddress address{rank, message_lane_};
  if (!courier_ || !extras_.port->reaches(address))
    return invalid_input("there is no other MPI rank " + std::to_string(rank));
  bulk_[shard]->carry_floats_by(courier_, address);
  return done();
}

// A shard may send Connected before its other lane is authenticated.
void Member::connect_if_complete() {
  if (shards_connected_ != shared_.size() || lanes_authenticated_ != 2 * shared_.size()) return;
  handler_.on_connected(std::all_of(shared_.begin(), shared_.end(),
                                    [](const auto& memory) { return memory != nullptr; }));
  coordinator_->send(control_frame(Ready{}));
}

// The shard does not overwrite them until it receives kTaken.
Status Member::take_shared(ShardId shard, const FrameHeader& header) {
  if (!shared_[shard]) return invalid_input("parameters in memory that is not shared");
  const auto into = handler_.payload_for(shard, header);
  if (!into) return into.error();
  const auto from = published_at(*shared_[shard], header.place, into.value().size());
  if (!from) return from.error();
  if (!handler_.expects(header)) {
    on_copied(shard, header);
    return done();
  }
  const auto copy = [to = into.value(), from = from.value()] {
    std::memcpy(to.data(), from.data(), to.size());
  };
  if (!copiers_) {
    copy();
    on_copied(shard, header);
    return done();
  }
  boost::asio::post(strands_[header.block % strands_.size()], [this, shard, header, copy] {
    copy();
    boost::asio::post(loop_, [this, shard, header] { on_copied(shard, header); });
  });
  return done();
}

void Member::on_copied(ShardId shard, const FrameHeader& header) {
  // Not urgent: the shard has space for several versions.
  control_[shard]->send_with_next(
      {{.type = FrameType::kTaken, .worker = identity_.worker(), .place = header.place}, {}});
  if (const Status taken = handler_.on_frame(shard, header); !taken)
    lose(peer_name(Role::kShard, shard), taken.error());
}

void Member::send_last(Outbox messages) {
  send(std::move(messages));
  boost::asio::post(loop_, [this] {
    outgoing_.empty();
    over_ = true;
  });
}

void Member::deliver(Outbox messages) {
  for (Outgoing& message : messages) {
    if (message.to.role == Role::kCoordinator) {
      coordinator_->send(std::move(message.frame));
    } else {
      auto& lanes = message.to.lane == Lane::kControl ? control_ : bulk_;
      if (message.to.index < lanes.size() && lanes[message.to.index])
        lanes[message.to.index]->send(std::move(message.frame));
    }
  }
}

// The end of a shard's connection may be seen before the coordinator's Farewell, which has the
// better reason: that the run is over, or how the shard ended. So wait a moment for it.
void Member::lose_shard(ShardId shard, const Error& why) {
  if (over_) return handler_.on_shard_left();
  if (std::exchange(shard_left_, true)) return;  // the first lost lane has the reason
  patience_.expires_after(kPatience);
  patience_.async_wait([this, shard, why](const boost::system::error_code& error) {
    if (!error) lose(peer_name(Role::kShard, shard), why);
  });
}

void Member::lose(const std::string& peer, const Error& why) {
  if (over_) return;
  const std::string reason = "lost " + peer + ": " + why.message;
  // The coordinator may not know yet.
  if (coordinator_)
    coordinator_->send(control_frame(Farewell{.outcome = RunOutcome::kFailed, .reason = reason}));
  over(Farewell{.outcome = RunOutcome::kFailed,
                .reason = reason,
                .rejoin = why.kind == ErrorKind::kDisconnected});
}

void Member::over(const Farewell& farewell) {
  if (std::exchange(over_, true)) return;
  handler_.on_over(farewell);
  if (shard_left_) handler_.on_shard_left();
}

}  // namespace drover
