// ShardNode: the shard process, which drives a Shard with sockets and the real clock.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "core/ids.h"
#include "core/time.h"
#include "net/message_courier.h"
#include "net/message_port.h"
#include "node/acceptor.h"
#include "node/attempts.h"
#include "node/background_thread.h"
#include "node/channel.h"
#include "node/checkpoint_saver.h"
#include "node/saved_blocks.h"
#include "node/shard_peer.h"
#include "node/shared_floats.h"
#include "node/standby_feed.h"
#include "node/standby_link.h"
#include "node/timer.h"
#include "shard/grant_window.h"
#include "shard/kept_parts.h"
#include "shard/shard.h"

namespace drover {

struct ShardSettings {
  ShardId id = 0;
  Role role = Role::kShard;  // or kStandby: the second process for this shard
  RunKey key;
  std::string listen;              // address for workers, the evaluator and the standby
  std::string coordinator;         // its address
  Sharing sharing = Sharing::kNo;  // of memory with workers
  size_t window_bytes = Shard::kWindowBytes;
  bool adapt_window = true;  // shrink the window while packets of workers get lost
  Duration rejoin_for{};     // the patience of run_attempts() (node/attempts.h)
  // For blocks, to and from workers that have a port too; null: blocks travel on sockets.
  std::shared_ptr<MessagePort> port = nullptr;
};

// One incarnation of a shard, from its connection to the coordinator until that ends.
class ShardNode {
 public:
  // `kept` outlives this, for the next incarnation.
  ShardNode(const ShardSettings& settings, KeptParts& kept);

  Attempt run();

 private:
  Status start();
  Status on_coordinator(const Control& message);
  Status on_first_plan(const Plan& plan);
  Status share_memory(const Plan& plan);
  void load(const Plan& plan);
  void begin(const Result<SavedBlocks>& saved);
  void stand_by_for(const std::string& address);

  Status admit(const std::shared_ptr<Channel>& channel, const Hello& hello);
  Status check(const Hello& hello) const;
  Status admit_standby(const std::shared_ptr<Channel>& channel, const Hello& hello);
  Channel::Callbacks callbacks_for(WorkerId worker, ShardPeer& peer, Lane lane);
  Status on_release(const Release& release);
  Status on_frame(WorkerId worker, ShardPeer& peer, Lane lane, const FrameHeader& header);
  void join_if_complete(WorkerId worker);
  void lose(WorkerId worker);

  template <typename Work>
  void work(Work&& machine);
  void send(Outgoing message, TimePoint began);
  void send_to_coordinator(Control message, TimePoint began);
  void stop(const Farewell& farewell);

  const ShardSettings settings_;
  boost::asio::io_context loop_{1};
  ParameterMemory published_;
  Shard shard_;
  KeptParts& kept_;
  Timer timer_;
  std::unique_ptr<Acceptor> acceptor_;
  std::shared_ptr<Channel> coordinator_;
  StandbyFeed standby_;
  std::unique_ptr<StandbyLink> link_;  // null: this process serves, or has no order yet
  boost::asio::steady_timer patience_{loop_};
  std::map<WorkerId, ShardPeer> peers_;  // a map: callbacks point into its entries
  std::shared_ptr<MessageCourier> courier_;
  Duration busy_{};  // in the machine since the last step closed
  GrantWindow window_{settings_.window_bytes};
  Farewell end_;
  std::optional<Plan> plan_;           // set before the saved blocks are read
  BackgroundThread reader_{loop_};     // reads saved blocks
  std::optional<Version> replicated_;  // the newest version that was sent to the standby
  // Reports through send_to_coordinator(), so that no part is reported before the steps that led to
  // it, whose reports may wait for the standby.
  CheckpointSaver saver_;
};

// Serves until the run is over. Returns the process's exit status.
int run_shard(const ShardSettings& settings);

}  // namespace drover
