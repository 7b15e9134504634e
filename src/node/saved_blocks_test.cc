#include "node/saved_blocks.h"

#include <gtest/gtest.h>

#include <utility>

#include "core/test_text.h"

namespace drover {
namespace {

class KeptBlocksTest : public ::testing::Test {
 protected:
  KeptBlocksTest() {
    plan_.tensors = layout_.tensors();
    plan_.blocks = plan_blocks(layout_, 2);
    plan_.kept = KeptVersion{.version = 7, .incarnation = 1};
  }
  void keep(Version version, size_t cut = 0) {
    CheckpointPart part{.version = version};
    for (const Block& block : plan_.blocks.blocks) {
      if (block.shard == 0) part.blocks.push_back({.offset = block.offset, .length = block.length});
    }
    part.blocks.resize(part.blocks.size() - cut);
    kept_.keep(std::move(part), 1);
  }
  Result<SavedBlocks> found() const { return kept_blocks(plan_, 0, kept_, "shard 0"); }

  const Layout layout_{{{"a", 4}, {"b", 6}, {"c", 5}}};
  Plan plan_;
  KeptParts kept_;
};

TEST_F(KeptBlocksTest, AreThoseOfThePlansVersion) {
  keep(7);
  const auto blocks = found();
  ASSERT_TRUE(blocks.ok());
  ASSERT_TRUE(blocks.value());
  EXPECT_EQ(blocks.value()->size(), plan_.blocks.blocks_of_shard(0).size());
}

TEST_F(KeptBlocksTest, AnotherVersionIsAnError) {
  keep(6);
  const auto blocks = found();
  ASSERT_FALSE(blocks.ok());
  EXPECT_THAT(blocks.error(), is_error(ErrorKind::kInvalidInput, "shard 0"));
}

TEST_F(KeptBlocksTest, MissingBlocksAreAnError) {
  keep(7, 1);
  EXPECT_FALSE(found().ok());
}

TEST(ReadSaved, IsAbsentWhenTheRunBegins) {
  const auto blocks = read_saved(Plan{}, 0);
  ASSERT_TRUE(blocks.ok());
  EXPECT_FALSE(blocks.value());
}

TEST(ReadSaved, NamesTheCheckpointThatIsMissing) {
  Plan plan;
  plan.resume_from = "/nowhere/step-7";
  const auto blocks = read_saved(plan, 0);
  ASSERT_FALSE(blocks.ok());
  EXPECT_THAT(blocks.error().message, mentions("/nowhere/step-7"));
}

}  // namespace
}  // namespace drover
