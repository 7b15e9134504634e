#include "node/standby_feed.h"

#include <utility>

namespace drover {

void StandbyFeed::attach(const std::shared_ptr<Channel>& channel) {
  if (channel_) channel_->close();
  channel_ = channel;
  Channel::Callbacks callbacks;
  callbacks.on_control = [this](const Control& message) {
    const auto* replicated = std::get_if<Replicated>(&message);
    if (replicated == nullptr)
      return Status(invalid_input("a standby sent a message other than Replicated"));
    Outbox out;
    Status status = source_.on_replicated(*replicated, out);
    send_all(std::move(out));
    return status;
  };
  callbacks.on_closed = [this](const Error&) {
    channel_.reset();
    Outbox out;
    source_.on_standby_lost(out);
    send_all(std::move(out));
  };
  channel->replace_callbacks(std::move(callbacks));
  Outbox out;
  source_.on_standby(out);
  send_all(std::move(out));
}

void StandbyFeed::on_version(CheckpointPart part, uint64_t incarnation) {
  Outbox out;
  source_.on_version(std::move(part), incarnation, out);
  send_all(std::move(out));
}

void StandbyFeed::send_to_coordinator(Outgoing message) {
  Outbox out;
  source_.send_to_coordinator(std::move(message), out);
  send_all(std::move(out));
}

void StandbyFeed::send_all(Outbox out) {
  for (Outgoing& message : out) {
    if (message.to.role == Role::kCoordinator) {
      send_(std::move(message.frame));
    } else if (channel_) {
      channel_->send(std::move(message.frame));
    }
  }
}

}  // namespace drover
