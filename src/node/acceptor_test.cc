// Greetings between real sockets on one event loop: who gets in, who is believed, who is not.
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

// One end of a connection, and what its channel told.
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
          if (hello.index == 13) return invalid_input("thirteen is not wanted");
          admitted_.push_back(hello);
          channel->replace_callbacks(inside_.callbacks());
          inside_.channel = channel;
          channel->send(control_frame(Ready{}));
          return done();
        });
  }
  ~AcceptorTest() override {
    if (inside_.channel) inside_.channel->close();
    if (visitor_.channel) visitor_.channel->close();
    acceptor_.reset();
    loop_.restart();
    loop_.poll();
  }

  void connect(RunId run = kRun) {
    auto socket = connect_socket(loop_, acceptor_->address(), "the acceptor");
    ASSERT_TRUE(socket.ok()) << socket.error().message;
    visitor_.channel = std::make_shared<Channel>(std::move(socket).value(), run);
  }
  // As a member of the run does.
  void visit(uint32_t index, const RunKey& key = kKey) {
    connect(key.run);
    introduce(
        visitor_.channel, key,
        {.hello = {.role = Role::kWorker, .index = index}, .on_believed = [this] { ++believed_; }},
        visitor_.callbacks());
  }
  // With these words, whatever the acceptor says.
  void say(const std::vector<Control>& words) {
    connect();
    visitor_.channel->start(visitor_.callbacks());
    for (const Control& each : words)
      visitor_.channel->send({.header = {.type = FrameType::kControl}, .payload = each});
  }

  // Waits until the visitor has been refused; another may come afterwards. Returns what it was
  // told.
  std::string refusal() {
    EXPECT_TRUE(run_until([&] { return !visitor_.closed.empty() && acceptor_->strangers() == 0; }));
    EXPECT_TRUE(admitted_.empty());
    const End refused = std::exchange(visitor_, {});
    if (refused.closed.empty()) return "";
    EXPECT_EQ(refused.closed[0].kind, ErrorKind::kRefused);
    return refused.closed[0].message;
  }
  std::string refusal_of_another_token() {
    visit(2, RunKey{kRun, "the tokem"});
    return refusal();
  }
  std::string refusal_without_a_greeting() {
    say({Ready{}});
    return refusal();
  }

  std::unique_ptr<Acceptor> acceptor_;
  std::vector<Hello> admitted_;
  int believed_ = 0;
  End inside_;
  End visitor_;
};

TEST_F(AcceptorTest, LetsInWhoKnowsTheToken) {
  visit(2);
  ASSERT_TRUE(run_until([&] { return visitor_.controls.size() == 1; }));
  ASSERT_EQ(admitted_.size(), 1U);
  EXPECT_EQ(admitted_[0].index, 2U);
  EXPECT_EQ(believed_, 1);
  EXPECT_TRUE(std::holds_alternative<Ready>(visitor_.controls[0])) << "not the challenges";
  EXPECT_TRUE(visitor_.closed.empty());
  EXPECT_EQ(acceptor_->strangers(), 0U);
}

TEST_F(AcceptorTest, MayHaveSpokenBeforeTheOtherListens) {
  connect();
  ASSERT_TRUE(run_until([&] { return acceptor_->strangers() == 1; }));
  while (loop_.poll_one() > 0) {
  }
  introduce(visitor_.channel, kKey, {.hello = {.role = Role::kWorker, .index = 2}},
            visitor_.callbacks());
  ASSERT_TRUE(run_until([&] { return !admitted_.empty() || !visitor_.closed.empty(); }));
  EXPECT_EQ(admitted_.size(), 1U);
}

TEST_F(AcceptorTest, TellsWhoHasAnotherTokenAndShutsItOut) {
  EXPECT_NE(refusal_of_another_token(), "");
  EXPECT_EQ(believed_, 0) << "it has proved nothing to a stranger";
}

TEST_F(AcceptorTest, ShutsOutWhoIsOfAnotherRun) {
  visit(2, RunKey{kRun + 1, "the token"});
  ASSERT_TRUE(run_until([&] { return !visitor_.closed.empty(); }));
  EXPECT_TRUE(admitted_.empty());
}

TEST_F(AcceptorTest, TellsWhoDoesNotGreetAndShutsItOut) {
  const std::string told = refusal_without_a_greeting();
  EXPECT_NE(told, "");
  EXPECT_NE(told, refusal_of_another_token()) << "for another reason";
}

TEST_F(AcceptorTest, WantsAProofBeforeAName) {
  say({Challenge{.nonce = make_nonce()}, Hello{.role = Role::kWorker, .index = 2}});
  const std::string told = refusal();
  EXPECT_EQ(told, refusal_without_a_greeting());
}

TEST_F(AcceptorTest, PassesOnWhyTheOwnerRefuses) {
  visit(13);
  EXPECT_THAT(refusal(), mentions("thirteen is not wanted"));
}

TEST_F(AcceptorTest, GoesOnAfterAStranger) {
  visit(3, RunKey{kRun, "wrong"});
  ASSERT_TRUE(run_until([&] { return !visitor_.closed.empty(); }));
  End stranger = std::exchange(visitor_, {});
  visit(4);
  ASSERT_TRUE(run_until([&] { return !admitted_.empty(); }));
  EXPECT_EQ(admitted_[0].index, 4U);
}

TEST_F(AcceptorTest, WhenTooManySayNothingTheFirstOfThemGoes) {
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
    EXPECT_LE(acceptor_->strangers(), 8U);
  }
  visit(2);
  EXPECT_TRUE(run_until([&] { return admitted == 1; }));
}

// As ranks of a cluster do while they wait for the first. So many failures would shut them out.
TEST_F(AcceptorTest, WhoOnlyLooksWhetherSomebodyIsHereIsNoStranger) {
  for (int i = 0; i < 2 * static_cast<int>(ConnectionLimiter::kNear.failures); ++i) {
    ASSERT_TRUE(connect_socket(loop_, acceptor_->address(), "the acceptor").ok());
    while (loop_.poll_one() > 0) {
    }
  }
  ASSERT_TRUE(run_until([&] { return acceptor_->strangers() == 0; }));
  visit(2);
  EXPECT_TRUE(run_until([&] { return !visitor_.controls.empty() || !visitor_.closed.empty(); }));
  EXPECT_EQ(admitted_.size(), 1U);
}

TEST_F(AcceptorTest, HundredsThatComeAtOnceAllGetIn) {
  constexpr size_t kMany = 500;
  size_t welcomed = 0;
  std::vector<std::shared_ptr<Channel>> visitors;
  for (uint32_t i = 0; i < kMany; ++i) {
    connect();
    visitors.push_back(visitor_.channel);
    Channel::Callbacks callbacks;
    callbacks.on_control = [&](const Control&) {
      ++welcomed;
      return done();
    };
    introduce(visitor_.channel, kKey, {.hello = {.role = Role::kWorker, .index = 100 + i}},
              std::move(callbacks));
  }
  EXPECT_TRUE(run_until([&] { return welcomed == kMany; }));
  EXPECT_EQ(admitted_.size(), kMany);
  for (const auto& each : visitors) each->close();
}

TEST_F(AcceptorTest, IsNotDeceivedByARecordedGreeting) {
  // What an honest connector said to an earlier challenge.
  const Nonces earlier{make_nonce(), make_nonce()};
  say({Challenge{.nonce = earlier.connector}, Challenge{.proof = prove_connector(kKey, earlier)},
       Hello{.role = Role::kWorker, .index = 2}});
  const std::string told = refusal();
  EXPECT_EQ(told, refusal_of_another_token());
}

TEST_F(AcceptorTest, IsNotDeceivedByItsOwnWords) {
  connect();
  bool reflected = false;
  Channel::Callbacks callbacks = visitor_.callbacks();
  callbacks.on_control = [&](const Control& message) -> Status {
    reflected = true;
    // Its nonce comes back as ours, and whatever else it says.
    visitor_.channel->send({.header = {.type = FrameType::kControl}, .payload = message});
    visitor_.channel->send({.header = {.type = FrameType::kControl}, .payload = message});
    return done();
  };
  visitor_.channel->start(std::move(callbacks));
  const std::string told = refusal();
  EXPECT_EQ(told, refusal_of_another_token());
  EXPECT_TRUE(reflected);
}

TEST_F(AcceptorTest, TakesNothingLargeFromAStranger) {
  say({Hello{.host = std::string(kStrangerBytesMax, 'h')}});
  ASSERT_TRUE(run_until([&] { return !visitor_.closed.empty(); }));
  EXPECT_THAT(visitor_.closed[0].message, mentions(kStrangerBytesMax));
}

TEST_F(AcceptorTest, TakesALargeModelFromAMember) {
  connect();
  std::vector<TensorSpec> tensors(2000, {std::string(100, 'w'), 12, TensorKind::kTrained});
  introduce(visitor_.channel, kKey, {.hello = {.role = Role::kWorker, .tensors = tensors}},
            visitor_.callbacks());
  ASSERT_TRUE(run_until([&] { return !admitted_.empty(); }));
  EXPECT_EQ(admitted_[0].tensors, tensors);
}

// The other direction: whoever accepts must prove itself, too.
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
    visitor_.channel = std::make_shared<Channel>(std::move(socket).value(), kRun);
  }
  ~ImpostorTest() override {
    if (impostor_.channel) impostor_.channel->close();
  }

  Status answer(const Control& message) {
    heard_.push_back(message);
    const auto* challenge = std::get_if<Challenge>(&message);
    if (challenge != nullptr && !challenge->proof.empty()) impostor_.channel->send(reply_(message));
    return done();
  }

  void expect_not_believed(std::function<Frame(const Control&)> reply) {
    reply_ = std::move(reply);
    introduce(
        visitor_.channel, kKey,
        {.hello = {.role = Role::kWorker, .index = 2}, .on_believed = [this] { ++believed_; }},
        visitor_.callbacks());
    ASSERT_TRUE(run_until([&] { return !visitor_.closed.empty() && !impostor_.closed.empty(); }));
    EXPECT_EQ(believed_, 0);
    EXPECT_TRUE(visitor_.controls.empty());
    for (const Control& each : heard_)
      EXPECT_TRUE(std::holds_alternative<Challenge>(each)) << "it is told who came";
  }

  std::unique_ptr<Listener> listener_;
  End impostor_;
  std::vector<Control> heard_;
  std::function<Frame(const Control&)> reply_;
};

TEST_F(ImpostorTest, IsNotBelievedWithoutAProof) {
  expect_not_believed([](const Control&) { return control_frame(Welcome{}); });
}

TEST_F(ImpostorTest, IsNotBelievedWithTheVisitorsOwnProof) {
  expect_not_believed([](const Control& message) {
    return control_frame(Challenge{.proof = std::get<Challenge>(message).proof});
  });
}

TEST_F(ImpostorTest, IsNotBelievedWithARecordedProof) {
  expect_not_believed([](const Control&) {
    return control_frame(Challenge{.proof = prove_acceptor(kKey, {make_nonce(), make_nonce()})});
  });
}

}  // namespace
}  // namespace drover
