#include "node/doorman.h"

#include <boost/asio/steady_timer.hpp>
#include <charconv>
#include <utility>

namespace drover {

std::string to_text(const RunKey& key) { return std::to_string(key.run) + "-" + key.token; }

Result<RunKey> parse_run_key(const std::string& text) {
  RunKey key;
  const char* const end = text.data() + text.size();
  const auto [stop, trouble] = std::from_chars(text.data(), end, key.run);
  if (trouble != std::errc{} || stop == end || *stop != '-' || stop + 1 == end)
    return invalid_input("the token is not one that drover makes: it looks like 123-abc");
  key.token.assign(stop + 1, end);
  return key;
}

bool same_token(const std::string& a, const std::string& b) {
  if (a.size() != b.size()) return false;
  unsigned difference = 0;
  for (size_t i = 0; i < a.size(); ++i) difference |= static_cast<unsigned char>(a[i] ^ b[i]);
  return difference == 0;
}

Doorman::Doorman(boost::asio::io_context& loop, std::unique_ptr<Listener> listener, RunKey key,
                 Admit admit)
    : loop_(loop), key_(std::move(key)), admit_(std::move(admit)), listener_(std::move(listener)) {
  listener_->start([this](Socket socket) { greet(std::move(socket)); });
}

void Doorman::greet(Socket socket) {
  auto channel = std::make_shared<Channel>(std::move(socket), key_.run);
  auto timer = std::make_shared<boost::asio::steady_timer>(loop_, kGreetingTimeout);
  // Apart from the timer: one that has just expired cannot be cancelled any more.
  auto admitted = std::make_shared<bool>(false);
  timer->async_wait([channel, admitted](const boost::system::error_code& error) {
    if (!error && !*admitted) channel->close();
  });
  // Weak: the channel owns this callback. It is kept alive by the read that is under way.
  Channel::Callbacks callbacks;
  callbacks.on_control = [this, timer, admitted,
                          weak = std::weak_ptr(channel)](const Control& message) -> Status {
    *admitted = true;
    timer->cancel();
    const auto self = weak.lock();
    const auto* hello = std::get_if<Hello>(&message);
    if (!self || hello == nullptr) return invalid_input("a connection must begin with a greeting");
    if (!same_token(hello->token, key_.token))
      return invalid_input("the token is not that of this run");
    return admit_(self, *hello);
  };
  callbacks.on_closed = [timer](const Error&) { timer->cancel(); };
  channel->start(std::move(callbacks));
}

}  // namespace drover
