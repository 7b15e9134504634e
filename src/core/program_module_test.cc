#include "core/program_module.h"

#include <gtest/gtest.h>

#include "core/test_text.h"

namespace drover {
namespace {

TEST(ProgramModule, IsSearchedBesideTheProgramFirst) {
  const std::vector<std::string> candidates = module_candidates("libsome.so");
  ASSERT_EQ(candidates.size(), 3U);
  EXPECT_TRUE(candidates[0].ends_with("/bin/libsome.so")) << candidates[0];
  EXPECT_TRUE(candidates[1].ends_with("/lib/drover/libsome.so")) << candidates[1];
}

TEST(ProgramModule, TheErrorNamesTheSearchedPathsAndTheTargetToBuild) {
  const Result<ProgramModule> module =
      open_program_module({"libnobody_has_this.so", "the stars are", "drover_stars"});
  ASSERT_FALSE(module.ok());
  const std::string& message = module.error().message;
  for (const std::string& candidate : module_candidates("libnobody_has_this.so"))
    EXPECT_THAT(message, mentions(candidate));
  EXPECT_THAT(message, mentions("the stars", "drover_stars"));
}

}  // namespace
}  // namespace drover
