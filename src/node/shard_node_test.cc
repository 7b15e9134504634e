// A shard's process, whose coordinator is played by the test.
#include "node/shard_node.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <boost/asio/basic_socket_acceptor.hpp>
#include <boost/asio/io_context.hpp>
#include <chrono>
#include <future>
#include <memory>
#include <string>
#include <utility>

#include "node/doorman.h"

namespace drover {
namespace {

constexpr auto kPatience = std::chrono::seconds(60);
const RunKey kKey{0x1234, "the token"};

// What nobody accepts, once its queue is full, stays unanswered, as on a host that has vanished.
class Unanswered {
 public:
  explicit Unanswered(boost::asio::io_context& loop) : acceptor_(loop) {
    const auto any = parse_endpoint("tcp:127.0.0.1:0").value().address;
    acceptor_.open(any.protocol());
    acceptor_.bind(any);
    acceptor_.listen(0);
    queued_ = connect_socket(loop, address(), "the queue");
    EXPECT_TRUE(queued_.ok());
  }
  std::string address() const { return to_text(acceptor_.local_endpoint()); }

 private:
  boost::asio::basic_socket_acceptor<SocketProtocol> acceptor_;
  Result<Socket> queued_ = invalid_input("not connected yet");
};

TEST(ShardNode, AStandbyHearsTheCoordinatorWhileItsShardDoesNotAnswer) {
  boost::asio::io_context loop{1};
  const Unanswered shard(loop);
  std::shared_ptr<Channel> standby;
  const std::string name = "unix:drover-shard-node-test-" + std::to_string(::getpid());
  Doorman coordinator(loop, Listener::open(loop, name).value(), kKey,
                      [&](const std::shared_ptr<Channel>& channel, const Hello& hello) {
                        EXPECT_EQ(hello.role, Role::kStandby);
                        standby = channel;
                        channel->replace_callbacks({});
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
  const auto began = std::chrono::steady_clock::now();
  while (ended.wait_for(std::chrono::seconds(0)) != std::future_status::ready &&
         std::chrono::steady_clock::now() < began + kPatience)
    loop.run_one_for(std::chrono::milliseconds(10));
  ASSERT_EQ(ended.wait_for(std::chrono::seconds(0)), std::future_status::ready);
  EXPECT_EQ(ended.get(), 0);
  standby->close();
}

}  // namespace
}  // namespace drover
