// Doorman: accepts connections and lets in those that introduce themselves as members of this run.
//
// A stranger, another version or somebody without the token is told why and shut out; who says
// nothing is shut out after a while. None of that can hold up or end the run.
#pragma once

#include <boost/asio/io_context.hpp>
#include <functional>
#include <memory>
#include <string>

#include "core/ids.h"
#include "core/result.h"
#include "core/time.h"
#include "net/socket.h"
#include "node/channel.h"
#include "wire/control.h"

namespace drover {

// What members of a run know of it before they meet.
struct RunKey {
  RunId run = 0;
  std::string token;
};

// As one text, "<run>-<token>", and back.
std::string to_text(const RunKey& key);
Result<RunKey> parse_run_key(const std::string& text);

// Equal in time that does not depend on where they differ.
bool same_token(const std::string& a, const std::string& b);

class Doorman {
 public:
  static constexpr Duration kGreetingTimeout = std::chrono::seconds(5);

  // Called for every Hello with the right token; an error is the reason to refuse it. On success
  // the new owner has called replace_callbacks().
  using Admit = std::function<Status(const std::shared_ptr<Channel>&, const Hello&)>;

  Doorman(boost::asio::io_context& loop, std::unique_ptr<Listener> listener, RunKey key,
          Admit admit);

  std::string address() const { return listener_->address(); }

 private:
  void greet(Socket socket);

  boost::asio::io_context& loop_;
  const RunKey key_;
  const Admit admit_;
  std::unique_ptr<Listener> listener_;
};

}  // namespace drover
