// A target is read as it is written, and nothing that cannot be reached is one.
#include "core/target.h"

#include <gtest/gtest.h>

#include <cmath>

namespace drover {
namespace {

TEST(Target, IsReadAndWritten) {
  const auto accuracy = parse_target("accuracy=0.97");
  ASSERT_TRUE(accuracy.ok());
  EXPECT_EQ(accuracy.value(), (Target{TargetKind::kAccuracy, 0.97}));
  EXPECT_EQ(to_text(accuracy.value()), "accuracy=0.97");
  const auto loss = parse_target("loss=2");
  ASSERT_TRUE(loss.ok());
  EXPECT_EQ(loss.value(), (Target{TargetKind::kLoss, 2.0}));
  for (const char* text : {"accuracy=1", "loss=0.3", "loss=1e-06"})
    EXPECT_EQ(to_text(parse_target(text).value()), text);
}

TEST(Target, IsReachedFromTheRightSide) {
  const Target accuracy{TargetKind::kAccuracy, 0.9};
  EXPECT_TRUE(accuracy.reached_by(5.0, 0.9));
  EXPECT_FALSE(accuracy.reached_by(0.0, 0.89));
  const Target loss{TargetKind::kLoss, 0.2};
  EXPECT_TRUE(loss.reached_by(0.2, 0.0));
  EXPECT_FALSE(loss.reached_by(0.21, 1.0));
  EXPECT_FALSE(loss.reached_by(std::nan(""), 1.0));
  EXPECT_FALSE(accuracy.reached_by(0.1, std::nan("")));
}

TEST(Target, SaysWhatIsWrong) {
  const auto complaint = [](const char* text) {
    const auto target = parse_target(text);
    return target.ok() ? std::string("fine") : target.error().message;
  };
  EXPECT_NE(complaint("acuracy=0.9").find("Did you mean 'accuracy'?"), std::string::npos);
  EXPECT_NE(complaint("").find("such as accuracy=0.97 or loss=0.2"), std::string::npos);
  EXPECT_NE(complaint("accuracy=97").find("0.97 for 97 %"), std::string::npos);
  EXPECT_NE(complaint("accuracy=0").find("more than 0"), std::string::npos);
  EXPECT_NE(complaint("loss=-1").find("more than 0"), std::string::npos);
  for (const char* text : {"loss", "loss=", "loss=low", "loss=1x", "accuracy=nan", "loss=inf"})
    EXPECT_NE(complaint(text).find("needs a number"), std::string::npos) << text;
}

}  // namespace
}  // namespace drover
