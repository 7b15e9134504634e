// Names of settings of older versions map to their successors.
#include "core/former_settings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace drover {
namespace {

using ::testing::HasSubstr;
using ::testing::Optional;

TEST(FormerSettings, RenamedOnesHaveTheirCurrentName) {
  EXPECT_EQ(current_setting_name("optimizer.kind"), "optimizer");
  EXPECT_EQ(current_setting_name("schedule.floor"), "lr_floor");
  EXPECT_EQ(current_setting_name("workers"), "workers");
  EXPECT_EQ(current_setting_name("decide_every"), "decide_every") << "it has no successor";
}

TEST(FormerSettings, ErrorsNameTheSuccessorOrTheReason) {
  EXPECT_THAT(successor_of_setting("schedule.warmup_steps"), Optional(HasSubstr("lr_warmup")));
  EXPECT_THAT(successor_of_setting("decide_every"), Optional(HasSubstr("removed")));
  EXPECT_EQ(successor_of_setting("workers"), std::nullopt);
}

TEST(FormerSettings, TheSuccessorExistsWhereItIsNamed) {
  const auto only = [](std::string_view key) {
    return [key](std::string_view name) { return name == key; };
  };
  EXPECT_THAT(successor_of_setting("warmup", only("lr_warmup")), Optional(HasSubstr("lr_")));
  EXPECT_THAT(successor_of_setting("warmup", only("policy_warmup")),
              Optional(HasSubstr("policy_")));
  EXPECT_EQ(successor_of_setting("warmup", only("workers")), std::nullopt);
}

}  // namespace
}  // namespace drover
