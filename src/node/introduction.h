// introduce(): begins a conversation with whoever accepted a connection of ours.
//
// Nothing that the other end says is believed, and nothing but a nonce and a proof is told to it,
// before it has proved that it belongs to the run.
#pragma once

#include <functional>
#include <memory>

#include "node/channel.h"
#include "node/credentials.h"
#include "wire/control.h"

namespace drover {

// A channel on a new connection, encrypted where the run wants that: what goes between processes of
// one machine over Unix sockets is not.
std::shared_ptr<Channel> open_channel(Socket socket, const RunKey& key, Tls::Side side);

struct Introduction {
  Hello hello;
  int file = -1;                                // goes with it, see Channel::send()
  std::function<void()> on_believed = nullptr;  // the other end has proved who it is
};

// Starts the channel. `callbacks` are called from the moment at which the other end is believed;
// on_closed also before that. What is sent meanwhile by others goes unheard: send nothing until
// on_believed.
void introduce(const std::shared_ptr<Channel>& channel, const RunKey& key,
               Introduction introduction, Channel::Callbacks callbacks);

}  // namespace drover
