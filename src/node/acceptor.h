// Acceptor: accepts connections and lets in those that prove that they are members of this run.
//
// A greeting is Challenge from both ends (a nonce), Challenge from the one who came (a proof), then
// from here (a proof), then Hello from the one who came. A stranger, another version or somebody
// without the token is told why and shut out; who says nothing is shut out after a while; where
// such come from again and again, nobody is listened to for a while. None of that can hold up or
// end the run.
#pragma once

#include <boost/asio/io_context.hpp>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "core/result.h"
#include "core/time.h"
#include "net/socket.h"
#include "node/channel.h"
#include "node/connection_limiter.h"
#include "node/credentials.h"
#include "node/timer.h"
#include "wire/control.h"

namespace drover {

class Acceptor {
 public:
  // For the whole greeting: hundreds of workers that start at once on few cores take seconds.
  static constexpr Duration kGreetingTimeout = std::chrono::seconds(15);
  // At once. When more come, who has been here longest without introducing itself goes: members
  // take milliseconds.
  static constexpr size_t kStrangersMax = 4096;

  // Called for every Hello of somebody who knows the token; an error is the reason to refuse it. On
  // success the new owner has called replace_callbacks().
  using Admit = std::function<Status(const std::shared_ptr<Channel>&, const Hello&)>;

  Acceptor(boost::asio::io_context& loop, std::unique_ptr<Listener> listener, RunKey key,
           Admit admit, size_t strangers_max = kStrangersMax);
  ~Acceptor();  // shuts out who has not been let in

  std::string address() const { return listener_->address(); }
  // That have not introduced themselves yet.
  size_t strangers() const { return strangers_.size(); }

 private:
  struct Stranger {
    std::shared_ptr<Channel> channel;
    Location from;
    TimePoint until{};  // is waited for
    Nonces nonces;
    bool proved = false;
  };

  void greet(Socket socket);
  Status hear(uint64_t id, const Control& message);
  Status check_proof(Stranger& stranger, const Challenge& challenge);
  void lose(uint64_t id, const Error& why);
  void give_up_late();
  void set_alarm();

  const RunKey key_;
  const Admit admit_;
  const size_t strangers_max_;
  std::map<uint64_t, Stranger> strangers_;  // in the order in which they came
  uint64_t next_ = 0;
  ConnectionLimiter guard_;
  Timer timer_;
  std::unique_ptr<Listener> listener_;
};

}  // namespace drover
