#include "node/introduction.h"

#include <sys/socket.h>

#include <utility>

namespace drover {
namespace {

struct Acquaintance {
  RunKey key;
  Nonces nonces;
  Introduction introduction;
  Channel::Callbacks callbacks;
};

Status answer(Acquaintance& state, Channel& channel, const Control& message) {
  const auto* challenge = std::get_if<Challenge>(&message);
  if (challenge == nullptr)
    return invalid_input("a message from somebody who has not proved to belong to this run");
  if (state.nonces.acceptor.empty()) {
    if (challenge->nonce.empty()) return invalid_input("a challenge without a nonce");
    state.nonces.acceptor = challenge->nonce;
    channel.send(control_frame(Challenge{.proof = prove_connector(state.key, state.nonces)}));
    return done();
  }
  if (!same_proof(challenge->proof, prove_acceptor(state.key, state.nonces)))
    return invalid_input("whoever accepted the connection does not know this run's token");
  channel.send(control_frame(std::move(state.introduction.hello)), state.introduction.file);
  const auto believed = std::move(state.introduction.on_believed);
  channel.replace_callbacks(std::move(state.callbacks));
  if (believed) believed();
  return done();
}

// Nobody says why it closes to somebody whose language it does not speak.
Error explain(Error why, bool may_be_tls) {
  if (why.kind != ErrorKind::kDisconnected || !may_be_tls || why.message.starts_with("it refused"))
    return why;
  why.message +=
      " before it had introduced itself; does the run use TLS (--tls), or is this "
      "address somebody else's?";
  return why;
}

}  // namespace

std::shared_ptr<Channel> open_channel(Socket socket, const RunKey& key, Tls::Side side) {
  boost::system::error_code gone;
  const bool local = socket.local_endpoint(gone).protocol().family() == AF_UNIX;
  auto session = key.tls && !local ? key.tls->session(side, socket.native_handle()) : nullptr;
  return std::make_shared<Channel>(std::move(socket), key.run, std::move(session));
}

void introduce(const std::shared_ptr<Channel>& channel, const RunKey& key,
               Introduction introduction, Channel::Callbacks callbacks) {
  const auto state = std::make_shared<Acquaintance>(
      Acquaintance{key, {}, std::move(introduction), std::move(callbacks)});
  state->nonces.connector = make_nonce();
  Channel::Callbacks first;
  // Weak: the channel owns this callback.
  first.on_control = [state, weak = std::weak_ptr(channel)](const Control& message) -> Status {
    const auto self = weak.lock();
    return self ? answer(*state, *self, message) : done();
  };
  const bool may_be_tls = !channel->is_local() && key.tls == nullptr;
  first.on_closed = [state, may_be_tls](const Error& why) {
    if (state->callbacks.on_closed) state->callbacks.on_closed(explain(why, may_be_tls));
  };
  // Queued before anything is read: the other end may have spoken already, and the nonce must come
  // before the answer.
  channel->replace_callbacks({});
  channel->send(control_frame(Challenge{.nonce = state->nonces.connector}));
  channel->start(std::move(first));
}

}  // namespace drover
