#include "node/acceptor.h"

#include <spdlog/spdlog.h>

#include <utility>

#include "node/clock.h"
#include "node/introduction.h"
#include "wire/limits.h"

namespace drover {

Acceptor::Acceptor(boost::asio::io_context& loop, std::unique_ptr<Listener> listener, RunKey key,
                   Admit admit, size_t strangers_max)
    : key_(std::move(key)),
      admit_(std::move(admit)),
      strangers_max_(strangers_max),
      timer_(loop, [this] { give_up_late(); }),
      listener_(std::move(listener)) {
  listener_->start([this](Socket socket) { greet(std::move(socket)); });
}

Acceptor::~Acceptor() {
  for (const auto& [id, stranger] : strangers_) stranger.channel->close();
}

void Acceptor::greet(Socket socket) {
  boost::system::error_code gone;
  const Location from = location_of(socket.remote_endpoint(gone));
  if (gone || guard_.is_shut_out(from.host, clock_now())) return;
  if (strangers_.size() >= strangers_max_) {
    strangers_.begin()->second.channel->close();
    strangers_.erase(strangers_.begin());
  }
  const uint64_t id = next_++;
  Stranger& stranger = strangers_[id];
  stranger.from = from;
  stranger.channel = open_channel(std::move(socket), key_, Tls::Side::kAccepts);
  stranger.channel->limit_control(kStrangerBytesMax);
  stranger.until = clock_now() + kGreetingTimeout;
  stranger.nonces.acceptor = make_nonce();
  const auto channel = stranger.channel;
  Channel::Callbacks callbacks;
  callbacks.on_control = [this, id](const Control& message) { return hear(id, message); };
  callbacks.on_closed = [this, id](const Error& why) { lose(id, why); };
  const std::string nonce = stranger.nonces.acceptor;
  set_alarm();
  channel->start(std::move(callbacks));  // which may be the stranger's end
  channel->send(control_frame(Challenge{.nonce = nonce}));
}

Status Acceptor::hear(uint64_t id, const Control& message) {
  Stranger& stranger = strangers_.at(id);
  if (!stranger.proved) {
    const auto* challenge = std::get_if<Challenge>(&message);
    if (challenge == nullptr) return invalid_input("a connection must begin with a greeting");
    return check_proof(stranger, *challenge);
  }
  const auto* hello = std::get_if<Hello>(&message);
  if (hello == nullptr) return invalid_input("a greeting must end with who it is");
  const auto channel = stranger.channel;
  Status admitted = admit_(channel, *hello);
  // Who is refused is told by the channel, and forgotten when that has closed.
  if (admitted) strangers_.erase(id);
  if (admitted) set_alarm();
  return admitted;
}

Status Acceptor::check_proof(Stranger& stranger, const Challenge& challenge) {
  if (stranger.nonces.connector.empty()) {
    if (challenge.nonce.empty()) return invalid_input("a challenge without a nonce");
    stranger.nonces.connector = challenge.nonce;
    return done();
  }
  if (!same_proof(challenge.proof, prove_connector(key_, stranger.nonces)))
    return invalid_input("the token is not that of this run");
  stranger.proved = true;
  guard_.on_member(stranger.from.host);
  stranger.channel->limit_control(kControlBytesMax);
  stranger.channel->send(control_frame(Challenge{.proof = prove_acceptor(key_, stranger.nonces)}));
  return done();
}

void Acceptor::lose(uint64_t id, const Error& why) {
  const Stranger stranger = std::move(strangers_.at(id));
  strangers_.erase(id);
  set_alarm();
  if (stranger.proved) return;
  // Who goes without a word has only looked whether somebody is here, as ranks of a cluster do.
  if (stranger.nonces.connector.empty() && why.message == kConnectionClosed) return;
  const bool first = guard_.on_failure(stranger.from.host, stranger.from.near, clock_now());
  // A process of this machine that was killed is told elsewhere.
  if (!first || (stranger.from.near && why.kind == ErrorKind::kDisconnected)) return;
  spdlog::warn("a connection from {} was not let in: {}; more of them are not told",
               stranger.from.host, why.message);
}

void Acceptor::give_up_late() {
  const TimePoint now = clock_now();
  while (!strangers_.empty() && strangers_.begin()->second.until <= now) {
    const Error late{ErrorKind::kTimedOut, "it did not introduce itself in time"};
    strangers_.begin()->second.channel->refuse(late);
    lose(strangers_.begin()->first, late);
  }
  set_alarm();
}

void Acceptor::set_alarm() {
  if (strangers_.empty()) return timer_.set({});
  timer_.set(strangers_.begin()->second.until);
}

}  // namespace drover
