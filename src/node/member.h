// Member: a worker's or evaluator's connections to the coordinator and to all shards, on a thread
// of their own.
//
// The owner's main thread computes; this thread moves frames. The Handler is called on this thread
// only.
#pragma once

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/thread_pool.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "core/layout.h"
#include "net/message_courier.h"
#include "net/shared_memory.h"
#include "node/channel.h"
#include "node/credentials.h"
#include "node/mailbox.h"
#include "wire/outbox.h"

namespace drover {

struct MemberIdentity {
  Role role = Role::kWorker;
  uint32_t index = 0;
  RunKey key;
  std::string coordinator;  // its address

  // The id that shards use for this member.
  WorkerId worker() const { return role == Role::kEvaluator ? kEvaluator : index; }
  std::string name() const { return peer_name(role, index); }
};

class Member {
 public:
  class Handler {
   public:
    virtual ~Handler() = default;
    // The coordinator's Welcome has come; connections to the shards are about to be made.
    virtual void on_welcome(const Welcome& welcome) = 0;
    // All shards are connected. `in_place`: they read gradients from the memory that was shared
    // with them, so blocks are only offered, with kInPlaceFlag.
    virtual void on_connected(bool in_place) = 0;
    // Where to write received parameters, or those that are copied from a shard's shared memory.
    virtual Result<std::span<std::byte>> payload_for(ShardId shard, const FrameHeader& header) = 0;
    virtual Status on_frame(ShardId shard, const FrameHeader& header) = 0;
    // Whether parameters are wanted. Unwanted ones are not copied from a shard's shared memory.
    virtual bool expects(const FrameHeader& header) = 0;
    virtual void on_want_initial(ShardId shard) = 0;
    virtual void on_stop(Step step) = 0;
    virtual void on_share(const Share& share) = 0;
    virtual void on_pull_share(const PullShare& share) = 0;
    // See GradientNorm and RunLength: only a worker that brings its model has a use for them.
    virtual void on_norm(ShardId, const GradientNorm&) {}
    virtual void on_length(Step) {}
    // Sent floats of this buffer are no longer read.
    virtual void on_floats_sent(const ConstBuffer& buffer) = 0;
    // The run is over, or a peer that it needs is lost. Called once; only on_shard_left() follows.
    virtual void on_over(const Farewell& farewell) = 0;
    // After on_over(): a shard has disconnected. Nothing more comes from it.
    virtual void on_shard_left() {}
  };

  struct Extras {
    int memory = -1;                   // file of gradients to share with shards; -1: none
    std::optional<Learning> learning;  // see Hello
    uint32_t copiers = 0;              // threads that copy shared parameters; 0: this thread
    std::shared_ptr<MessagePort> port = nullptr;  // for blocks, to shards that have one too
  };
  Member(MemberIdentity identity, const Layout& layout, Handler& handler, Extras extras);
  ~Member();  // stops the thread

  // Connects to the coordinator and starts the thread.
  Status start();

  // From any thread. Messages are sent in the order of these calls.
  void send(Outbox messages) { outgoing_.put(std::move(messages)); }
  // The same, for the last messages: the loss of a peer is no error from here on.
  void send_last(Outbox messages);

 private:
  Status on_coordinator(Control message);
  void connect_shards(const Welcome& welcome);
  std::shared_ptr<Channel> open_lane(ShardId shard, Lane lane, Socket socket);
  Status on_shard(ShardId shard, const Control& message);
  Status carry_blocks_by_messages(ShardId shard, uint32_t rank);
  void connect_if_complete();
  Status take_shared(ShardId shard, const FrameHeader& header);
  void on_copied(ShardId shard, const FrameHeader& header);
  void deliver(Outbox messages);
  void lose_shard(ShardId shard, const Error& why);
  void lose(const std::string& peer, const Error& why);
  void over(const Farewell& farewell);
  Hello hello(Lane lane) const;

  const MemberIdentity identity_;
  const Layout layout_;
  Handler& handler_;
  boost::asio::io_context loop_;
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> keep_running_;
  Mailbox outgoing_{loop_, [this](Outbox messages) { deliver(std::move(messages)); }};
  std::shared_ptr<Channel> coordinator_;
  std::vector<std::unique_ptr<Dialing>> dialing_;  // to shards
  std::vector<std::shared_ptr<Channel>> control_;  // by shard; null: not connected yet
  std::vector<std::shared_ptr<Channel>> bulk_;     // the same
  size_t shards_connected_ = 0;
  size_t lanes_authenticated_ = 0;  // of shards
  const Extras extras_;
  std::shared_ptr<MessageCourier> courier_;                  // null: blocks travel on sockets
  uint32_t message_lane_ = 0;                                // MPI tag of this membership
  std::vector<std::shared_ptr<const SharedMemory>> shared_;  // by shard; null: it shares none
  boost::asio::steady_timer patience_;                       // see lose_shard()
  bool welcomed_ = false;
  bool over_ = false;
  bool shard_left_ = false;  // before on_over()
  // Versions of a block are copied in the order in which they came: each block has its strand.
  std::optional<boost::asio::thread_pool> copiers_;
  std::vector<boost::asio::strand<boost::asio::thread_pool::executor_type>> strands_;
  std::thread thread_;
};

}  // namespace drover
