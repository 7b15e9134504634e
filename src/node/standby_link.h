// StandbyLink: a standby's connection to the process that serves, from which it receives every
// version and keeps it.
#pragma once

#include <boost/asio/io_context.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "core/float_buffer.h"
#include "net/socket.h"
#include "node/channel.h"
#include "node/credentials.h"
#include "shard/kept_parts.h"
#include "shard/replication.h"

namespace drover {

class StandbyLink {
 public:
  // `lost` is called on the loop when the connection ends or the other end breaks the protocol.
  StandbyLink(boost::asio::io_context& loop, const RunKey& key, ShardId shard, KeptParts& kept,
              std::function<void(const Error&)> lost);
  ~StandbyLink();
  StandbyLink(const StandbyLink&) = delete;
  StandbyLink& operator=(const StandbyLink&) = delete;

  void connect(const std::string& address);

 private:
  void open(Socket socket);
  template <typename Work>
  Status work(Work&& intake);

  boost::asio::io_context& loop_;
  const RunKey key_;
  const ShardId shard_;
  BufferPool pool_;
  ReplicaIntake intake_;
  SharedBuffer incoming_;
  std::function<void(const Error&)> lost_;
  std::optional<Dialing> dialing_;
  std::shared_ptr<Channel> channel_;  // null: not connected yet
};

}  // namespace drover
