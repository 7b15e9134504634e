// A shard's process. The test acts as its coordinator.
#include "node/shard_node.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <future>
#include <memory>
#include <string>
#include <utility>

#include "net/test_loop.h"
#include "node/acceptor.h"

namespace drover {
namespace {

const RunKey kKey{0x1234, "the token"};

using ShardNodeTest = LoopTest;

TEST_F(ShardNodeTest, AStandbyReceivesOrdersWhileItsShardDoesNotAnswer) {
  const Unanswered shard(loop_);
  bool gone = false;
  std::shared_ptr<Channel> standby;
  const std::string name = "unix:drover-shard-node-test-" + std::to_string(::getpid());
  Acceptor coordinator(loop_, Listener::open(loop_, name).value(), kKey,
                       [&](const std::shared_ptr<Channel>& channel, const Hello& hello) {
                         EXPECT_EQ(hello.role, Role::kStandby);
                         standby = channel;
                         Channel::Callbacks callbacks;
                         callbacks.on_closed = [&](const Error&) { gone = true; };
                         channel->replace_callbacks(std::move(callbacks));
                         channel->send(control_frame(StandBy{.address = shard.address()}));
                         channel->send(control_frame(Farewell{.outcome = RunOutcome::kCompleted}));
                         return done();
                       });
  auto ended = std::async(std::launch::async, [&] {
    return run_shard({.id = 2,
                      .role = Role::kStandby,
                      .key = kKey,
                      .listen = name + "-standby",
                      .coordinator = name});
  });
  ASSERT_TRUE(run_until([&] { return gone; }));
  EXPECT_EQ(ended.get(), 0);
}

}  // namespace
}  // namespace drover
