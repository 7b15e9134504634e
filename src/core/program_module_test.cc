#include "core/program_module.h"

#include <gtest/gtest.h>

namespace drover {
namespace {

TEST(ProgramModule, IsLookedForBesideTheProgramFirst) {
  const std::vector<std::string> candidates = module_candidates("libsome.so");
  ASSERT_EQ(candidates.size(), 3U);
  EXPECT_TRUE(candidates[0].ends_with("/bin/libsome.so")) << candidates[0];
  EXPECT_TRUE(candidates[1].ends_with("/lib/drover/libsome.so")) << candidates[1];
}

TEST(ProgramModule, SaysWhereItLookedAndWhatToBuild) {
  const Result<ProgramModule> module =
      open_program_module({"libnobody_has_this.so", "the stars are", "drover_stars"});
  ASSERT_FALSE(module.ok());
  const std::string& message = module.error().message;
  EXPECT_TRUE(message.starts_with("the stars are not installed: libnobody_has_this.so")) << message;
  EXPECT_NE(message.find("/lib/drover/libnobody_has_this.so"), std::string::npos) << message;
  EXPECT_NE(message.find("Build the target drover_stars"), std::string::npos) << message;
}

}  // namespace
}  // namespace drover
