#include "node/introduction.h"

#include <sys/socket.h>

#include <utility>

namespace drover {
namespace {

struct Handshake {
  RunKey key;
  Nonces nonces;
  Introduction introduction;
  Channel::Callbacks callbacks;
};

Status answer(Handshake& state, Channel& channel, const Control& message) {
  const auto* challenge = std::get_if<Challenge>(&message);
  if (challenge == nullptr)
    return invalid_input("a message before the peer has proved that it knows this run's token");
  if (state.nonces.acceptor.empty()) {
    if (challenge->nonce.empty()) return invalid_input("a Challenge without a nonce");
    state.nonces.acceptor = challenge->nonce;
    channel.send(control_frame(Challenge{.proof = prove_connector(state.key, state.nonces)}));
    return done();
  }
  if (!same_proof(challenge->proof, prove_acceptor(state.key, state.nonces)))
    return invalid_input("the process that accepted the connection has another token");
  channel.send(control_frame(std::move(state.introduction.hello)), state.introduction.file);
  const auto on_authenticated = std::move(state.introduction.on_authenticated);
  channel.replace_callbacks(std::move(state.callbacks));
  if (on_authenticated) on_authenticated();
  return done();
}

// A peer that speaks TLS closes without a reason.
Error explain(Error why, bool may_be_tls) {
  if (why.kind != ErrorKind::kDisconnected || !may_be_tls) return why;
  why.message +=
      " during the handshake; does the run use TLS (--tls), or does the address belong to another "
      "program?";
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
  const auto state = std::make_shared<Handshake>(
      Handshake{key, {}, std::move(introduction), std::move(callbacks)});
  state->nonces.connector = make_nonce();
  Channel::Callbacks first;
  // A weak_ptr: the channel owns this callback.
  first.on_control = [state, observed = std::weak_ptr(channel)](const Control& message) -> Status {
    const auto self = observed.lock();
    return self ? answer(*state, *self, message) : done();
  };
  const bool may_be_tls = !channel->is_local() && key.tls == nullptr;
  first.on_closed = [state, may_be_tls, observed = std::weak_ptr(channel)](const Error& why) {
    const auto self = observed.lock();
    const bool refused = self && self->was_refused();
    if (state->callbacks.on_closed)
      state->callbacks.on_closed(refused ? why : explain(why, may_be_tls));
  };
  // Queued before anything is read: the other end's nonce may be here already, and our nonce must
  // precede the answer to it.
  channel->replace_callbacks({});
  channel->send(control_frame(Challenge{.nonce = state->nonces.connector}));
  channel->start(std::move(first));
}

}  // namespace drover
