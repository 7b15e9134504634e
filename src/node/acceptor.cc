#include "node/acceptor.h"

#include <spdlog/spdlog.h>

#include <utility>

#include "node/clock.h"
#include "node/introduction.h"
#include "wire/limits.h"

namespace drover {

Acceptor::Acceptor(boost::asio::io_context& loop, std::unique_ptr<Listener> listener, RunKey key,
                   Admit admit, size_t pending_max)
    : key_(std::move(key)),
      admit_(std::move(admit)),
      pending_max_(pending_max),
      timer_(loop, [this] { close_expired(); }),
      listener_(std::move(listener)) {
  listener_->start([this](Socket socket) { begin_handshake(std::move(socket)); });
}

Acceptor::~Acceptor() {
  for (const auto& [id, peer] : pending_) peer.channel->close();
}

void Acceptor::begin_handshake(Socket socket) {
  boost::system::error_code gone;
  const Location from = location_of(socket.remote_endpoint(gone));
  if (gone || limiter_.is_blocked(from.host, clock_now())) return;
  if (pending_.size() >= pending_max_) {
    pending_.begin()->second.channel->close();
    pending_.erase(pending_.begin());
  }
  const uint64_t id = next_++;
  PendingPeer& peer = pending_[id];
  peer.from = from;
  peer.channel = open_channel(std::move(socket), key_, Tls::Side::kAccepts);
  peer.channel->limit_control(kUnauthenticatedBytesMax);
  peer.deadline = clock_now() + kHandshakeTimeout;
  peer.nonces.acceptor = make_nonce();
  const auto channel = peer.channel;
  Channel::Callbacks callbacks;
  callbacks.on_control = [this, id](const Control& message) { return on_control(id, message); };
  callbacks.on_closed = [this, id](const Error& why) { on_failed(id, why); };
  const std::string nonce = peer.nonces.acceptor;
  set_timer();
  channel->start(std::move(callbacks));  // may erase `peer`
  channel->send(control_frame(Challenge{.nonce = nonce}));
}

Status Acceptor::on_control(uint64_t id, const Control& message) {
  PendingPeer& peer = pending_.at(id);
  if (!peer.authenticated) {
    const auto* challenge = std::get_if<Challenge>(&message);
    if (challenge == nullptr) return invalid_input("a connection must begin with a Challenge");
    return check_proof(peer, *challenge);
  }
  const auto* hello = std::get_if<Hello>(&message);
  if (hello == nullptr) return invalid_input("the proof must be followed by Hello");
  const auto channel = peer.channel;
  Status admitted = admit_(channel, *hello);
  // Otherwise the channel sends the reason, and on_failed() removes the entry when it has closed.
  if (admitted) pending_.erase(id);
  if (admitted) set_timer();
  return admitted;
}

Status Acceptor::check_proof(PendingPeer& peer, const Challenge& challenge) {
  if (peer.nonces.connector.empty()) {
    if (challenge.nonce.empty()) return invalid_input("a Challenge without a nonce");
    peer.nonces.connector = challenge.nonce;
    return done();
  }
  if (!same_proof(challenge.proof, prove_connector(key_, peer.nonces)))
    return invalid_input("the token is not that of this run");
  peer.authenticated = true;
  limiter_.on_member(peer.from.host);
  peer.channel->limit_control(kControlBytesMax);
  peer.channel->send(control_frame(Challenge{.proof = prove_acceptor(key_, peer.nonces)}));
  return done();
}

void Acceptor::on_failed(uint64_t id, const Error& why) {
  const PendingPeer peer = std::move(pending_.at(id));
  pending_.erase(id);
  set_timer();
  if (peer.authenticated) return;
  // A probe connection that closes without sending anything, as ranks of a cluster make.
  if (peer.nonces.connector.empty() && why.message == kConnectionClosed) return;
  const bool report = limiter_.on_failure(peer.from.host, peer.from.near, clock_now());
  // The launcher reports local processes that were killed.
  if (!report || (peer.from.near && why.kind == ErrorKind::kDisconnected)) return;
  spdlog::warn("rejected connection from {}: {} (further rejections suppressed for an hour)",
               peer.from.host, why.message);
}

void Acceptor::close_expired() {
  const TimePoint now = clock_now();
  while (!pending_.empty() && pending_.begin()->second.deadline <= now) {
    const Error late{ErrorKind::kTimedOut, "the handshake timed out"};
    pending_.begin()->second.channel->refuse(late);
    on_failed(pending_.begin()->first, late);
  }
  set_timer();
}

void Acceptor::set_timer() {
  if (pending_.empty()) return timer_.set({});
  timer_.set(pending_.begin()->second.deadline);
}

}  // namespace drover
