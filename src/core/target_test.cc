// Targets parse to what was written, and unreachable targets are refused.
#include "core/target.h"

#include <gtest/gtest.h>

#include <cmath>

#include "core/test_text.h"

namespace drover {
namespace {

using ::testing::AllOf;
using ::testing::Not;

TEST(Target, TextParsesToTheSameTarget) {
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

TEST(Target, AccuracyIsReachedFromBelowAndLossFromAbove) {
  const Target accuracy{TargetKind::kAccuracy, 0.9};
  EXPECT_TRUE(accuracy.reached_by(5.0, 0.9));
  EXPECT_FALSE(accuracy.reached_by(0.0, 0.89));
  const Target loss{TargetKind::kLoss, 0.2};
  EXPECT_TRUE(loss.reached_by(0.2, 0.0));
  EXPECT_FALSE(loss.reached_by(0.21, 1.0));
  EXPECT_FALSE(loss.reached_by(std::nan(""), 1.0));
  EXPECT_FALSE(accuracy.reached_by(0.1, std::nan("")));
}

TEST(Target, ErrorsNameTheInvalidPart) {
  const auto complaint = [](const char* text) {
    const auto target = parse_target(text);
    if (target.ok()) return std::string("fine");
    EXPECT_EQ(target.error().kind, ErrorKind::kInvalidInput);
    return target.error().message;
  };
  EXPECT_THAT(complaint("acuracy=0.9"), AllOf(mentions("acuracy=0.9"), proposes("accuracy")));
  EXPECT_THAT(complaint(""), mentions("accuracy=0.97", "loss=0.2"));
  EXPECT_THAT(complaint("accuracy=97"), mentions("accuracy=97", 0, 1, "0.97"));
  EXPECT_THAT(complaint("accuracy=0"), mentions("accuracy=0", 0, 1, "0.97"));
  EXPECT_THAT(complaint("loss=-1"), AllOf(mentions("loss=-1", 0), Not(mentions("loss=0.2"))));
  for (const char* text : {"loss", "loss=low", "loss=1x", "loss=inf"}) {
    EXPECT_THAT(complaint(text),
                AllOf(mentions(text, "loss=0.2"), Not(mentions("accuracy")), Not(mentions(0))));
  }
  EXPECT_THAT(complaint("loss="), mentions("loss=0.2"));
  EXPECT_THAT(complaint("accuracy=nan"),
              AllOf(mentions("accuracy=nan", "accuracy=0.97"), Not(mentions("loss"))));
}

}  // namespace
}  // namespace drover
