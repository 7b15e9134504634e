// Limits of this machine are reported before a run hits them.
#include "node/host.h"

#include <gtest/gtest.h>

#include "core/test_text.h"

namespace drover {
namespace {

TEST(Host, WarnsOfALimitOnFilesThatIsTooLowForTheWorkers) {
  EXPECT_EQ(too_few_files(1'048'576, 10'000), "");
  EXPECT_EQ(too_few_files(1'024, 490), "");
  const std::string warning = too_few_files(1'024, 500);
  EXPECT_THAT(warning, mentions(1024, 500));
}

TEST(Host, TheLimitOnFilesCanBeRaisedAgain) {
  const uint64_t limit = raise_file_limit();
  EXPECT_GT(limit, 0u);
  EXPECT_EQ(raise_file_limit(), limit);
}

}  // namespace
}  // namespace drover
