// Handshakes between real sockets on one event loop: which peers are admitted and authenticated.
#include "node/acceptor.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/test_text.h"
#include "net/test_loop.h"
#include "node/introduction.h"
#include "wire/limits.h"

namespace drover {
namespace {

constexpr RunId kRun = 0x1234;
const RunKey kKey{kRun, "the token"};

// One end of a connection, and what its channel received.
struct End {
  std::shared_ptr<Channel> channel;
  std::vector<Control> controls;
  std::vector<Error> closed;

  Channel::Callbacks callbacks() {
    Channel::Callbacks result;
    result.on_control = [this](Control message) {
      controls.push_back(std::move(message));
      return done();
    };
    result.on_closed = [this](const Error& why) { closed.push_back(why); };
    return result;
  }
};

class AcceptorTest : public LoopTest {
 protected:
  AcceptorTest() {
    auto listener =
        Listener::open(loop_, "unix:drover-acceptor-test-" + std::to_string(::getpid()));
    EXPECT_TRUE(listener.ok());
    acceptor_ = std::make_unique<Acceptor>(
        loop_, std::move(listener).value(), kKey,
        [this](const std::shared_ptr<Channel>& channel, const Hello& hello) -> Status {
          if (hello.index == 13) return invalid_input("index 13 is refused");
          admitted_.push_back(hello);
          channel->replace_callbacks(admitted_end_.callbacks());
          admitted_end_.channel = channel;
          channel->send(control_frame(Ready{}));
          return done();
        });
  }
  ~AcceptorTest() override {
    if (admitted_end_.channel) admitted_end_.channel->close();
    if (client_.channel) client_.channel->close();
    acceptor_.reset();
    loop_.restart();
    loop_.poll();
  }

  void connect(RunId run = kRun) {
    auto socket = connect_socket(loop_, acceptor_->address(), "the acceptor");
    ASSERT_TRUE(socket.ok()) << socket.error().message;
    client_.channel = std::make_shared<Channel>(std::move(socket).value(), run);
  }
  // Connects as a member of the run does.
  void join(uint32_t index, const RunKey& key = kKey) {
    connect(key.run);
    introduce(client_.channel, key,
              {.hello = {.role = Role::kWorker, .index = index},
               .on_authenticated = [this] { ++authenticated_; }},
              client_.callbacks());
  }
  // Connects and sends these messages, whatever the acceptor sends.
  void send_blindly(const std::vector<Control>& messages) {
    connect();
    client_.channel->start(client_.callbacks());
    for (const Control& each : messages)
      client_.channel->send({.header = {.type = FrameType::kControl}, .payload = each});
  }

  // Waits until the client has been refused, and resets it for the next connection. Returns the
  // reason that it received.
  std::string refusal() {
    EXPECT_TRUE(run_until([&] { return !client_.closed.empty() && acceptor_->pending() == 0; }));
    EXPECT_TRUE(admitted_.empty());
    const End refused = std::exchange(client_, {});
    if (refused.closed.empty()) return "";
    EXPECT_EQ(refused.closed[0].kind, ErrorKind::kRefused);
    return refused.closed[0].message;
  }
  std::string refusal_of_another_token() {
    join(2, RunKey{kRun, "the tokem"});
    return refusal();
  }
  std::string refusal_without_a_challenge() {
    send_blindly({Ready{}});
    return refusal();
  }

  std::unique_ptr<Acceptor> acceptor_;
  std::vector<Hello> admitted_;
  int authenticated_ = 0;
  End admitted_end_;
  End client_;
};

TEST_F(AcceptorTest, AdmitsAPeerWithTheToken) {
  join(2);
  ASSERT_TRUE(run_until([&] { return client_.controls.size() == 1; }));
  ASSERT_EQ(admitted_.size(), 1U);
  EXPECT_EQ(admitted_[0].index, 2U);
  EXPECT_EQ(authenticated_, 1);
  EXPECT_TRUE(std::holds_alternative<Ready>(client_.controls[0])) << "not the challenges";
  EXPECT_TRUE(client_.closed.empty());
  EXPECT_EQ(acceptor_->pending(), 0U);
}

TEST_F(AcceptorTest, MaySendItsChallengeBeforeThePeerListens) {
  connect();
  ASSERT_TRUE(run_until([&] { return acceptor_->pending() == 1; }));
  while (loop_.poll_one() > 0) {
  }
  introduce(client_.channel, kKey, {.hello = {.role = Role::kWorker, .index = 2}},
            client_.callbacks());
  ASSERT_TRUE(run_until([&] { return !admitted_.empty() || !client_.closed.empty(); }));
  EXPECT_EQ(admitted_.size(), 1U);
}

TEST_F(AcceptorTest, RefusesAnotherTokenWithTheReason) {
  EXPECT_NE(refusal_of_another_token(), "");
  EXPECT_EQ(authenticated_, 0) << "the acceptor proved nothing to an unauthenticated peer";
}

TEST_F(AcceptorTest, RefusesAPeerOfAnotherRun) {
  join(2, RunKey{kRun + 1, "the token"});
  ASSERT_TRUE(run_until([&] { return !client_.closed.empty(); }));
  EXPECT_TRUE(admitted_.empty());
}

TEST_F(AcceptorTest, RefusesAConnectionWithoutAChallengeWithTheReason) {
  const std::string reason = refusal_without_a_challenge();
  EXPECT_NE(reason, "");
  EXPECT_NE(reason, refusal_of_another_token()) << "another reason";
}

TEST_F(AcceptorTest, RequiresAProofBeforeHello) {
  send_blindly({Challenge{.nonce = make_nonce()}, Hello{.role = Role::kWorker, .index = 2}});
  const std::string reason = refusal();
  EXPECT_EQ(reason, refusal_without_a_challenge());
}

TEST_F(AcceptorTest, SendsTheOwnersReasonForARefusal) {
  join(13);
  EXPECT_THAT(refusal(), mentions("index 13 is refused"));
}

TEST_F(AcceptorTest, ContinuesAfterAnUnauthenticatedPeer) {
  join(3, RunKey{kRun, "wrong"});
  ASSERT_TRUE(run_until([&] { return !client_.closed.empty(); }));
  End refused = std::exchange(client_, {});
  join(4);
  ASSERT_TRUE(run_until([&] { return !admitted_.empty(); }));
  EXPECT_EQ(admitted_[0].index, 4U);
}

TEST_F(AcceptorTest, ClosesTheOldestOfTooManyPendingConnections) {
  acceptor_.reset();
  auto listener = Listener::open(loop_, "unix:drover-acceptor-test-" + std::to_string(::getpid()));
  ASSERT_TRUE(listener.ok());
  int admitted = 0;
  acceptor_ = std::make_unique<Acceptor>(
      loop_, std::move(listener).value(), kKey,
      [&](const std::shared_ptr<Channel>& channel, const Hello&) {
        channel->replace_callbacks({});
        ++admitted;
        return done();
      },
      8);
  std::vector<Socket> silent;
  for (int i = 0; i < 30; ++i) {
    auto socket = connect_socket(loop_, acceptor_->address(), "the acceptor");
    ASSERT_TRUE(socket.ok());
    silent.push_back(std::move(socket).value());
    while (loop_.poll_one() > 0) {
    }
    EXPECT_LE(acceptor_->pending(), 8U);
  }
  join(2);
  EXPECT_TRUE(run_until([&] { return admitted == 1; }));
}

// Ranks of a cluster make probe connections while they wait for the first rank. Counted as
// failures, so many would block the address.
TEST_F(AcceptorTest, ProbeConnectionsAreNoFailures) {
  for (int i = 0; i < 2 * static_cast<int>(ConnectionLimiter::kTrusted.failures); ++i) {
    ASSERT_TRUE(connect_socket(loop_, acceptor_->address(), "the acceptor").ok());
    while (loop_.poll_one() > 0) {
    }
  }
  ASSERT_TRUE(run_until([&] { return acceptor_->pending() == 0; }));
  join(2);
  EXPECT_TRUE(run_until([&] { return !client_.controls.empty() || !client_.closed.empty(); }));
  EXPECT_EQ(admitted_.size(), 1U);
}

TEST_F(AcceptorTest, AdmitsHundredsAtOnce) {
  constexpr size_t kMany = 500;
  size_t welcomed = 0;
  std::vector<std::shared_ptr<Channel>> clients;
  for (uint32_t i = 0; i < kMany; ++i) {
    connect();
    clients.push_back(client_.channel);
    Channel::Callbacks callbacks;
    callbacks.on_control = [&](const Control&) {
      ++welcomed;
      return done();
    };
    introduce(client_.channel, kKey, {.hello = {.role = Role::kWorker, .index = 100 + i}},
              std::move(callbacks));
  }
  EXPECT_TRUE(run_until([&] { return welcomed == kMany; }));
  EXPECT_EQ(admitted_.size(), kMany);
  for (const auto& each : clients) each->close();
}

TEST_F(AcceptorTest, RefusesAReplayedHandshake) {
  // A member's answers to an earlier challenge.
  const Nonces earlier{make_nonce(), make_nonce()};
  send_blindly({Challenge{.nonce = earlier.connector},
                Challenge{.proof = prove_connector(kKey, earlier)},
                Hello{.role = Role::kWorker, .index = 2}});
  const std::string reason = refusal();
  EXPECT_EQ(reason, refusal_of_another_token());
}

TEST_F(AcceptorTest, RefusesItsOwnMessagesSentBack) {
  connect();
  bool reflected = false;
  Channel::Callbacks callbacks = client_.callbacks();
  callbacks.on_control = [&](const Control& message) -> Status {
    reflected = true;
    // The acceptor's nonce comes back as the client's, and so do its other messages.
    client_.channel->send({.header = {.type = FrameType::kControl}, .payload = message});
    client_.channel->send({.header = {.type = FrameType::kControl}, .payload = message});
    return done();
  };
  client_.channel->start(std::move(callbacks));
  const std::string reason = refusal();
  EXPECT_EQ(reason, refusal_of_another_token());
  EXPECT_TRUE(reflected);
}

TEST_F(AcceptorTest, RefusesLargeMessagesOfUnauthenticatedPeers) {
  send_blindly({Hello{.host = std::string(kUnauthenticatedBytesMax, 'h')}});
  ASSERT_TRUE(run_until([&] { return !client_.closed.empty(); }));
  EXPECT_THAT(client_.closed[0].message, mentions(kUnauthenticatedBytesMax));
}

TEST_F(AcceptorTest, AcceptsALargeModelOfAMember) {
  connect();
  std::vector<TensorSpec> tensors(2000, {std::string(100, 'w'), 12, TensorKind::kTrained});
  introduce(client_.channel, kKey, {.hello = {.role = Role::kWorker, .tensors = tensors}},
            client_.callbacks());
  ASSERT_TRUE(run_until([&] { return !admitted_.empty(); }));
  EXPECT_EQ(admitted_[0].tensors, tensors);
}

// The other direction: the accepting end must prove that it knows the token, too.
class ImpostorTest : public AcceptorTest {
 protected:
  ImpostorTest() {
    auto listener =
        Listener::open(loop_, "unix:drover-impostor-test-" + std::to_string(::getpid()));
    EXPECT_TRUE(listener.ok());
    listener_ = std::move(listener).value();
    listener_->start([this](Socket socket) {
      impostor_.channel = std::make_shared<Channel>(std::move(socket), kRun);
      Channel::Callbacks callbacks = impostor_.callbacks();
      callbacks.on_control = [this](const Control& message) { return answer(message); };
      impostor_.channel->start(std::move(callbacks));
      impostor_.channel->send(control_frame(Challenge{.nonce = make_nonce()}));
    });
    auto socket = connect_socket(loop_, listener_->address(), "the impostor");
    EXPECT_TRUE(socket.ok());
    client_.channel = std::make_shared<Channel>(std::move(socket).value(), kRun);
  }
  ~ImpostorTest() override {
    if (impostor_.channel) impostor_.channel->close();
  }

  Status answer(const Control& message) {
    received_.push_back(message);
    const auto* challenge = std::get_if<Challenge>(&message);
    if (challenge != nullptr && !challenge->proof.empty()) impostor_.channel->send(reply_(message));
    return done();
  }

  void expect_not_authenticated(std::function<Frame(const Control&)> reply) {
    reply_ = std::move(reply);
    introduce(client_.channel, kKey,
              {.hello = {.role = Role::kWorker, .index = 2},
               .on_authenticated = [this] { ++authenticated_; }},
              client_.callbacks());
    ASSERT_TRUE(run_until([&] { return !client_.closed.empty() && !impostor_.closed.empty(); }));
    EXPECT_EQ(authenticated_, 0);
    EXPECT_TRUE(client_.controls.empty());
    for (const Control& each : received_)
      EXPECT_TRUE(std::holds_alternative<Challenge>(each)) << "Hello was sent to an impostor";
  }

  std::unique_ptr<Listener> listener_;
  End impostor_;
  std::vector<Control> received_;
  std::function<Frame(const Control&)> reply_;
};

TEST_F(ImpostorTest, IsRefusedWithoutAProof) {
  expect_not_authenticated([](const Control&) { return control_frame(Welcome{}); });
}

TEST_F(ImpostorTest, IsRefusedWithTheClientsOwnProof) {
  expect_not_authenticated([](const Control& message) {
    return control_frame(Challenge{.proof = std::get<Challenge>(message).proof});
  });
}

TEST_F(ImpostorTest, IsRefusedWithAReplayedProof) {
  expect_not_authenticated([](const Control&) {
    return control_frame(Challenge{.proof = prove_acceptor(kKey, {make_nonce(), make_nonce()})});
  });
}

}  // namespace
}  // namespace drover
