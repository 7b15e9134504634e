// introduce(): the connecting end's part of the handshake (node/acceptor.h).
//
// Until the accepting end has proved that it knows the token, only a nonce and a proof are sent to
// it, and every message but a Challenge is an error.
#pragma once

#include <functional>
#include <memory>

#include "node/channel.h"
#include "node/credentials.h"
#include "wire/control.h"

namespace drover {

// A channel on a new connection. It is encrypted if `key` has TLS, except on Unix sockets.
std::shared_ptr<Channel> open_channel(Socket socket, const RunKey& key, Tls::Side side);

struct Introduction {
  Hello hello;
  int file = -1;                                     // sent with `hello`, see Channel::send()
  std::function<void()> on_authenticated = nullptr;  // the accepting end has proved its identity
};

// Starts the channel. `callbacks` are called once the accepting end is authenticated; on_closed
// also before that. REQUIRES: the caller sends nothing on `channel` before on_authenticated.
void introduce(const std::shared_ptr<Channel>& channel, const RunKey& key,
               Introduction introduction, Channel::Callbacks callbacks);

}  // namespace drover
