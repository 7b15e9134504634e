#include "node/standby_link.h"

#include <unistd.h>

#include <utility>

#include "node/host.h"
#include "node/introduction.h"

namespace drover {

StandbyLink::StandbyLink(boost::asio::io_context& loop, const RunKey& key, ShardId shard,
                         KeptParts& kept, std::function<void(const Error&)> lost)
    : loop_(loop), key_(key), shard_(shard), intake_(shard, kept), lost_(std::move(lost)) {}

StandbyLink::~StandbyLink() {
  if (channel_) channel_->close();
}

void StandbyLink::connect(const std::string& address) {
  dialing_.emplace(loop_, address, peer_name(Role::kShard, shard_), [this](Result<Socket> socket) {
    if (!socket) return lost_(socket.error());
    open(std::move(socket).value());
  });
}

void StandbyLink::open(Socket socket) {
  channel_ = open_channel(std::move(socket), key_, Tls::Side::kConnects);
  Channel::Callbacks callbacks;
  callbacks.on_control = [this](const Control& message) {
    const auto* replica = std::get_if<Replica>(&message);
    if (replica == nullptr)
      return Status(invalid_input("the shard sent its standby a message other than Replica"));
    return work([&](Outbox& out) { return intake_.on_replica(*replica, out); });
  };
  callbacks.payload_for = [this](const FrameHeader& header) -> Result<std::span<std::byte>> {
    const auto floats = intake_.payload_floats(header);
    if (!floats) return floats.error();
    incoming_ = pool_.take(floats.value());
    return std::as_writable_bytes(incoming_->span());
  };
  callbacks.on_frame = [this](const FrameHeader& header) {
    return work([&](Outbox& out) {
      return intake_.on_floats(header, std::exchange(incoming_, nullptr), out);
    });
  };
  callbacks.on_closed = [this](const Error& why) {
    lost_(Error{why.kind, "lost " + peer_name(Role::kShard, shard_) +
                              ", which it stands by for: " + why.message});
  };
  introduce(channel_, key_,
            {.hello = {.role = Role::kStandby,
                       .index = shard_,
                       .lane = Lane::kBulk,
                       .host = host_name(),
                       .pid = ::getpid(),
                       .address = {},
                       .tensors = {}}},
            std::move(callbacks));
}

template <typename Work>
Status StandbyLink::work(Work&& intake) {
  Outbox out;
  Status status = intake(out);
  for (Outgoing& message : out) channel_->send(std::move(message.frame));
  return status;
}

}  // namespace drover
