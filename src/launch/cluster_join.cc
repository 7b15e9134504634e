#include <unistd.h>

#include <boost/asio/io_context.hpp>
#include <memory>
#include <optional>
#include <utility>

#include "launch/cluster_meeting.h"
#include "net/socket.h"
#include "node/channel.h"
#include "node/host.h"
#include "node/introduction.h"
#include "wire/limits.h"

namespace drover {

Result<PlaceOffer> ask_for_place(const std::string& address, const RunKey& key, Duration patience) {
  boost::asio::io_context loop(1);
  auto socket = connect_socket(loop, address, "the coordinator");
  if (!socket) return socket.error();
  const auto channel = open_channel(std::move(socket).value(), key, Tls::Side::kConnects);
  std::optional<Result<PlaceOffer>> answer;
  Channel::Callbacks callbacks;
  callbacks.on_control = [&](const Control& message) -> Status {
    const auto* offer = std::get_if<PlaceOffer>(&message);
    if (offer == nullptr) return invalid_input("the coordinator sent an unexpected message");
    answer = *offer;
    loop.stop();
    return done();
  };
  callbacks.on_closed = [&](const Error& why) {
    answer = Result<PlaceOffer>(
        Error{why.kind, "cannot join the run at " + address + ": " + why.message});
    loop.stop();
  };
  introduce(channel, key,
            {.hello = {.role = Role::kWorker,
                       .index = kAnyIndex,
                       .lane = Lane::kControl,
                       .host = host_name(),
                       .pid = ::getpid(),
                       .address = {},
                       .tensors = {}}},
            std::move(callbacks));
  loop.run_for(patience);
  channel->close();
  if (answer) return std::move(*answer);
  return Error{ErrorKind::kTimedOut, "the coordinator at " + address + " does not answer"};
}

}  // namespace drover
