// Messages on an event loop, over a port of which the test controls the delivery.
#include "net/message_courier.h"

#include <gtest/gtest.h>

#include <chrono>
#include <numeric>
#include <optional>

#include "net/test_loop.h"
#include "net/test_port.h"

namespace drover {
namespace {

class MessageCourierTest : public LoopTest {
 protected:
  MessageCourierTest() { std::iota(sent_->begin(), sent_->end(), uint8_t{1}); }

  std::span<const std::byte> message() const { return std::as_bytes(std::span(*sent_)); }
  std::span<std::byte> place() { return std::as_writable_bytes(std::span(received_)); }

  MessageCourier::Done note(std::vector<Status>& into) {
    return [&into](const Status& status) { into.push_back(status); };
  }
  bool send() { return right_->send(message(), {0, 7}, sent_, note(sends_)); }
  bool receive(uint32_t lane = 7) { return left_->receive(place(), {1, lane}, note(receives_)); }

  TestWorld world_;
  TestPort left_port_{world_, 0};
  TestPort right_port_{world_, 1};
  std::shared_ptr<MessageCourier> left_ =
      std::make_shared<MessageCourier>(loop_.get_executor(), left_port_);
  std::shared_ptr<MessageCourier> right_ =
      std::make_shared<MessageCourier>(loop_.get_executor(), right_port_);
  std::shared_ptr<std::vector<uint8_t>> sent_ = std::make_shared<std::vector<uint8_t>>(100);
  std::vector<uint8_t> received_ = std::vector<uint8_t>(100);
  std::vector<Status> sends_;
  std::vector<Status> receives_;
};

TEST_F(MessageCourierTest, AnAvailableMessageIsReceivedAtOnce) {
  EXPECT_FALSE(send());
  EXPECT_TRUE(receive());
  EXPECT_EQ(received_, *sent_);
  EXPECT_TRUE(run_until([&] { return sends_.size() == 1; }));
  EXPECT_TRUE(sends_.front().ok());
  EXPECT_TRUE(receives_.empty());
}

TEST_F(MessageCourierTest, WaitsForAMessageThatArrivesLater) {
  EXPECT_FALSE(receive());
  world_.delivers = false;
  EXPECT_FALSE(send());
  // Long enough for every length of pause.
  ASSERT_TRUE(run_until([&] { return left_port_.looks > 60; }));
  EXPECT_TRUE(receives_.empty());
  world_.delivers = true;
  EXPECT_TRUE(run_until([&] { return receives_.size() == 1 && sends_.size() == 1; }));
  EXPECT_TRUE(receives_.front().ok());
  EXPECT_EQ(received_, *sent_);
}

TEST_F(MessageCourierTest, DoesNotPollWithoutPendingOperations) {
  EXPECT_FALSE(send());
  EXPECT_TRUE(receive());
  ASSERT_TRUE(run_until([&] { return sends_.size() == 1; }));
  const size_t looks = left_port_.looks + right_port_.looks;
  loop_.restart();
  loop_.run();  // it returns, since no timer is set
  EXPECT_EQ(left_port_.looks + right_port_.looks, looks);
}

TEST_F(MessageCourierTest, AMessageOfAnotherLengthIsAnError) {
  received_.resize(99);
  EXPECT_FALSE(send());
  EXPECT_FALSE(receive());
  ASSERT_TRUE(run_until([&] { return receives_.size() == 1; }));
  EXPECT_FALSE(receives_.front().ok());
}

TEST_F(MessageCourierTest, AFailureOfThePortIsReportedLater) {
  left_port_.trouble = "gone";
  EXPECT_FALSE(receive());
  EXPECT_TRUE(receives_.empty()) << "not during the call";
  ASSERT_TRUE(run_until([&] { return receives_.size() == 1; }));
  EXPECT_EQ(receives_.front().error().message, "gone");
}

TEST_F(MessageCourierTest, ForgettingAPeerCancelsReceivesAndKeepsTheMemoryOfSends) {
  world_.delivers = false;
  EXPECT_FALSE(send());
  EXPECT_FALSE(receive());
  EXPECT_FALSE(receive(8));
  left_->forget({1, 7});
  EXPECT_EQ(left_port_.under_way(), 1u) << "the other lane continues";
  right_->forget({0, 7});
  EXPECT_EQ(right_port_.under_way(), 0u);
  ASSERT_EQ(right_port_.kept.size(), 1u);
  EXPECT_EQ(right_port_.kept.front(), sent_);
  world_.delivers = true;
  left_->close();
  EXPECT_EQ(left_port_.under_way(), 0u);
  loop_.restart();
  loop_.run();
  EXPECT_TRUE(receives_.empty() && sends_.empty()) << "no callback is called any more";
  EXPECT_EQ(received_, std::vector<uint8_t>(100));
}

TEST_F(MessageCourierTest, ACallbackMayEndOtherOperations) {
  world_.delivers = false;
  bool other = false;
  EXPECT_FALSE(left_->receive(place(), {1, 7}, [&](const Status&) { left_->forget({1, 8}); }));
  EXPECT_FALSE(left_->receive(place(), {1, 8}, [&](const Status&) { other = true; }));
  EXPECT_FALSE(send());
  world_.delivers = true;
  EXPECT_TRUE(run_until([&] { return left_port_.under_way() == 0; }));
  EXPECT_FALSE(other);
}

TEST(Pauses, GrowUpToALimit) {
  Duration before = Duration::zero();
  for (uint32_t in_vain = 0; in_vain < 100'000; ++in_vain) {
    const Duration pause = pause_before_next_look(in_vain);
    ASSERT_GE(pause, before);
    before = pause;
  }
  EXPECT_EQ(pause_before_next_look(0), Duration::zero());
  EXPECT_LE(before, std::chrono::milliseconds(1));
}

}  // namespace
}  // namespace drover
