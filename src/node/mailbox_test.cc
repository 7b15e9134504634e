// Messages leave a mailbox in the order in which they were put in, from whatever thread.
#include "node/mailbox.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace drover {
namespace {

class MailboxTest : public ::testing::Test {
 protected:
  void put(Step number) {
    Outbox out;
    out.push_back({to_coordinator(), Frame{{.type = FrameType::kPull, .step = number}, {}}});
    box_.put(std::move(out));
  }
  void put_by_another(Step number) {
    std::thread([&] { put(number); }).join();
  }

  boost::asio::io_context loop_{1};
  std::vector<Step> delivered_;
  Mailbox box_{loop_, [this](Outbox out) {
                 for (const Outgoing& each : out) delivered_.push_back(each.frame.header.step);
               }};
};

TEST_F(MailboxTest, MessagesOfTheLoopAreNotOvertakenByThoseOfAnotherThread) {
  boost::asio::post(loop_, [this] {
    put(1);
    put_by_another(2);
    put(3);
    put_by_another(4);
  });
  loop_.run();
  EXPECT_EQ(delivered_, (std::vector<Step>{1, 2, 3, 4}));
}

TEST_F(MailboxTest, MessagesPutInDuringDeliveryComeNext) {
  put(1);
  boost::asio::post(loop_, [this] {
    put(2);
    box_.empty();
    EXPECT_EQ(delivered_, (std::vector<Step>{1, 2})) << "empty() delivers at once";
    put(3);
  });
  loop_.run();
  EXPECT_EQ(delivered_, (std::vector<Step>{1, 2, 3}));
}

}  // namespace
}  // namespace drover
